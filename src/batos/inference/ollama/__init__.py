"""Ollama: the bridge to the daemon, the transport under it, and what it may answer."""
