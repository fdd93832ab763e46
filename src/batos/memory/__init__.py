"""Memory: what an answer may rest on, cut into passages, ranked against a question, recalled within a budget."""
