"""Indexes of memory: immutable segments of bytes, and what is built of them in a process to search them."""
