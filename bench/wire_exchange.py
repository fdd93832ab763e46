"""Recorded exchanges with a daemon: one JSON object a line, read into requests and replies.

An exchange is {"n", "scenario", "note", "request", "response"} and what happened around it: `group` (sent together with
its neighbours of that name, `sent_ms` after the first), `cut_by_client_after_lines` (the client left there). A request
is {"method", "path", "headers"?} with one of `json`, `text` and `blob` (a file of the models). A response is {"status",
"headers"?, "ms"?} with `text` or `lines` (and `line_ms`?), or {"transport_error", "ms"?}: the client gave up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

LEFT = "gave up"  # how the fault of a reply begins whose client left before its end
PROGRESS_MS = 60.0  # between two lines of a download
_MOST = 1e15  # of any number: thirty thousand years in milliseconds
_ASKED = {"method": str, "path": str, "headers": dict, "text": str, "blob": str}
LOADED_NS = 100_000_000  # a load_duration above this is a load, below it is waiting


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply, to the recorder or to a replay; `status` None: the client left before there was any.

    Header names are in lower case. `lines` is None where the reply was not read line by line; `text` is the whole body.
    Not `headed`: the recorder kept no headers.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    lines: tuple[str, ...] | None = None
    line_ms: tuple[float, ...] = ()
    ms: float = 0.0
    fault: str = ""
    headed: bool = True

    def objects(self) -> Iterator[Any]:
        """Yield every JSON value in the reply: of the lines (server-sent events too), or of the text."""
        for line in self.lines if self.lines is not None else (self.text,):
            try:
                yield json.loads(line.removeprefix("data: "))
            except (ValueError, RecursionError):
                continue  # an empty line, plain text, the end mark of an event stream


@dataclass(frozen=True, slots=True)
class Exchange:
    """A recorded request and the daemon's reply."""

    n: int
    scenario: str
    note: str
    request: Mapping[str, Any]
    reply: Reply
    group: str | None = None
    sent_ms: float = 0.0
    cut_after: int | None = None

    @property
    def method(self) -> str:
        """Return the HTTP method of the request."""
        return str(self.request["method"])

    @property
    def path(self) -> str:
        """Return the path of the request."""
        return str(self.request["path"])

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the JSON object that was sent; empty where none was."""
        sent = self.request.get("json")
        return sent if isinstance(sent, dict) else {}

    @property
    def key(self) -> str:
        """Return a key that equal requests share."""
        return json.dumps(self.request, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of exchanges, in order, with the digest of its bytes and the folder of the models that were used."""

    exchanges: tuple[Exchange, ...]
    digest: str
    models: Path

    @classmethod
    def read(cls, path: Path, models: Path) -> Recording:
        """Read a file; OSError, or ValueError that names the line which is no exchange."""
        data = path.read_bytes()
        found = []
        for number, line in enumerate(data.decode("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                found.append(_exchange({"n": number, "scenario": "", **json.loads(line)}))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
                raise ValueError(f"{path}: line {number} is no recorded exchange: {fault!r}") from fault
        return cls(tuple(found), hashlib.sha256(data).hexdigest(), models)

    def batches(self) -> Iterator[list[Exchange]]:
        """Yield the exchanges in order, those that were sent together in one list."""
        for group, some in groupby(self.exchanges, key=lambda one: one.group):
            if group is None:
                yield from ([one] for one in some)
            else:
                yield list(some)

    def known_digests(self) -> frozenset[str]:
        """Return the digests (hex) that follow from the blobs and the requests: files, what requests name, and texts in
        them.
        """
        found = {hashlib.sha256(path.read_bytes()).hexdigest() for path in self.models.rglob("*") if path.is_file()}
        for one in self.exchanges:
            for text in strings(one.request):
                found.add(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
                found.update(part for part in text.replace("-", ":").replace("/", ":").split(":") if len(part) == 64)
        return frozenset(found)

    def version(self) -> str | None:
        """Return the version that the daemon said it was, if it was asked."""
        for one in self.exchanges:
            if one.path == "/api/version" and one.reply.text:
                try:
                    said = json.loads(one.reply.text)
                except ValueError:  # asked in a way that the daemon refused
                    continue
                if isinstance(said, dict) and "version" in said:
                    return str(said["version"])
        return None

    def load_seconds(self) -> float:
        """Return how long a load took, as a median; a quarter of a second where none was recorded."""
        spent = [found["load_duration"] for found in self._figures("load_duration")]
        return median([ns / 1e9 for ns in spent if ns > LOADED_NS], 0.25)

    def tokens_per_second(self) -> float:
        """Return how fast the daemon answered, over all its answers; 2,000 where that was not recorded."""
        tokens, ns = 0, 0
        for found in self._figures("eval_duration"):
            tokens += found.get("eval_count", 0)
            ns += found["eval_duration"]
        return tokens / (ns / 1e9) if tokens and ns > 0 else 2000.0

    def _figures(self, name: str) -> Iterator[dict[str, Any]]:
        for one in self.exchanges:
            for found in one.reply.objects():
                if isinstance(found, dict) and isinstance(found.get(name), int):
                    yield found


def strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def median(values: Iterable[float], default: float) -> float:
    """Return the middle one of the values; the default where there are none."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else default


def _exchange(found: Mapping[str, Any]) -> Exchange:
    request = _field_of(found, "request", dict, {})
    for name, kind in _ASKED.items():
        _field_of(request, name, kind, None)
    if not request.get("method") or not request.get("path"):
        raise ValueError("a request has a method and a path")
    if not (request["method"].isalpha() and request["path"][0] == "/" and request["path"].isprintable()):
        raise ValueError("a method or a path is none")
    if not all(isinstance(value, str) and value.isprintable() for value in (request.get("headers") or {}).values()):
        raise ValueError("a header is no text")
    blob = Path(request.get("blob") or "")
    if blob.is_absolute() or ".." in blob.parts:
        raise ValueError("a blob is no file of the models")
    return Exchange(
        int(_number(found, "n")),
        str(found["scenario"]),
        str(found.get("note") or ""),
        request,
        _reply(_field_of(found, "response", dict, None)),
        _field_of(found, "group", (str, int), None),
        _number(found, "sent_ms"),
        _field_of(found, "cut_by_client_after_lines", int, None),
    )


def _reply(found: Mapping[str, Any] | None) -> Reply:
    if found is None or found.get("status") is None:
        given = found or {}
        return Reply(None, ms=_number(given, "ms"), fault=str(given.get("transport_error", "no reply")))
    headers = {name.lower(): value for name, value in _field_of(found, "headers", dict, {}).items()}
    if not all(isinstance(value, str) for value in headers.values()):
        raise ValueError("a header is no text")
    status, lines, ms = int(_number(found, "status")), _field_of(found, "lines", list, None), _number(found, "ms")
    if lines is None:
        return Reply(status, headers, _field_of(found, "text", str, ""), ms=ms, headed="headers" in found)
    mended = mend([_field_of({"line": line}, "line", str, "") for line in lines])
    apart = ms / len(lines) if ms and lines else PROGRESS_MS
    given_ms = _field_of(found, "line_ms", list, None) or [apart * at for at in range(1, len(lines) + 1)]
    times = tuple(_number({"line_ms": at}, "line_ms") for at in given_ms)
    return Reply(status, headers, "\n".join((*mended, "")), mended, times, ms, headed="headers" in found)


def _field_of(found: Mapping[str, Any], name: str, kind: Any, default: Any) -> Any:
    """Return a field of a kind, the default where it is absent or null; ValueError for another kind."""
    value = found.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {json.dumps(value)[:40]}")
    return value


def _number(found: Mapping[str, Any], name: str) -> float:
    """Return a number from 0 that a clock or a counter could show, 0 where it is absent or null; else ValueError."""
    value = _field_of(found, name, (int, float), 0.0)
    if not 0 <= value <= _MOST:
        raise ValueError(f"{name} is {json.dumps(value)[:40]}")
    return float(value)


def mend(lines: Sequence[str]) -> tuple[str, ...]:
    """Join lines as the daemon sent them: a reader that breaks at U+0085 cuts a JSON line in two."""
    found: list[str] = []
    for line in lines:
        if found and found[-1][:1] == "{" and not _closed(found[-1]):
            found[-1] += "\u0085" + line
        else:
            found.append(line)
    return tuple(found)


def _closed(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
