"""BAT OS: a local-first mind that lives in a database and thinks through Ollama."""

__version__ = "0.1.0"
