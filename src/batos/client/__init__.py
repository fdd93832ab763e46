"""Clients for other programs: asynchronous, and the same for synchronous ones."""
