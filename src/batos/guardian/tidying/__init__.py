"""Common shapes of small models' code, read as the dialect's own: what means the same is written the same."""
