"""HTTP APIs that nobody saw: a description in prose is read, and its replies are read and watched, by rule."""
