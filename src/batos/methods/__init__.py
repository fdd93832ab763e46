"""Methods: what a message runs, how a coder writes it, and how long it stays."""
