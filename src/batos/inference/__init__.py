"""All use of a model: the bridge to Ollama, decision schemas, and the journal of paid answers."""
