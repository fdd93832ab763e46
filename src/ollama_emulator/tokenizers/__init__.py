"""Count tokens with a model's own vocabulary, as the runner does."""
