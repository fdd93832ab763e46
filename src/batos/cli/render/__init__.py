"""Rendering: what people read of missions, methods, approvals and objects."""
