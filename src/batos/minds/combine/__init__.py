"""Combining: how the parts of a mind become one answer."""
