"""Everything that a model does: the bridge to Ollama, decision schemas, the journal of what was paid for."""
