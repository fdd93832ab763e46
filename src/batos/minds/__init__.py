"""Minds: the context of a mission's thought, its prompt, and the states that it goes through."""
