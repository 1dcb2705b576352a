"""Sources: what reads a data set from disk, refuses what it must, and returns a Corpus."""
