"""The messages of MCP in both eras: with an envelope in each request since 2026-07-28, after a handshake before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from batos.client.pending import OnEvent

#: The version whose requests stand alone, and those that begin with a handshake, the newest first.
MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_META: Final = "io.modelcontextprotocol/"
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
HEADER_MISMATCH, UNKNOWN_VERSION = -32020, -32022

Message: TypeAlias = dict[str, Any]
#: Sends a message of ours to the client.
Tell: TypeAlias = Callable[[Message], Awaitable[None]]
#: Asks a verb of the mind, within the client's rights. Raises: BatosError.
Call: TypeAlias = Callable[[str, Mapping[str, object], OnEvent], Awaitable[dict[str, Any]]]


class McpError(Exception):
    """An error of the protocol, which a client reads by its code; that of a tool is a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data

    def reply(self, number: object) -> Message:
        """Return the reply to the request of this number; to none, where that is no number of a request."""
        known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
        error: Message = {"code": self.code, "message": str(self)}
        return {"jsonrpc": "2.0", "id": known, "error": error | ({} if self.data is None else {"data": self.data})}


@dataclass(frozen=True, slots=True)
class McpClient:
    """The client of a request: what it may call, and the ways to it while the request is under way.

    `identity` tells it from others. A person types what a client with `is_person` sends. `elicits` asks the person at
    the other end of a line that goes both ways; None: the line has no way back.
    """

    call: Call
    identity: str
    name: str = "unknown"
    is_person: bool = False
    tell: Tell | None = None
    elicits: Callable[[Message], Awaitable[Message]] | None = None


@dataclass(frozen=True, slots=True)
class McpRequest:
    """A request that was read: its era, and what its client can do."""

    number: object
    method: str
    params: Message
    is_modern: bool
    capabilities: Message = field(default_factory=dict)

    @property
    def progress_token(self) -> object:
        """Return the mark by which the client wants to be told of progress; None: it does not."""
        meta = self.params.get("_meta")
        found = meta.get("progressToken") if isinstance(meta, dict) else None
        return found if isinstance(found, str | int) else None

    def text(self, name: str) -> str:
        """Return a parameter that is a text. Raises: McpError: it is absent, or none."""
        found = self.params.get(name)
        if not isinstance(found, str):
            raise McpError(INVALID_PARAMS, f"params.{name} is a text that is needed")
        return found


def read_request(message: object) -> McpRequest | None:
    """Read a message; None: a notification, which nobody answers. Raises: McpError: it is neither, or of a version
    that is not spoken.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise McpError(INVALID_REQUEST, "a message is one request or notification of JSON-RPC 2.0")
    if "id" not in message:
        return None
    number, params = message["id"], message.get("params", {})
    if not isinstance(number, str | int) or isinstance(number, bool):
        raise McpError(INVALID_REQUEST, "the id of a request is a text or a whole number")
    if not isinstance(params, dict):
        raise McpError(INVALID_PARAMS, "params is an object")
    given = params.get("_meta")
    meta = given if isinstance(given, dict) else {}
    version = meta.get(f"{_META}protocolVersion")
    if version is None:
        return McpRequest(number, message["method"], params, is_modern=False)
    check_version(version)
    able = meta.get(f"{_META}clientCapabilities")
    if not isinstance(able, dict):
        raise McpError(INVALID_PARAMS, f"params._meta lacks {_META}clientCapabilities")
    return McpRequest(number, message["method"], params, is_modern=True, capabilities=able)


def check_version(version: object) -> None:
    """Refuse a version of the envelope that is not spoken. Raises: McpError."""
    if version != MODERN:
        told = {"supported": [MODERN], "requested": version if isinstance(version, str) else str(version)[:40]}
        raise McpError(UNKNOWN_VERSION, "unsupported protocol version", told)


def client_of(request: McpRequest) -> object:
    """Return what a client calls itself in a request's own envelope, or in its handshake; None if it does not."""
    meta = request.params.get("_meta")
    info = meta.get(f"{_META}clientInfo") if isinstance(meta, dict) else request.params.get("clientInfo")
    return info.get("name") if isinstance(info, dict) else None
