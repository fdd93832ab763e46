"""Chat templates, in Go and in Jinja."""
