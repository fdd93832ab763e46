"""Write methods by template, in place of a model that is asked for code."""
