"""Decisions: pydantic models as schemas that the daemon enforces, and replies read back strictly."""
