"""What client and server share: the messages, the addresses, the keys, and a connection from end to end."""
