"""Modules that the interpreter lacks and methods use: plain Python that runs in a worker, in front of the method."""
