"""The terminal: text that people and programs read, and the structured log."""
