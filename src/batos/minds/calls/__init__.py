"""Calls: one question to the model within its window, and the answer held against the gate."""
