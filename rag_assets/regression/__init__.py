"""Regression gates: today's measures against floors and against a pinned baseline."""
