"""The daemon's routes and their handlers."""
