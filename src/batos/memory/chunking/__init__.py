"""Cutting a document into parts by its structure."""
