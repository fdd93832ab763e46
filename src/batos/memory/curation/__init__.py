"""Folding memories: which regions are cold or redundant, what a summary of one says, and the change of the image."""
