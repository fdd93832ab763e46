"""The laws of a connection to a server of tools: both ways to it, and both eras of the protocol, inherit them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batos.agency.mcp import listed_tools
from batos.agency.mcp.connection import MODERN, McpAnswer, McpConnection, McpTimes
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import ServerOpener, let_go
from batos.protocol.errors import LookUpFailed


class ConnectionLaws:
    """A subclass says which era it is, and has a fixture `server`."""

    is_modern = True

    @pytest.fixture
    def opener(self, tmp_path: Path) -> ServerOpener:
        """What opens the server, with the one variable that it is given."""
        variables = {"BELL": str(tmp_path / "bell"), "SECRET": "never passed"}
        return ServerOpener(tmp_path, McpTimes(opening=30.0, probe=20.0, call=20.0), variables=variables)

    async def test_the_era_is_found_and_the_tools_are_listed(self, opener: ServerOpener, server: McpServer) -> None:
        """With all that is pinned of them."""
        async with opener.open(server) as found:
            assert (found.version == MODERN) == self.is_modern
            tools = listed_tools.read_tools(await found.list_tools())
        assert sorted(tools) == ["dawdle", "fail", "high_tide", "ring_bell", "write_much"]
        assert tools["high_tide"].form.parameters["properties"]["unit"]["enum"] == ["metres", "feet"]
        assert listed_tools.read_tools([tools["fail"].told])["fail"].digest == tools["fail"].digest

    async def test_a_tool_is_called(self, opener: ServerOpener, server: McpServer) -> None:
        """Also with words beyond ASCII; each call is its own."""
        async with opener.open(server) as found:
            for harbour in ("Maro", "Märö \u2028", "Märö"):
                answer = await ask(found, "high_tide", {"harbour": harbour})
                assert answer == McpAnswer(f"The next high tide of {harbour} is at 14:32, 3 metres.")

    async def test_failures_of_a_tool_are_told_as_such(self, opener: ServerOpener, server: McpServer) -> None:
        """Its own error, wrong arguments, and a tool that is not there."""
        async with opener.open(server) as found:
            for tool, given in (("fail", {"why": "no"}), ("ring_bell", {"times": "often"}), ("nothing", {})):
                assert (await ask(found, tool, given)).failed

    async def test_a_call_has_a_deadline(self, opener: ServerOpener, server: McpServer) -> None:
        """The server is let go of meanwhile."""
        hasty = ServerOpener(opener.home, McpTimes(30.0, 20.0, call=0.3), variables=opener.variables)
        async with hasty.open(server) as found:
            with pytest.raises(LookUpFailed, match=r"did not answer"):
                await ask(found, "dawdle", {"seconds": 60})

    async def test_a_result_has_a_bound(self, opener: ServerOpener, server: McpServer) -> None:
        """Just below it is whole, above it is refused, and far above it is not taken in."""
        async with opener.open(server) as found:
            assert len((await ask(found, "write_much", {"letters": 2**20})).text) == 2**20
            with pytest.raises(LookUpFailed, match="more than 1,048,576"):
                await ask(found, "write_much", {"letters": 2**20 + 1})
            with pytest.raises(LookUpFailed, match="more than"):
                await ask(found, "write_much", {"letters": 10_000_000})


async def ask(connection: McpConnection, tool: str, given: Mapping[str, Any]) -> McpAnswer:
    """Call a tool."""
    return await connection.call(tool, given, {}, let_go)
