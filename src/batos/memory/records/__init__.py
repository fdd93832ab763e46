"""Records of memory: documents and parts, their places, pins, standings and copies, claims, folds and retractions."""
