"""An emulator of the Ollama daemon for tests: the same HTTP API without a model; its answers say so."""
