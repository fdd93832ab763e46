"""Nodes: several processes that share an image on a server, their leases, claims and server storages."""
