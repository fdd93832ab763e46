"""Ollama: the bridge to the daemon, the transport under it, and the replies that are accepted."""
