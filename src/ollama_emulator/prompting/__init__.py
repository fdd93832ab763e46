"""Turn a request into a prompt, read it as the runner does, and compose the answer."""
