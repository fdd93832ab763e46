"""Records of agency: grants, effects that missions staged, and the log of their outcomes."""
