"""The journal: a database of every inference, failure and transition, written before anything relies on it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias

from persistent import Persistent
from persistent.mapping import PersistentMapping
from ZODB.DB import DB

from batos.image import ids
from batos.image.records import Chronicle
from batos.image.roots import JournalRoot
from batos.image.transactions import snapshot
from batos.image.writer import Writer
from batos.inference import erasure_mark
from batos.inference.canonical import canonical, form_of_object
from batos.protocol.errors import ImageDamaged

State: TypeAlias = Literal["open", "done", "cut", "failed"]

MISSIONS: Final = "missions"
HEAD: Final = "head"
#: The fields of a record that may be long: they can be forgotten, and their digests stay.
BODIES = ("request", "response", "partial")


@dataclass(frozen=True, slots=True)
class Record:
    """An inference as CONTRACT's journal entry; times in ISO 8601, tokens as {prompt, answer}."""

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


def _field_values(record: Record) -> dict[str, Any]:
    """Return the record's fields without copies: `dataclasses.asdict` would copy every prompt."""
    return {name: getattr(record, name) for name in _FIELDS}


class Entry(Persistent):
    """A record as it stands in the database: `fields` are its short fields, `bodies` what was asked and answered.

    The bodies are canonical JSON, deflated: the prompts of a mission are nearly all that the journal is made of, and
    one value of bytes is written and read many times faster than the hundred small objects that it describes.
    """

    #: Set when the bodies are erased: their digests, by name.
    digests: Mapping[str, str] | None = None

    def __init__(self, record: Record, bodies: Sequence[bytes]) -> None:
        self.become(record, bodies)

    def become(self, record: Record, bodies: Sequence[bytes]) -> None:
        """Take the record's state: an open entry's later one. `bodies` are its bodies, canonical."""
        if self.digests is not None:
            self.digests = None
        self.bodies = zlib.compress(b"[%b]" % b",".join(bodies), 1)
        self.fields = {name: value for name, value in _field_values(record).items() if name not in BODIES}

    def erase(self) -> None:
        """Erase what was asked and answered, for good; the digests stay, by which the chain is verified.

        Raises: ImageDamaged: the call cannot be read.
        """
        if self.digests is None:
            forms = canonical_bodies(self.record())
            self.digests, self.bodies = _digests_of(forms), b""

    def chain_fields(self) -> dict[str, object]:
        """Return the fields that its digest in the chain is of. Raises: ImageDamaged: the call cannot be read."""
        record = self.record()
        return chained_fields(record, canonical_bodies(record)) if self.digests is None else {
            **_field_values(record), **self.digests,
        }  # fmt: skip

    def record(self) -> Record:
        """Read the value; ImageDamaged, naming the mission and the call, if it is not what was written.

        Where the bodies are erased, the record has none.
        """
        if self.digests is not None:
            return Record(**self.fields, request={})
        try:
            bodies = json.loads(zlib.decompress(self.bodies).decode("utf-8", "surrogatepass"))
            return Record(**self.fields, **dict(zip(BODIES, bodies, strict=True)))
        except (zlib.error, ValueError, TypeError) as error:
            what = f"the call of {self.fields.get('mission')} at {self.fields.get('path')} is damaged in the journal"
            remedy = (
                "No other call is affected, and a mission that needs this one asks the model again. "
                "To recover it, restore image, journal and blobs from one backup."
            )
            raise ImageDamaged(f"{what} ({error})", remedy=remedy) from error


class MissionLog(Persistent):
    """The calls that a mission paid for and the transitions of its state, in order."""

    #: Set to False when the words of all calls are erased; without it each call is looked at.
    has_words = True
    #: Set when its mission was erased: of what a node writes that slept meanwhile, the digests are kept.
    is_closed = False

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notes: list[Mapping[str, Any]] = []

    def put(self, record: Record, bodies: Sequence[bytes] | None = None, *, words: bool = True) -> None:
        """Add a record, or move the open entry of the same key on; `bodies` if they are canonical already.

        Without `words` only the digests are kept, as of a call that was erased while it was open.
        """
        bodies = canonical_bodies(record) if bodies is None else bodies
        if words and not self.has_words and not self.is_closed:
            self.has_words = True
        entry = self._find_open(record.key)
        is_erased = self.is_closed or (entry is not None and entry.digests is not None)
        if entry is None:
            entry = Entry(record, bodies)
            self.entries = [*self.entries, entry]
        else:
            entry.become(record, bodies)
        if is_erased or not words:
            entry.erase()

    def _find_open(self, key: str) -> Entry | None:
        """Return the newest open entry of a key."""
        found = (
            each for each in reversed(self.entries) if each.fields["key"] == key and each.fields["state"] == "open"
        )
        return next(found, None)

    def close(self) -> None:
        """Keep no words of what is written from here on."""
        if not self.is_closed:
            self.is_closed = True

    def note(self, notes: Iterable[Mapping[str, object]]) -> None:
        """Add transitions or failures; what has parts of its own is an object of its own.

        The log is written again with every call, and such a note is not.
        """
        if self.is_closed:
            return
        self.notes = [*self.notes, *(PersistentMapping(note) if _has_parts(note) else dict(note) for note in notes)]

    def erase_words(self, where: Callable[[Entry], bool] | None = None) -> int:
        """Erase what was asked and answered in calls that can be read; return how many these were.

        `where` picks the calls; None picks all.
        """
        erased = 0
        for entry in self.entries:
            if entry.digests is None and (where is None or where(entry)):
                with contextlib.suppress(ImageDamaged):  # no digest can be had of it: a backup may still have it
                    entry.erase()
                    erased += 1
        if where is None and self.has_words:
            self.has_words = False
        return erased

    def replace_notes(self, notes: Iterable[Mapping[str, object]]) -> None:
        """Put other notes in the place of all: words of some are erased."""
        self.notes = list(notes)


def _has_parts(note: Mapping[str, object]) -> bool:
    return any(isinstance(value, Mapping) for value in note.values())


def is_embedding(record: Record) -> bool:
    """Test if a record is of an embedding."""
    return "input" in record.request


def is_outside(record: Record) -> bool:
    """Test if a record is of a call to the world, which no model answers (outside_calls.py)."""
    return not record.model


def is_of_model(record: Record) -> bool:
    """Test if a record is of a call to a model that writes: of no embedding, and of no call to the world."""
    return not is_embedding(record) and not is_outside(record)


def _entries(root: JournalRoot, missions: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of these missions, in the order they were first written."""
    logs: Any = root.get(MISSIONS) or {}
    return (entry for name in missions if name in logs for entry in logs[name].entries)


class Entries:
    """Reads the journal."""

    def __init__(self, db: DB) -> None:
        self._db = db

    def snapshot(self) -> contextlib.AbstractContextManager[JournalRoot]:
        """Return a context with the journal's root as it is now."""
        return snapshot(self._db)

    def read(self, missions: Sequence[str]) -> list[Record]:
        """Return all records of these missions, in the order they were first written."""
        with snapshot(self._db) as root:
            return [entry.record() for entry in _entries(root, missions)]

    def sound(self, missions: Sequence[str]) -> list[Record]:
        """Return the readable records of these missions; damaged and erased ones are asked for again."""
        found = []
        with snapshot(self._db) as root:
            for entry in (entry for entry in _entries(root, missions) if entry.digests is None):
                with contextlib.suppress(ImageDamaged):
                    found.append(entry.record())
        return found

    def outside(self, missions: Sequence[str]) -> list[Record]:
        """Return the calls to the world of these missions; one that is erased or damaged has no bodies."""
        found = []
        with snapshot(self._db) as root:
            for entry in (entry for entry in _entries(root, missions) if not entry.fields["model"]):
                found.append(Record(**entry.fields, request={}))
                with contextlib.suppress(ImageDamaged):
                    found[-1] = entry.record()
        return found

    def count_erased(self, missions: Sequence[str]) -> int:
        """Return the number of calls of these missions whose words are erased."""
        with snapshot(self._db) as root:
            return sum(entry.digests is not None for entry in _entries(root, missions))

    def models(self, missions: Sequence[str]) -> frozenset[str]:
        """Return the models that these missions have begun to think with; no body of a record is opened for it."""
        with snapshot(self._db) as root:
            return frozenset(entry.fields["model"] for entry in _entries(root, missions)) - {""}

    def progress(self, mission: str) -> tuple[int, int, str]:
        """Tell how far a mission came: its entries, those of them that are closed, and the path of the newest."""
        with snapshot(self._db) as root:
            entries = list(_entries(root, [mission]))
            closed = sum(entry.fields["state"] != "open" for entry in entries)
            return len(entries), closed, entries[-1].fields["path"] if entries else ""

    def complete_id(self, named: str, own: Callable[[str], bool] | None = None) -> str | None:
        """Return the id of the one log that is named so, or begins so, among those that `own` accepts; None: none.

        Raises: BriefError: it is the beginning of several.
        """
        with snapshot(self._db) as root:
            logs = root.get(MISSIONS) or {}
            found = ids.complete_id(logs, named, own) if logs else named
            return found if found in logs and (own is None or own(found)) else None

    def notes(self, mission: str) -> list[dict[str, Any]]:
        """Return the transitions and failures of one mission, in order."""
        with snapshot(self._db) as root:
            logs = root.get(MISSIONS) or {}
            return [dict(note) for note in logs[mission].notes] if mission in logs else []


class Journal(Entries):
    """Reads and writes the journal; writes of concurrent steps share a commit.

    `read_at` is the commit of the image that whoever writes here has read, where that is not guarded otherwise: of what
    he writes after an erasure the digests are kept, and none of its words.
    """

    def __init__(self, db: DB, writer: Writer[JournalRoot], read_at: bytes | None = None) -> None:
        super().__init__(db)
        self._writer, self._read_at = writer, read_at
        self._notes: dict[str, list[Mapping[str, object]]] = {}
        #: Missions that will write no more: their last notes go with the next commit, whosever it is.
        self._ended: set[str] = set()

    def as_of(self, read_at: bytes) -> Journal:
        """Return this journal for whoever reads the image as of a commit, or read it then."""
        return Journal(self._db, self._writer, read_at if self._read_at is None else min(read_at, self._read_at))

    def check_words(self) -> None:
        """Check that words are kept of what is written here. Raises: WordsErased: something was erased meanwhile."""
        with snapshot(self._db) as root:
            if erasure_mark.is_behind(root, self._read_at):
                raise erasure_mark.erased_error()

    async def change(self, change: Callable[[JournalRoot], None]) -> None:
        """Change what else the journal has, in a commit of its own; durable when this returns."""
        await self._writer.apply(change)

    async def write(self, record: Record) -> None:
        """Put a record and the mission's waiting notes; durable when this returns."""
        await self._write(record.mission, record)

    def note(self, mission: str, note: Mapping[str, object]) -> None:
        """Remember a transition; it is written with the mission's next record, or by `flush`."""
        self._notes.setdefault(mission, []).append(note)

    async def flush(self, mission: str) -> None:
        """Write what is only noted so far; durable when this returns."""
        if mission in self._notes:
            await self._write(mission, None)

    def end(self, mission: str) -> None:
        """Note that a mission is done. Its last transitions are stored in its thought and need no commit here."""
        if mission in self._notes:
            self._ended.add(mission)

    async def drain(self) -> None:
        """Write every note that still waits; durable when this returns."""
        for mission in tuple(self._notes):
            await self.flush(mission)

    async def _write(self, mission: str, record: Record | None) -> None:
        taken = {each: self._notes.pop(each, []) for each in {mission, *self._ended}}
        self._ended -= taken.keys()

        def change(root: JournalRoot) -> None:
            for each, notes in taken.items():
                _put(root, each, record if each == mission else None, notes, self._read_at)

        try:
            await self._writer.apply(change)
        except Exception:
            # The notes were not written. After a cancellation they were: the commit was waited for.
            for each, notes in taken.items():
                self._notes[each] = notes + self._notes.get(each, [])
            self._ended |= taken.keys() - {mission}
            raise


def _put(
    root: JournalRoot, mission: str, record: Record | None, notes: list[Mapping[str, object]], read_at: bytes | None
) -> None:
    if is_behind := erasure_mark.is_behind(root, read_at, for_change=True):
        notes = []
        if record is None:
            return
    if MISSIONS not in root:
        root[MISSIONS] = Chronicle()
        root[HEAD] = ""
    logs = root[MISSIONS]
    if mission not in logs:
        logs[mission] = MissionLog()
    log = logs[mission]
    if notes:
        log.note(notes)
    if record is None:
        return
    bodies = canonical_bodies(record)
    if record.state != "open":
        record = replace(record, prev=root[HEAD])
        root[HEAD] = chain_digest(record, bodies)
    log.put(record, bodies, words=not is_behind)


def canonical_bodies(record: Record) -> tuple[bytes, ...]:
    """Return a record's bodies as bytes, as the chain and the entry use them; encoded once, because prompts
    are long.
    """
    return form_of_object(record.request), canonical(record.response), canonical(record.partial)


def chain_digest(record: Record, bodies: Sequence[bytes] | None = None) -> str:
    """Return the digest that the next record stores as `prev`. Bodies enter by their digests, so that they can be
    deleted.
    """
    bodies = canonical_bodies(record) if bodies is None else bodies
    return digest_of_fields(chained_fields(record, bodies))


def digest_of_fields(fields: Mapping[str, object]) -> str:
    """Return the digest of a record by the fields that `Entry.chain_fields` returns."""
    return hashlib.sha256(canonical(fields)).hexdigest()


def chained_fields(record: Record, bodies: Sequence[bytes]) -> dict[str, object]:
    """Return the fields of a record that its digest is of: in the place of each body stands that body's digest."""
    return {**_field_values(record), **_digests_of(bodies)}


def _digests_of(bodies: Sequence[bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(body).hexdigest() for name, body in zip(BODIES, bodies, strict=True)}
