"""Conversations: their turns, the files that belong to them, and summaries of the older ones."""
