"""The kernel's side of a generated method: what it is shown, what it may ask for, and what of it reaches the image."""
