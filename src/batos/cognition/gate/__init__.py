"""The quality gate: what an answer may rest on, and the pure checks that hold it against that."""
