"""Token counts by the vocabulary of the weights."""
