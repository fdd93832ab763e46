"""The tools of a mission: whether a question needs one, which, with what, and what comes of it."""
