"""The doctor finds the faults of an installation, and names a remedy for each."""
