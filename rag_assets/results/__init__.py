"""Search results: query cases run over one embedding space, under each case's access rights."""
