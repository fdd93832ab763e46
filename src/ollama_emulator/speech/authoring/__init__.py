"""Methods written by template: what stands in for a model that is asked for code."""
