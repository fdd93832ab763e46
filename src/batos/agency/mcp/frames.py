"""Messages of the Model Context Protocol on the wire: lines of JSON-RPC, and the events of an HTTP stream."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from batos.protocol import brief_checks
from batos.protocol.errors import LookUpFailed

#: The most bytes of one message, and of all that comes before the answer to a request.
MOST_MESSAGE, MOST_BYTES = 4 * 2**20, 8 * 2**20
#: The code of the error by which a request of a server is refused: this client has no method.
NO_METHOD: Final = -32_601

Frame: TypeAlias = Mapping[str, Any]
#: Takes a piece of a stream, and returns whether enough of it came.
Ends: TypeAlias = Callable[[bytes], bool]


class RpcFailed(LookUpFailed):
    """A server answered a request with an error."""

    def __init__(self, error: object) -> None:
        told: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
        self.number = told.get("code")
        self.data = told.get("data")
        said = " ".join(str(told.get("message", "no reason")).split())
        super().__init__(f"it answered with an error: {said[:200]}")


class Transport(Protocol):
    """The way to one server, as long as it is open."""

    async def exchange(self, frame: Frame, headers: Mapping[str, str]) -> Frame:
        """Send a request, and return the response that has its id. Raises: LookUpFailed: there is none."""
        ...

    async def notify(self, frame: Frame, headers: Mapping[str, str]) -> None:
        """Send a notification, which nobody answers. Raises: LookUpFailed: it is not taken."""
        ...


def encode(frame: Frame) -> bytes:
    """Return a message in one line, without its end. Raises: ValueError: it is no plain data."""
    return json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def decode(data: bytes) -> Frame | None:
    """Return the message in a line or an event; None where it is no message: what a program prints besides, is none."""
    try:
        found = json.loads(data)
        brief_checks.plain_json(found, MOST_MESSAGE)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("jsonrpc") == "2.0" else None


def is_response(frame: Frame, number: object) -> bool:
    """Test if a message is the response to the request of this id."""
    known = frame.get("id")
    return "method" not in frame and ("result" in frame or "error" in frame) and known == number


def is_request(frame: Frame) -> bool:
    """Test if a message is a request of the server, such as for sampling: all of them are refused."""
    return isinstance(frame.get("method"), str) and frame.get("id") is not None


def refuse(frame: Frame) -> Frame:
    """Return the refusal of a server's request."""
    return {"jsonrpc": "2.0", "id": frame["id"], "error": {"code": NO_METHOD, "message": "this client answers nothing"}}


def header_value(text: str) -> str:
    """Return a text as a header has it: plain ASCII as it is, else in the protocol's form of base64.

    >>> header_value("tide"), header_value("Flut für heute")
    ('tide', '=?base64?Rmx1dCBmw7xyIGhldXRl?=')
    """
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if plain else f"=?base64?{b64encode(text.encode()).decode()}?="


class EventReader:
    """Reads the events of a stream (`text/event-stream`) piece by piece."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that end within a piece."""
        found = []
        for line in self._lines(piece):
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                found.append(b"\n".join(self._data))
                self._data = []
        return found

    def _lines(self, piece: bytes) -> list[bytes]:
        """Return the lines that end within a piece; a CR at its end may belong to an LF."""
        self._held.append(piece)
        is_open = self._held[-2:-1] and self._held[-2].endswith(b"\r")
        if not is_open and b"\n" not in piece and b"\r" not in piece:
            return []
        text = b"".join(self._held)
        last = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._held = [rest + last]
        return lines
