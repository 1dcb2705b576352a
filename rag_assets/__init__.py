"""rag-assets: decide on evidence whether an embedding space or a vector index may serve."""
