"""The Living Image open for one process: accepting missions, giving them transactions, moving their status."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ZODB.blob import Blob
from ZODB.DB import DB
from ZODB.interfaces import IBlobStorage

from batos.errors import BatosError, DiskFull, InternalError, NotFound
from batos.events import Events
from batos.image import roots, storage
from batos.image.commits import CommitThread, no_room
from batos.image.ids import iso, mission_id, tid_text, utc_now
from batos.image.records import Attachment, Brief, Status, StatusWord
from batos.image.transactions import MissionTransaction, Voter, snapshot
from batos.image.voters import VOTERS
from batos.image.writer import Writer
from batos.objects.prototype import UvmObject

T = TypeVar("T")

#: Attachments up to this many bytes are kept in the record, longer ones as blobs.
INLINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Opening:
    """How an image is opened: where, for how many missions at once, and the seams."""

    image: str
    journal: str
    missions: int = 8
    clock: Callable[[], datetime] = utc_now
    events: Events = field(default_factory=Events)
    image_factory: storage.StorageFactory | None = None
    journal_factory: storage.StorageFactory | None = None


class LivingImage:
    """Two databases, one owner: the image itself and the journal, never a reference across the two."""

    def __init__(self, opening: Opening) -> None:
        self._clock = opening.clock
        self._events = opening.events
        self.uri = opening.image
        self.db: DB = storage.open_database(opening.image, connections=opening.missions, factory=opening.image_factory)
        try:
            uri = storage.journal_uri(opening.image, opening.journal)
            self.journal_db: DB = storage.open_database(
                uri, connections=opening.missions, factory=opening.journal_factory
            )
        except BaseException:
            self.db.close()
            raise
        self.thread = CommitThread()
        self.writer = Writer(self.db, self.thread, self.translate)
        self.journal_writer = Writer(self.journal_db, self.thread, self.translate)
        self.voters: tuple[Voter, ...] = VOTERS
        #: Why no mission is accepted any more, if so.
        self.refusing: DiskFull | None = None
        self._blobs = IBlobStorage.providedBy(self.db.storage)

    async def prepare(self) -> None:
        """Make the record trees that a new image lacks."""
        with self.snapshot() as root:
            complete = all(name in root for name in roots.RECORDS)
        if not complete:
            await self.writer.apply(roots.prepare)

    def close(self) -> None:
        """Finish the commits under way, then give both databases back."""
        self.thread.close()
        for writer in (self.writer, self.journal_writer):
            writer.close()
        self.db.close()
        self.journal_db.close()

    # -- reading

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        """The root as of now, for reading only."""
        with snapshot(self.db) as root:
            yield root

    def find(self, root: Any, mission: str) -> tuple[Brief, Status, UvmObject]:
        """A mission's three objects; raises NotFound."""
        try:
            found: tuple[Brief, Status, UvmObject] = root[roots.MISSIONS][mission]
        except KeyError as error:
            raise NotFound(
                f"there is no mission {mission!r}", field="mission", remedy="`batos missions` lists them."
            ) from error
        return found

    # -- accepting

    async def accept(self, brief: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> str:
        """Write brief, status and thought; the mission is durable when its id is returned.

        `files` are the attachments' contents by sha256, as the brief names them.
        """
        if self.refusing is not None:
            raise self.refusing
        now = self._clock()
        name, at = mission_id(now), iso(now)
        contents = dict(files or {})
        await self.writer.apply(lambda root: self._accept(root, dict(brief, id=name), at, contents))
        if any(len(data) > INLINE_BYTES for data in contents.values()):
            await self.thread.run(lambda: self._sync_blobs(tuple(contents)))
        self._events.emit("mission.accepted", mission=name)
        return name

    def _accept(self, root: Any, brief: dict[str, Any], at: str, files: Mapping[str, bytes]) -> None:
        missions, name = root[roots.MISSIONS], brief["id"]
        if name in missions:
            raise InternalError(f"the new id {name} is taken")
        attachments = root[roots.ATTACHMENTS]
        for sha256, data in files.items():
            if sha256 not in attachments:
                attachments[sha256] = self._attachment(sha256, data)
        parents = (root["traits_obj"],) if "traits_obj" in root else ()
        thought = UvmObject({"mission": name}, parents)
        missions[name] = (Brief(brief, at), Status("queued", at), thought)
        root[roots.UNFOLDED].insert(name)

    def _attachment(self, sha256: str, data: bytes) -> Attachment:
        if hashlib.sha256(data).hexdigest() != sha256:
            raise InternalError("an attachment's content is not what its digest says")
        if len(data) <= INLINE_BYTES or not self._blobs:
            return Attachment(sha256, len(data), data, None)
        blob = Blob()
        with blob.open("w") as file:
            file.write(data)
            # ZODB renames blobs into place and never syncs them.
            file.flush()
            os.fsync(file.fileno())
        return Attachment(sha256, len(data), None, blob)

    def _sync_blobs(self, names: tuple[str, ...]) -> None:
        """Sync the folders that the new blobs were renamed into (in the commit thread)."""
        with self.snapshot() as root:
            for name in names:
                blob = root[roots.ATTACHMENTS][name].blob
                if blob is not None:
                    _sync_upwards(Path(blob.committed()).parent)

    # -- a mission's transaction and status

    @contextmanager
    def transaction(self, mission: str) -> Iterator[MissionTransaction]:
        """A mission's own snapshot; what it does not commit leaves no trace."""
        transaction = MissionTransaction(self.db, self.thread, mission)
        transaction.watch(self.voters)
        try:
            yield transaction
        except Exception as error:
            raise self.translate(error) from error
        finally:
            transaction.close()
            if transaction.committed:
                tid = tid_text(transaction.thought._p_serial)
                self._events.emit("txn.commit", what=mission, tid=tid)
            else:
                self._events.emit("txn.abort", what=mission, reason="doomed" if transaction.doomed else "left")

    async def move(self, mission: str, word: StatusWord, reason: BatosError | None = None, **also: Any) -> None:
        """Change a mission's status in a short transaction; `also` sets further fields of the status."""
        shown = None if reason is None else reason.as_dict()
        at = iso(self._clock())

        def change(root: Any) -> None:
            status = self.find(root, mission)[1]
            status.become(word, at, shown)
            for name, value in also.items():
                setattr(status, name, value)
            if word in ("failed", "cancelled"):
                root[roots.UNFOLDED].discard(mission)

        await self.writer.apply(change)
        self._events.emit("mission.status", mission=mission, status=word, reason=shown)

    def unfolded(self) -> list[str]:
        """Missions that are accepted and neither folded in nor ended."""
        with self.snapshot() as root:
            return list(root[roots.UNFOLDED])

    def translate(self, error: BaseException) -> BaseException:
        """A storage error as one of ours; a full disk also stops accepting."""
        if isinstance(error, DiskFull) or not no_room(error):
            return error
        full = DiskFull(f"no room to write to the image or the journal ({error})")
        full.__cause__ = error
        self.refusing = full
        return full


def _sync_upwards(folder: Path) -> None:
    """Sync a blob's folder and those above it that its rename may have made."""
    for _ in range(3):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        folder = folder.parent
