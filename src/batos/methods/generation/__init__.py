"""Generation: a coder asked for a method, its reply tried, and a candidate made of it."""
