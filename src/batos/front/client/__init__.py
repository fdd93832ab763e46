"""The client for other programs: AsyncClient, and Client, which is generated from it for synchronous programs."""
