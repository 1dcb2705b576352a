"""Canonical items, query cases, judgements and the contracts of embedding spaces."""
