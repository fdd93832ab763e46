"""The verbs of memory that read files or stdin, or name memories by paths."""
