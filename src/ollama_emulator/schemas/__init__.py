"""JSON schemas: refused, enforced, and answered with an instance."""
