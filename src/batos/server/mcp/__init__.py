"""The Model Context Protocol: hosts of other models reach the mind by tools, resources and prompts."""
