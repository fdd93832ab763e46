"""Each recorded exchange as one call of the bridge: what is asked, and what a server says, in which framing."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.inference.raw_server import CLOSE, END, HOLD, Script, Step, chunk, exchanges, recorded, reply
from tests.waiting import HANG

from batos.inference.ollama.bridge import Answer, Bridge, ChatRequest, PullProgress
from batos.inference.ollama.chat import checked_model
from batos.protocol.errors import UsageError

Kind: TypeAlias = Literal[
    "think", "load", "unload", "embed", "version", "list", "ps", "show", "pull", "create", "delete", "has", "upload"
]
Framing: TypeAlias = Literal["recorded", "length", "chunks", "closed"]

FRAMINGS: tuple[Framing, ...] = ("recorded", "length", "chunks", "closed")

_BY_PATH: dict[str, Kind] = {
    "/": "version",
    "/api/version": "version",
    "/api/tags": "list",
    "/api/ps": "ps",
    "/api/show": "show",
    "/api/pull": "pull",
    "/api/create": "create",
    "/api/delete": "delete",
    "/api/copy": "delete",  # it answers as delete does, and there is no call for it
    "/api/generate": "think",
    "/api/embed": "embed",
    "/api/embeddings": "embed",
    "/v1/chat/completions": "think",
    "/v1/embeddings": "embed",
}
_ABSENT = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True)
class Exchange:
    """One line of the recordings."""

    file: str
    number: int

    @property
    def row(self) -> dict[str, Any]:
        """The line itself."""
        return exchanges(self.file)[self.number]

    @property
    def asked(self) -> dict[str, Any]:
        """The request's JSON body, {} where it had none."""
        body = self.row["request"].get("json")
        return body if isinstance(body, dict) else {}

    @property
    def lines(self) -> list[str] | None:
        """The lines of a streamed answer, None for one in one piece."""
        lines: list[str] | None = self.row["response"].get("lines")
        return lines

    @property
    def cut(self) -> bool:
        """Whether the client left in the middle."""
        return "cut_by_client_after_lines" in self.row

    @property
    def said(self) -> str:
        """The exchange in one line, on which the rules are written: `METHOD path -> status text`."""
        request, response = self.row["request"], self.row["response"]
        head = f"{request['method']} {request['path']} -> {response.get('status', 'nothing')}"
        shown = response.get("text") or "" if self.lines is None else self.lines[-1] if self.lines else ""
        return f"{head}{' cut' if self.cut else ''} {shown.strip()}"

    @property
    def kind(self) -> Kind:
        """The call of the bridge that meets this answer, or the nearest to it."""
        request = self.row["request"]
        method, path = request["method"], request["path"]
        if method == "HEAD":
            return "has"
        if path.startswith("/api/blobs/"):
            return "upload" if method == "POST" else "list"
        if path == "/api/chat" and method == "POST":
            if self.asked.get("messages") == [] and self.row["response"].get("status") == 200:
                return "unload" if self.asked.get("keep_alive") == 0 else "load"
            return "think"
        if path == "/api/embed" and '"embeddings":[]' in self.said:
            return "load"  # no text
        return _BY_PATH.get(path, "think" if path == "/api/chat" else "list")

    @property
    def model(self) -> str:
        """The model that was asked for, where the bridge would ask for it too; else one that it would."""
        name = self.asked.get("model")
        try:
            return checked_model(name) if isinstance(name, str) else "robin"
        except UsageError:
            return "robin"

    @property
    def stream(self) -> bool:
        """Whether a chat was asked for in a stream; where nothing came, so that its deadline is a short one."""
        if "status" not in self.row["response"]:
            return True
        return bool(self.asked.get("stream", not self.row["request"]["path"].startswith("/v1")))

    @property
    def texts(self) -> list[str]:
        """What was to be embedded."""
        given = self.asked.get("input", "x")
        texts = given if isinstance(given, list) else [given]
        return [text if isinstance(text, str) else "x" for text in texts]


def every() -> list[Exchange]:
    """All recorded exchanges."""
    return [Exchange(file, number) for file in ("exchanges", "limits") for number in exchanges(file)]


def chat_of(exchange: Exchange) -> ChatRequest:
    """The recorded chat as the bridge asks it: its own options where it would send them, else permitted ones."""
    options = exchange.asked.get("options")
    limit = options.get("num_predict") if isinstance(options, dict) else None
    schema = exchange.asked.get("format")
    if not exchange.stream:
        limit = 1  # it only says how long to wait, and all that comes lies ready
    return ChatRequest(
        model=exchange.model,
        messages=({"role": "user", "content": "Tell me of water."},),
        options={"num_ctx": 512, "num_predict": limit if type(limit) is int and limit > 0 else 4096},
        schema=schema if isinstance(schema, dict) else None,
    )


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came of a call: its value, and the pieces of an answer that were heard on the way."""

    value: Any
    heard: str = ""


async def meet(exchange: Exchange, bridge: Bridge, file: Path) -> CallOutcome:
    """Make the call; `file` is what an upload sends."""
    if exchange.kind == "think":
        heard: list[str] = []
        answer: Answer = await bridge.think(chat_of(exchange), heard.append, stream=exchange.stream)
        return CallOutcome(answer, "".join(heard))
    return CallOutcome(await _CALLS[exchange.kind](exchange, bridge, file))


async def _steps(steps: Any) -> list[PullProgress]:
    async with aclosing(steps):
        return [step async for step in steps]


_CALLS: dict[str, Callable[[Exchange, Bridge, Path], Awaitable[Any]]] = {
    "load": lambda exchange, bridge, _: bridge.load(exchange.model, {"num_ctx": 512}),
    "unload": lambda exchange, bridge, _: bridge.unload(exchange.model, within=HANG),
    "embed": lambda exchange, bridge, _: bridge.embed(exchange.model, exchange.texts),
    "version": lambda _, bridge, __: bridge.version(),
    "list": lambda _, bridge, __: bridge.list(),
    "ps": lambda _, bridge, __: bridge.ps(),
    "show": lambda exchange, bridge, _: bridge.show(exchange.model),
    "pull": lambda exchange, bridge, _: _steps(bridge.pull(exchange.model)),
    "create": lambda exchange, bridge, _: _steps(bridge.create(exchange.model, from_="base-a")),
    "delete": lambda exchange, bridge, _: bridge.delete(exchange.model),
    "has": lambda _, bridge, __: bridge.has_blob(_ABSENT),
    "upload": lambda _, bridge, file: bridge.upload_blob(file),
}

_NO_MODELS = reply({"models": []})


def scripts(exchange: Exchange, framing: Framing) -> list[Script]:
    """What a server says to all requests of the call, the recorded answer in its place."""
    shown, refused, absent = recorded(190), recorded(274), recorded(111)
    around: dict[str, tuple[list[Script], list[Script]]] = {
        "create": ([shown], []),
        "unload": ([shown, _NO_MODELS], [_NO_MODELS]),
        "upload": ([absent], []),
    }
    before, after = around.get(exchange.kind, ([], []))
    if exchange.kind == "load" and exchange.row["request"]["path"] == "/api/embed":
        before = [refused]  # an embedding model: the chat that would load it is refused first
    return [*before, framed(exchange, framing), *after]


def body_of(exchange: Exchange) -> bytes:
    """The bytes of the answer's body."""
    if exchange.lines is None:
        return str(exchange.row["response"].get("text") or "").encode()
    return b"".join(line.rstrip("\n").encode() + b"\n" for line in exchange.lines)


def framed(exchange: Exchange, framing: Framing) -> Script:
    """The recorded answer: as it came, of a known length, in chunks that cut its lines, or until the connection's end.

    All but the first leave the server in segments that end anywhere.
    """
    response = exchange.row["response"]
    if "status" not in response:
        return HOLD
    body, headers = body_of(exchange), dict(response["headers"])
    was_cut: list[Step] = [CLOSE] if exchange.cut else []
    headers.pop("transfer-encoding", None)
    length = headers.pop("content-length", str(len(body)))
    if exchange.row["request"]["method"] == "HEAD":
        return [_head(response, headers | {"content-length": length})]
    if framing == "recorded" and exchange.lines is not None:
        start = _head(response, headers | {"transfer-encoding": "chunked"})
        chunks = [chunk(line) for line in body.splitlines(keepends=True)]
        return [start, *chunks, *(was_cut or [END])]
    if framing == "chunks":
        cuts = segments(body, 1 + len(body) // 40)
        whole = _head(response, headers | {"transfer-encoding": "chunked"}) + b"".join(map(chunk, cuts))
        return [*_dripping(whole if exchange.cut else whole + END), *was_cut]
    if framing == "closed":
        return [*_dripping(_head(response, headers | {"connection": "close"}) + body), CLOSE]
    more = 100 if exchange.cut else 0
    whole = _head(response, headers | {"content-length": str(len(body) + more)}) + body
    return [whole, *was_cut] if framing == "recorded" else [*_dripping(whole), *was_cut]


def segments(data: bytes, size: int) -> list[bytes]:
    """The bytes in pieces of a size."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def _dripping(data: bytes) -> Sequence[Step]:
    """The bytes in about sixty segments, which are sent one after the other."""
    pieces: list[Step] = []
    for piece in segments(data, 1 + len(data) // 61):
        pieces += [piece, 0.0]
    return pieces


def _head(response: dict[str, Any], headers: dict[str, str]) -> bytes:
    shown = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {response['status']} X\r\n{shown}\r\n".encode()


def last_of(exchange: Exchange) -> dict[str, Any]:
    """The last JSON object of the answer."""
    found: dict[str, Any] = json.loads(body_of(exchange).splitlines()[-1])
    return found
