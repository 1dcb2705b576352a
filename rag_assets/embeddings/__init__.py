"""Embeddings per space: vectors with the ids, roles and rights of what they embed."""
