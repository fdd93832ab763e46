"""Deterministic words in the place of a model's."""
