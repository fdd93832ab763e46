"""The gate: checks of an answer that are computed, not asked for."""
