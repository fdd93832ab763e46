"""The journal: every inference, failure and transition, in a database of its own, before anything relies on it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from BTrees.OOBTree import OOBTree
from persistent import Persistent
from ZODB.DB import DB

from batos.image.transactions import snapshot
from batos.image.writer import Writer

State: TypeAlias = Literal["open", "done", "cut", "failed"]

MISSIONS = "missions"
HEAD = "head"

#: Messages up to this many characters are simply repeated.
SHARED = 200

#: Options that decide how a runner is started, not what it answers: not part of a key.
RUNNER_OPTIONS = frozenset(
    {"num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict"}
)


@dataclass(frozen=True, slots=True)
class Record:
    """One inference as CONTRACT's journal entry; times ISO 8601, tokens {prompt, answer}."""

    key: str
    mission: str
    path: str
    model: str
    digest: str
    request: Mapping[str, Any]
    state: State
    started: str
    ended: str | None = None
    response: Mapping[str, Any] | None = None
    partial: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    prev: str = ""


_FIELDS = tuple(each.name for each in fields(Record))


def _shown(record: Record) -> dict[str, Any]:
    """The record's fields, not copied: `dataclasses.asdict` would copy every prompt."""
    return {name: getattr(record, name) for name in _FIELDS}


class Entry(Persistent):
    """A record as it stands in the database; a message that an earlier entry of its log has is named, not repeated."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.fields = stored


class MissionLog(Persistent):
    """What one mission paid for and went through, in order.

    The calls of a mission share most of their prompt (charter, documents, conversation). A message longer than
    SHARED bytes is stored where it first stood, and as {"same": [entry, message]} wherever it stands again.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notes: list[dict[str, Any]] = []
        self.texts: dict[str, tuple[int, int]] = {}

    def put(self, record: Record) -> None:
        """Add a record, or move the open entry of the same key on."""
        for number, entry in enumerate(self.entries):
            if entry.fields["key"] == record.key and entry.fields["state"] == "open":
                entry.fields = self._stored(record, number)
                return
        self.entries = [*self.entries, Entry(self._stored(record, len(self.entries)))]

    def records(self) -> list[Record]:
        """The records, whole."""
        return [Record(**{**entry.fields, "request": self._request(entry.fields)}) for entry in self.entries]

    def note(self, notes: Iterable[Mapping[str, Any]]) -> None:
        """Add transitions or failures."""
        self.notes = [*self.notes, *(dict(note) for note in notes)]

    def _stored(self, record: Record, number: int) -> dict[str, Any]:
        messages = []
        for place, message in enumerate(record.request["messages"]):
            if len(message["content"]) <= SHARED:
                messages.append(message)
                continue
            digest = hashlib.sha256(canonical(message)).hexdigest()[:32]
            first = self.texts.get(digest, (number, place))
            if first == (number, place):
                self.texts = {**self.texts, digest: first}
                messages.append(message)
            else:
                messages.append({"same": list(first)})
        return {**_shown(record), "request": {**record.request, "messages": messages}}

    def _request(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        request = stored["request"]
        return {**request, "messages": [self._message(message) for message in request["messages"]]}

    def _message(self, message: Mapping[str, Any]) -> Any:
        if "same" not in message:
            return message
        entry, place = message["same"]
        return self.entries[entry].fields["request"]["messages"][place]


def canonical(value: Any) -> bytes:
    """JSON that is the same for the same value: sorted keys, no blanks, UTF-8 (a lone surrogate has bytes too)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def journal_key(digest: str, request: Mapping[str, Any], path: str) -> str:
    """The key of CONTRACT: model digest, messages, format, think, sampling options and sample path, nothing else."""
    options = {k: _plain(v) for k, v in (request.get("options") or {}).items() if k not in RUNNER_OPTIONS}
    parts = [digest, request["messages"], request.get("format"), request.get("think"), options, path]
    return hashlib.sha256(canonical(parts)).hexdigest()


def _plain(value: Any) -> Any:
    """A temperature of 1.0 is one of 1: equal values have one form."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Journal:
    """Reads and writes the journal; writes of concurrent steps share a commit."""

    def __init__(self, db: DB, writer: Writer) -> None:
        self._db = db
        self._writer = writer
        self._notes: dict[str, list[Mapping[str, Any]]] = {}

    async def write(self, record: Record) -> None:
        """Put a record and the mission's waiting notes; durable when this returns."""
        await self._write(record.mission, record)

    def note(self, mission: str, note: Mapping[str, Any]) -> None:
        """Remember a transition; it is written with the mission's next record, or by `flush`."""
        self._notes.setdefault(mission, []).append(note)

    async def flush(self, mission: str) -> None:
        """Write what is only noted so far; durable when this returns."""
        if mission in self._notes:
            await self._write(mission, None)

    async def _write(self, mission: str, record: Record | None) -> None:
        notes = self._notes.pop(mission, [])
        try:
            await self._writer.apply(lambda root: _put(root, mission, record, notes))
        except Exception:
            # They were not written (a cancellation is another matter: the commit was waited for).
            self._notes[mission] = notes + self._notes.get(mission, [])
            raise

    def read(self, missions: Sequence[str]) -> list[Record]:
        """All records of these missions, in the order they were first written."""
        with snapshot(self._db) as root:
            logs = root.get(MISSIONS) or {}
            return [record for name in missions if name in logs for record in logs[name].records()]

    def notes(self, mission: str) -> list[dict[str, Any]]:
        """The transitions and failures of one mission, in order."""
        with snapshot(self._db) as root:
            logs = root.get(MISSIONS) or {}
            return list(logs[mission].notes) if mission in logs else []


def _put(root: Any, mission: str, record: Record | None, notes: list[Mapping[str, Any]]) -> None:
    if MISSIONS not in root:
        root[MISSIONS] = OOBTree()
        root[HEAD] = ""
    logs = root[MISSIONS]
    if mission not in logs:
        logs[mission] = MissionLog()
    log = logs[mission]
    if notes:
        log.note(notes)
    if record is None:
        return
    if record.state != "open":
        record = replace(record, prev=root[HEAD])
        root[HEAD] = chained(record)
    log.put(record)


def chained(record: Record) -> str:
    """The digest that the next record names as `prev`: bodies enter by their digests, so that they may be forgotten."""
    shown = _shown(record)
    for body in ("request", "response", "partial"):
        shown[body] = hashlib.sha256(canonical(shown[body])).hexdigest()
    return hashlib.sha256(canonical(shown)).hexdigest()
