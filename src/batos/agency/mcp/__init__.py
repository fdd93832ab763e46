"""Tools of servers that speak the Model Context Protocol: a client that trusts nothing which a server says."""
