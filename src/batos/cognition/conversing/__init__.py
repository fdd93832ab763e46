"""Conversing: turns that are kept for ever, and the view of the older ones in few words."""
