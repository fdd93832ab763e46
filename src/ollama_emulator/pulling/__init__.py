"""Pull models from a simulated registry, or from a real one on this machine."""
