"""A conversation with one server of the Model Context Protocol: the era is found out, tools are listed and called.

The newer era is asked for first (`server/discover`, no session); a server that does not know it is greeted as before
(`initialize`). Nothing that a server asks for is given: no sampling, no roots, no input.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from batos import __version__
from batos.agency.mcp.frames import Frame, RpcFailed, Transport, header_value
from batos.protocol.errors import LookUpFailed

#: The versions of the protocol: of the newer era, and those of the older one, the newest first.
MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
#: The most tools of a server, pages of its list, and characters of a result.
MOST_TOOLS, MOST_PAGES, MOST_TEXT = 100, 20, 2**20
_UNSUPPORTED: Final = -32_022
_ABOUT: Final = {"name": "batos", "version": __version__}
_META: Final = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class McpTimes:
    """Seconds: to open a server, for its first sign of the newer era, and for one call."""

    opening: float = 30.0
    probe: float = 5.0
    call: float = 60.0


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """The text that a tool brought; `failed`: the tool says that it did not do it."""

    text: str
    failed: bool = False


@dataclass(slots=True)
class McpConnection:
    """Asks one server; `version` is the protocol's that both speak."""

    transport: Transport
    times: McpTimes
    version: str = MODERN
    _number: int = 0

    async def open(self) -> None:
        """Find out the server's era. Raises: LookUpFailed: it does not answer, or speaks no version that is known."""
        async with _deadline(self.times.opening):
            try:
                async with asyncio.timeout(self.times.probe):
                    found = await self._ask("server/discover", {})
            except (RpcFailed, TimeoutError):
                found = {}
            known = found.get("supportedVersions")
            if not isinstance(known, list) or MODERN not in known:
                await self._greet()

    async def _greet(self) -> None:
        self.version = LEGACY[0]
        asked = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": _ABOUT}
        try:
            found = await self._ask("initialize", asked)
        except RpcFailed as error:
            supported = error.data.get("supported") if isinstance(error.data, Mapping) else None
            if error.number != _UNSUPPORTED or not isinstance(supported, list) or MODERN not in supported:
                raise
            self.version = MODERN  # it was asked before it was ready, and is of the newer era after all
            return
        if found.get("protocolVersion") not in LEGACY:
            raise LookUpFailed(f"it speaks version {str(found.get('protocolVersion'))[:40]!r} of the protocol")
        self.version = str(found["protocolVersion"])
        await self.transport.notify({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers("", {}))

    async def list_tools(self) -> list[Frame]:
        """Return the tools as the server tells them. Raises: LookUpFailed: it has too many, or does not answer."""
        found: list[Frame] = []
        asked: dict[str, object] = {}
        async with _deadline(self.times.opening):
            for _ in range(MOST_PAGES):
                told = await self._ask("tools/list", asked)
                tools = told.get("tools")
                found += [each for each in tools if isinstance(each, dict)] if isinstance(tools, list) else []
                asked = {"cursor": told["nextCursor"]} if isinstance(told.get("nextCursor"), str) else {}
                if not asked or len(found) > MOST_TOOLS:
                    break
        if asked or len(found) > MOST_TOOLS:
            raise LookUpFailed(f"it has more than {MOST_TOOLS} tools", remedy="Start it with fewer of them.")
        return found

    async def call(
        self, tool: str, arguments: Mapping[str, Any], mirrored: Mapping[str, str], before: Callable[[], None]
    ) -> McpAnswer:
        """Return what a tool brings; `before` is called right before the call is sent.

        `mirrored` are the arguments that the newer era wants in a header too, each with the name of its header.
        Raises: LookUpFailed: the server does not answer in time, or with too much, or asks for something.
        """
        more = {f"Mcp-Param-{name}": header_value(_scalar(arguments[each])) for each, name in mirrored.items()
                if arguments.get(each) is not None}  # fmt: skip
        async with _deadline(self.times.call):
            before()
            told = await self._ask("tools/call", {"name": tool, "arguments": dict(arguments)}, more)
        if told.get("resultType", "complete") != "complete":
            raise LookUpFailed("it asks for more input in the middle of the call, which is refused")
        text = _text_of(told)
        if len(text) > MOST_TEXT:
            raise LookUpFailed(f"it brought {len(text):,} characters, more than {MOST_TEXT:,}")
        return McpAnswer(text, told.get("isError") is True)

    async def _ask(self, method: str, params: Mapping[str, Any], more: Mapping[str, str] | None = None) -> Frame:
        self._number += 1
        if self.version == MODERN:
            told = {"protocolVersion": MODERN, "clientInfo": _ABOUT, "clientCapabilities": {}}
            params = {**params, "_meta": {f"{_META}{name}": value for name, value in told.items()}}
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        reply = await self.transport.exchange(frame, {**self._headers(method, params), **(more or {})})
        found = reply.get("result")
        if "error" in reply or not isinstance(found, dict):
            raise RpcFailed(reply.get("error"))
        return found

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers that a message has over HTTP beside the transport's own."""
        if method == "initialize":
            return {}
        named = {"Mcp-Name": header_value(params["name"])} if method == "tools/call" else {}
        of_era = {"Mcp-Method": method, **named} if self.version == MODERN else {}
        return {"MCP-Protocol-Version": self.version, **of_era}


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    """End what takes longer. Raises: LookUpFailed."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise LookUpFailed(f"it did not answer within {seconds:g} s") from error


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text_of(told: Frame) -> str:
    """Return the texts of a result; without one, its data as JSON. A part that is no text is named and left out."""
    parts: Sequence[Any] = told["content"] if isinstance(told.get("content"), list) else ()
    texts = []
    for each in (part for part in parts if isinstance(part, dict)):
        inner: Frame = each["resource"] if isinstance(each.get("resource"), dict) else each
        if isinstance(inner.get("text"), str):
            texts.append(inner["text"])
        elif isinstance(inner.get("uri"), str):
            texts.append(f"{inner.get('name', '')} {inner['uri']}".strip())
        else:
            texts.append(f"({str(each.get('type', 'a part'))[:20]}, left out)")
    if not texts and told.get("structuredContent") is not None:
        return json.dumps(told["structuredContent"], ensure_ascii=False)
    return "\n\n".join(texts)
