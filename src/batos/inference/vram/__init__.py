"""Video memory: what models take of a card, and where they lie after a load."""
