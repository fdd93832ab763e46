"""Render chat templates, those of the daemon in Go and those of the weights in Jinja."""
