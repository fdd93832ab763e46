"""Simulate the machine: which models are loaded, on which memory, and how fast they are."""
