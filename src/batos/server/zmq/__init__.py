"""The ZeroMQ server: its sockets, the rights to open them, and the messages to each peer."""
