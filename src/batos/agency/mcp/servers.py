"""Servers of tools at work: started for one call, compared with what was approved, asked, and ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from batos.agency.api_transport import ApiSender
from batos.agency.look_ups.page_fetching import Fetcher
from batos.agency.look_ups.web_addresses import parse_address
from batos.agency.mcp import http, listed_tools, server_commands, server_records
from batos.agency.mcp.connection import McpAnswer, McpConnection, McpTimes
from batos.agency.mcp.listed_tools import ListedTool
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.stdio import open_stdio
from batos.agency.records import effect_records
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.objects.prototype import reference
from batos.protocol.errors import BatosError, LookUpFailed, Refused
from batos.records.approval_subjects import Candidate

#: Asks a person within a change of the image; returns the question's id, and the telling for after the commit.
AsksIn: TypeAlias = Callable[[Root, Candidate], tuple[str, Callable[[], None]]]


def ask_nobody(_root: Root, _candidate: Candidate) -> tuple[str, Callable[[], None]]:
    """Ask nobody: here is no desk."""
    return "", lambda: None


def let_go() -> None:
    """Let a call be sent."""


@dataclass(frozen=True, slots=True)
class ServerOpener:
    """Opens servers with the variables of this process and the secrets of a home."""

    home: Path
    times: McpTimes = field(default_factory=McpTimes)
    make_fetcher: Callable[[float], Fetcher] = http.make_fetcher
    variables: Mapping[str, str] | None = None

    @asynccontextmanager
    async def open(self, server: McpServer) -> AsyncIterator[McpConnection]:
        """Open a server. Raises: Refused: it is not the program that was granted. LookUpFailed: it does not answer."""
        if server.url:
            secret = (
                await asyncio.to_thread(ApiSender(self.home).read_secret, server.name) if server.secret_header else ""
            )
            more = {server.secret_header: secret} if secret else {}
            way = http.HttpTransport(parse_address(server.url), self.make_fetcher(self.times.call), more)
            connection = McpConnection(way, self.times)
            await connection.open()
            try:
                yield connection
            finally:
                with suppress(BatosError):
                    await way.close()
            return
        await self._check_program(server)
        async with open_stdio(server.command, self._env_of(server)) as process:
            connection = McpConnection(process, self.times)
            await connection.open()
            yield connection

    async def _check_program(self, server: McpServer) -> None:
        found = await asyncio.to_thread(server_commands.digest_files, server.command)
        other = next((path for path, digest in server.files.items() if found.get(path) != digest), None)
        if other is not None:
            remedy = f"If that is right: batos grants revoke {server.name}, and grant it anew."
            raise Refused(f"{other} is not what it was when {server.name} was granted", field="grants", remedy=remedy)

    def _env_of(self, server: McpServer) -> dict[str, str]:
        known = os.environ if self.variables is None else self.variables
        missing = next((each for each in server.env if each not in known), None)
        if missing is not None:
            what = f"the variable {missing} of {server.name} is not set where BAT OS runs"
            raise Refused(what, field="env", remedy="Set it before `batos serve`, or grant the server without it.")
        return {each: known[each] for each in server.env}

    async def list_tools(self, server: McpServer) -> dict[str, ListedTool]:
        """Return the tools that a server lists now. Raises: as `open`; LookUpFailed: two have one name."""
        with _prefix_errors(server):
            async with self.open(server) as connection:
                return listed_tools.read_tools(await connection.list_tools())


@contextmanager
def _prefix_errors(server: McpServer) -> Iterator[None]:
    """Name the server in the errors of what it does."""
    try:
        yield
    except LookUpFailed as error:
        raise LookUpFailed(f"the server {server.name}: {error.message}", remedy=error.remedy) from error


@dataclass(slots=True)
class McpServers:
    """Calls tools of granted servers, each in a process or a conversation of its own."""

    opener: ServerOpener
    image: LivingImage
    clock: Callable[[], datetime]
    ask: AsksIn

    async def call(
        self, name: str, nonce: str, tool: str, arguments: Mapping[str, Any], before: Callable[[], None] = let_go
    ) -> McpAnswer:
        """Return what a tool brings; `before` is called right before it is sent.

        Raises: Refused: the grant or the tool is not what was approved. LookUpFailed: the server does not answer.
        """
        server = await asyncio.to_thread(self._find, name, nonce)
        with _prefix_errors(server):
            async with self.opener.open(server) as connection:
                listed = listed_tools.read_tools(await connection.list_tools())
                asked = await self._note(server, listed)
                pin = server.pins.get(tool)
                if pin is None or tool not in listed or listed[tool].digest != pin.digest:
                    why = "is listed by its server no more" if tool not in listed else "is not what was approved"
                    shows = f"batos approvals {asked}" if asked else f"batos grants show {name}"
                    remedy = f"`{shows}` shows what its server says now."
                    raise Refused(f"{name}.{tool} {why}", field="tool", remedy=remedy)
                return await connection.call(tool, arguments, pin.form.mirrored if server.url else {}, before)

    def _find(self, name: str, nonce: str) -> McpServer:
        with self.image.snapshot() as root:
            found = effect_records.find_capability(root, name)
            if not server_records.is_server(found) or effect_records.nonce_of(found) != nonce:
                raise Refused(f"the grant {name!r} was revoked meanwhile", field="grants", remedy="Ask again.")
            return server_records.read_server(found)

    async def _note(self, server: McpServer, listed: Mapping[str, ListedTool]) -> str:
        """Withdraw what changed, and ask a person about it and about new tools; return the question's id, or ""."""
        if not server_records.find_changes(server, listed) and not server.withdrawn:
            return ""
        at, tells = iso(self.clock()), list[Callable[[], None]]()

        def change(root: Root) -> str:
            capability = effect_records.find_capability(root, server.name)
            if capability is None or effect_records.nonce_of(capability) != server.nonce:
                return ""
            server_records.note_list(capability, listed)
            question = server_records.question_about(server, reference(capability), listed, at)
            if question is None:
                return ""
            asked, tell = self.ask(root, question)
            tells[:] = [tell]
            return asked

        asked = await self.image.shared.apply(change)
        for tell in tells:
            tell()
        return asked
