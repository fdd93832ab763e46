"""Asking: one call to the model, from its question to an answer that was held against the gate."""
