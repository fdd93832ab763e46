"""The card: what fits on it, what lies there, and in which order calls to one daemon are made."""
