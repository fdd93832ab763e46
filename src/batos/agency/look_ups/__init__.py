"""Look-ups: what a mission may read of the world by a grant, each behind one protocol."""
