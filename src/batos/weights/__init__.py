"""Headers of weights files, read without the weights: what the emulator stores and genesis checks."""
