"""Other views of an image: as it was, read only, and with changes that are thrown away."""
