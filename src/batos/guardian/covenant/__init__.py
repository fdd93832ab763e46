"""The Persistence Covenant by data flow: what may be changed, on which paths, and whether each of them is marked."""
