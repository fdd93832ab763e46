"""Lowering rewrites Python that the cell's interpreter lacks into Python that it has."""
