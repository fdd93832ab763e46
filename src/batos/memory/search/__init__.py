"""Search in memory: parts by words, vectors and links, and what of them a question is shown."""
