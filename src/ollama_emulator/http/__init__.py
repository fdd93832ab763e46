"""Serve HTTP/1.1 as the daemon's Go server does."""
