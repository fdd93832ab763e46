"""Models that come from a registry, simulated or on this machine."""
