"""Go's JSON, its types and its text/template, as far as the daemon's replies depend on them."""
