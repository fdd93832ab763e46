"""A mind and its parts: its facets, or at effort council the personas; the protocols it may apply."""
