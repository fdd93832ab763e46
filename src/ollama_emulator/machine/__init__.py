"""The simulated machine: who is loaded, where, and how fast it is."""
