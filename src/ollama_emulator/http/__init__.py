"""The HTTP/1.1 server under the emulated daemon."""
