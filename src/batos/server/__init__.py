"""The server: one dispatcher for every door, and the sockets in front of it."""
