"""Combining: how the parts of a mind become one answer, and what each of its calls changed."""
