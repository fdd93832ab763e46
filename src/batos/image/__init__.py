"""The Living Image: storage, missions as transactions, the publisher, what the database may load."""
