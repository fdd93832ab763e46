"""Doors: the ways in which a verb reaches an image, held by a server, by this process, or read on disk."""
