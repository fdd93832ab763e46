"""A stand-in for the Ollama daemon that speaks its wire: no model is behind it, and its answers say so."""
