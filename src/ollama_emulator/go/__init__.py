"""What of the daemon shows that it is written in Go: JSON, types, and text/template."""
