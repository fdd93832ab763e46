"""Routing: what the words and the meaning of a question say of who should take it, learnt from the codex."""
