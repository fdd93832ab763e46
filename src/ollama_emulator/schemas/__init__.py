"""Refuse JSON schemas as the runner does, check values against them, and draw instances from a prompt."""
