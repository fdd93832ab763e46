"""The HTTP door: one listener for OpenAI clients, Ollama clients and metrics."""
