"""MCP at the HTTP door: one request in each POST, answered whole, or by a stream of progress where a tool is called."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from batos.client.pending import OnEvent, nobody
from batos.concurrency.threads import on_this_loop
from batos.protocol.brief import client_name
from batos.server.dispatch.guests import limit_guest
from batos.server.http.client_missions import ClientMissions, stopping
from batos.server.http.http_errors import WrongMedia
from batos.server.http.http_exchange import SSE, BodyMemory, Exchange, encode
from batos.server.mcp.mcp_messages import (
    HEADER_MISMATCH,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    UNKNOWN_VERSION,
    McpClient,
    McpError,
    McpRequest,
    Message,
    client_of,
    read_request,
)
from batos.server.mcp.mcp_service import McpService
from batos.version import __version__

#: The parameter that the header `mcp-name` repeats, by method.
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
#: The status of an error that is found before anything runs.
_STATUSES: Final = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNKNOWN_VERSION: 400,
    UNKNOWN_METHOD: 404,
}  # fmt: skip


class McpEndpoint:
    """Answers `POST /mcp` in both eras, without sessions: each request is known by its key alone."""

    def __init__(self, asking: ClientMissions, beat: float) -> None:
        self._asking, self._beat = asking, beat
        self._service = McpService(__version__)
        self._streams: set[asyncio.Event] = set()
        self._is_stopping = False

    def stop(self) -> None:
        """End every stream: its client is told that the server stops."""
        self._is_stopping = True
        for each in self._streams:
            each.set()

    async def post(self, exchange: Exchange, room: BodyMemory) -> None:
        """Answer one message."""
        if exchange.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise WrongMedia("a message of MCP is application/json", field="content-type", remedy="Name that type.")
        message = await exchange.read_object(room)
        try:
            request = read_request(message)
            if request is not None and request.is_modern:
                _check_headers(request, exchange.headers)
        except McpError as error:
            await self._whole(exchange, error.reply(message.get("id")))
            return
        if request is None:
            await exchange.reply(202, "application/json", b"")
            return
        client = self._client(exchange, request)
        if request.method == "tools/call":
            await exchange.stream(SSE, self._frames(request, client))
        else:
            await self._whole(exchange, await self._service.reply(request, client))

    async def _whole(self, exchange: Exchange, reply: Message) -> None:
        status = _STATUSES.get(reply["error"]["code"], 200) if "error" in reply else 200
        await exchange.reply(status, "application/json", encode(reply))

    def _client(self, exchange: Exchange, request: McpRequest) -> McpClient:
        came_in = exchange.came_in

        async def call(verb: str, args: Mapping[str, object], on_event: OnEvent) -> dict[str, Any]:
            limited = limit_guest(verb, args, came_in)
            return await self._asking.dispatcher.handle(verb, limited, on_this_loop(on_event), nobody)

        name = client_of(request) or exchange.headers.get("user-agent", "")
        return McpClient(call, came_in, client_name(name), is_person=self._asking.is_person(came_in))

    async def _frames(self, request: McpRequest, client: McpClient) -> AsyncIterator[bytes]:
        """Yield progress, a sign of life in silence, and the reply at the end; who leaves ends the waiting alone."""
        told: deque[Message] = deque(maxlen=256)  # a client that reads slowly misses progress, never the reply
        is_new = asyncio.Event()

        async def tell(message: Message) -> None:
            told.append(message)
            is_new.set()

        heard = replace(client, tell=tell)
        work = asyncio.ensure_future(self._service.reply(request, heard))
        work.add_done_callback(lambda _work: is_new.set())
        self._streams.add(is_new)
        try:
            while not (work.done() or self._is_stopping):
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._beat):
                        await is_new.wait()
                if not is_new.is_set():
                    yield b": beat\n\n"
                is_new.clear()
                while told:
                    yield _frame(told.popleft())
            yield _frame(work.result() if work.done() else McpError(INTERNAL, str(stopping())).reply(request.number))
        finally:
            self._streams.discard(is_new)
            work.cancel()


def _frame(message: Message) -> bytes:
    return b"event: message\ndata: %b\n\n" % encode(message)


def _check_headers(request: McpRequest, headers: Mapping[str, str]) -> None:
    """Hold the headers against the body, so that nothing between can take a request for another. Raises: McpError."""
    meta = request.params["_meta"]
    if headers.get("mcp-protocol-version") != meta["io.modelcontextprotocol/protocolVersion"]:
        raise McpError(HEADER_MISMATCH, "the header mcp-protocol-version is not the version in the body")
    if headers.get("mcp-method") != request.method:
        raise McpError(HEADER_MISMATCH, "the header mcp-method is not the method in the body")
    named = _NAMED.get(request.method)
    meant = None if named is None else request.params.get(named)
    if meant is not None and decode_header(headers.get("mcp-name", "")) != meant:
        raise McpError(HEADER_MISMATCH, f"the header mcp-name is not params.{named}")


def decode_header(value: str) -> str | None:
    """Return a header's value, which stands in base64 where it is not plain ASCII; None if that is malformed.

    >>> decode_header("ask"), decode_header("=?base64?w6Q=?="), decode_header("=?base64?!?=")
    ('ask', '\\xe4', None)
    """
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2].encode("ascii"), validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None
