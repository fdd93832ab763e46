"""Parts of a mind: facets, personas, key protocols, and the window that they share."""
