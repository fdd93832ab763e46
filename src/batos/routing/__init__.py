"""Routing: which persona leads a mission, and with how much effort."""
