"""The first day of an image and every day after: the codex read, the graph built, the models made."""
