"""The parts of Go that the daemon's replies show: JSON, types, and text/template."""
