"""The server: its sockets, who may speak, what goes out to whom, and the dispatcher that does what is asked."""
