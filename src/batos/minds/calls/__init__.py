"""Calls: one question to the model within its window, and the gate's check of the answer."""
