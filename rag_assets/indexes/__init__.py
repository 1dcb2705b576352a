"""Indexes: which documents a subject may see, in what order they rank, and how to find the best.

The order, for every metric and every index: the float64 score snapped to a grid (see `ranking`),
higher first; among equals the smaller row, and rows ascend by item id. An index is anything with
`search(queries, k, eligible) -> (rows, scores)`, as `exact.ExactIndex` defines it: documents that
are not eligible are left out before anything is scored.
"""
