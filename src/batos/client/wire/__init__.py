"""The wire between client and server: addresses, keys, messages and their shapes."""
