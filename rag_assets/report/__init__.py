"""A release as one HTML page: what may be decided, and everything that says so."""
