"""Concurrency: the thread that commits, work in threads, and deadlines by the clock."""
