"""The adapters that personas think with: what their folder holds, whether it fits a base, what becomes of it."""
