"""Execution: a method run in the cell on behalf of a mission, and its writes taken over at a good end."""
