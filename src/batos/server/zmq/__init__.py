"""The ZeroMQ server: its sockets, who may open them, and what goes out to each peer."""
