"""Open a server that leaves children behind, say so, and wait: the test kills this process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import ServerOpener


async def main() -> None:
    """Open, and wait."""
    server = McpServer("tides", "tester", command=(sys.executable, *sys.argv[1:]))
    async with ServerOpener(Path()).open(server) as connection:
        await connection.list_tools()
        sys.stdout.write("open\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
