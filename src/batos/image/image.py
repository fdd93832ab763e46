"""The Living Image open for one process: accepting missions, giving them transactions, moving their status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from ZODB.DB import DB
from ZODB.POSException import ConflictError

from batos.concurrency.jobs import Signals
from batos.concurrency.threads import CommitThread
from batos.events import Events
from batos.image import attached_files, evolving, readable, roots, storage
from batos.image.classes import as_damage
from batos.image.filestorage import disk_full, is_full
from batos.image.ids import iso, mission_id, tid_text, utc_now
from batos.image.nodes import claims
from batos.image.nodes.lease import HostIdentity, NodeLease, node_name, read_clock, this_host
from batos.image.nodes.shared_writer import Publishing, SharedWriter
from batos.image.readable import ReadableImage, is_complete
from batos.image.records import Brief, Status, StatusWord, check_move
from batos.image.roots import Root
from batos.image.transactions import MissionTransaction, Voter, refuse_unchecked, snapshot
from batos.image.writer import Noted, Writer
from batos.objects.prototype import UvmObject
from batos.protocol.errors import BatosError, Busy, DiskFull, ImageError, InternalError, Refused
from batos.protocol.event_payloads import (
    MISSION_ACCEPTED,
    MISSION_STATUS,
    QUEUE_BUSY,
    TXN_ABORT,
    TXN_COMMIT,
    TXN_CONFLICT,
    MissionAccepted,
    MissionStatus,
    QueueBusy,
    TransactionAbort,
    TransactionCommit,
    TransactionConflict,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opening:
    """Arguments of opening an image: its location, the number of missions at a time, and seams for tests."""

    image: str
    journal: str
    missions: int = 8
    clock: Callable[[], datetime] = utc_now
    events: Events = field(default_factory=Events)
    image_factory: storage.StorageFactory | None = None
    journal_factory: storage.StorageFactory | None = None
    #: A journal that is open already: it is used, and stays open.
    journal_db: DB | None = None
    #: Seconds of the lease of a node on a server, this node's name, and the machine that it is on.
    lease: float = 10.0
    node: str = field(default_factory=node_name)
    host: HostIdentity = field(default_factory=this_host)
    #: Seconds that go on while this process or the machine sleeps.
    lease_clock: Callable[[], float] = read_clock
    #: The way to upgrade an image of an older version; None: it is refused.
    upgrading: evolving.Upgrading | None = None
    #: The checks of a mission's result; without them none is committed.
    voters: tuple[Voter, ...] = (refuse_unchecked,)


class LivingImage(ReadableImage):
    """Two databases, one owner: the image itself and the journal, never a reference across the two."""

    def __init__(self, opening: Opening) -> None:
        self._clock, self._events, self._upgrading = opening.clock, opening.events, opening.upgrading
        db = storage.open_database(opening.image, connections=opening.missions, factory=opening.image_factory)
        try:
            uri = storage.journal_uri(opening.image, opening.journal)
            journal = opening.journal_db or storage.open_journal(
                uri, connections=opening.missions, factory=opening.journal_factory
            )
        except BaseException:
            db.close()
            raise
        super().__init__(opening.image, db, journal)
        #: Where several nodes can reach the image, each has a lease. A copy in memory is its process's alone.
        leased = storage.is_shared(opening.image) and opening.image_factory is None
        self.lease: NodeLease | None = None
        if leased:
            sessions = storage.sessions_of(opening.image, opening.journal, opening.missions)
            self.lease = NodeLease(db, opening.lease, opening.node, sessions, opening.host, opening.lease_clock)
        self.publishing = Publishing(self.lease)
        self._lent_journal = opening.journal_db is not None
        self.thread = CommitThread()
        parts = self.db, self.thread, self.translate, partial(self._tell_commit, "image")
        self.writer: Writer[Root] = Writer(*parts)
        #: Writes what the publisher alone writes. Where there is one node, all changes may share commits.
        self.shared: Writer[Root] = SharedWriter(self.publishing, *parts) if leased else self.writer
        #: Of its own, so that an answer that is paid for waits for no commit of the image.
        self._journal_thread, told = CommitThread(), partial(self._tell_commit, "journal")
        self.journal_writer: Writer[Any] = Writer(self.journal_db, self._journal_thread, self.translate, told)
        self.voters = opening.voters
        self.signals = Signals()
        #: The newest mission's id: those that follow sort behind it, also within a millisecond.
        self._newest = ""
        #: The reason why no more missions are accepted, if there is one.
        self.refusing: ImageError | None = None
        self._blobs = storage.keeps_blobs(self.db.storage)

    def _tell_commit(self, what: str, changes: int, seconds: float) -> None:
        """Tell of a commit of a database: the number of changes in it, and its time."""
        self._events.emit(TXN_COMMIT, TransactionCommit(what=what, changes=changes, seconds=seconds))

    def snapshot(self) -> AbstractContextManager[Root]:
        """Yield the root as of now, for reading only."""
        return snapshot(self.db)

    async def prepare(self) -> None:
        """Make what an image lacks: record trees, the id that it shares with its journal, and steps of the evolution.

        Raises NewFormat if a newer version has written it, OldFormat if an older one has and there is no `upgrading`,
        ConfigError if its server lacks sessions for one more node, ImageDamaged if the journal is not the image's.
        """
        if self.lease is not None:
            await asyncio.to_thread(self.lease.join)
            self.lease.keep(self._refuse)
        if not all(self._look()[1:]):
            async with self.publishing.here():  # one node makes what is missing
                await self._make_whole()
        with self.snapshot() as root:
            self._newest = root[roots.MISSIONS].maxKey() if root[roots.MISSIONS] else ""

    async def _make_whole(self) -> None:
        pair, has_image, has_journal = self._look()
        with self.snapshot() as root:
            if self.lease is not None and evolving.pending(root):
                await claims.wait_until_alone(self.snapshot, self.lease.fence, 2 * self.lease.seconds)
            await evolving.evolve(root, self.writer, self._upgrading)
        # The journal first: an image with an id has a journal that knows it, even if the process dies in between.
        if not has_journal:
            await self.journal_writer.apply(lambda root: readable.sign_journal(root, pair))
        if not has_image:
            await self.writer.apply(lambda root: readable.sign_image(root, pair))

    def _look(self) -> tuple[str, bool, bool]:
        """Return the id of image and journal, and whether each is complete, in the present form, and has it."""
        with self.snapshot() as root:
            whole = is_complete(root)
        image, journal = readable.image_side(self.db), readable.journal_side(self.journal_db)
        has_journal = journal.pair is not None and journal.format >= roots.FORMAT
        return readable.agree_on_id(image, journal), whole and image.pair is not None, has_journal

    @property
    def fence(self) -> int:
        """Return the number of this node's lease; 0: the image is this process's alone."""
        return 0 if self.lease is None else self.lease.fence

    def _refuse(self, error: ImageError) -> None:
        """Accept no more missions, for this reason if there is none yet."""
        self.refusing = self.refusing or error

    def close(self) -> None:
        """Finish the commits under way, then give both databases back."""
        # Last in, first out; a part that fails to close keeps no other open.
        with ExitStack() as stack:
            if not self._lent_journal:
                stack.callback(self.journal_db.close)
            stack.callback(self.db.close)
            if self.lease is not None:
                stack.callback(self.lease.close)
            stack.callback(self.journal_writer.close)
            stack.callback(self.writer.close)
            stack.callback(self.shared.close)
            stack.callback(self.thread.close)
            stack.callback(self._journal_thread.close)

    # -- accepting

    async def accept(
        self,
        brief: Mapping[str, Any],
        files: Mapping[str, bytes] | None = None,
        limit: int | None = None,
        begin: Callable[[str], bool] | None = None,
        noted: Noted | None = None,
    ) -> str:
        """Write brief, status and thought; the mission is durable when its id is returned.

        `files` are the attachments' contents by sha256, as the brief names them. A brief with the idempotency key of
        an earlier one of its user writes nothing: it is that mission. `begin` is called with the id before anything is
        written; where it returns True, the same commit makes the mission run. `noted` writes in that commit too.

        Raises: Busy: `limit` missions wait already.
        """
        if self.refusing is not None:
            raise type(self.refusing)(self.refusing.message, remedy=self.refusing.remedy) from self.refusing
        now = self._clock()
        self._newest = name = mission_id(now, self._newest)
        told, contents, at, runs = dict(brief, id=name), dict(files or {}), iso(now), begin is not None and begin(name)

        # A refusal is returned and not raised, so that it fails nobody else's part of the same commit.
        def admit(root: Root) -> tuple[str, int] | Busy:
            admitted = self._admit(root, told, at, contents, limit, runs=runs)
            if noted is not None and not isinstance(admitted, Busy):
                noted(root, admitted[0])
            return admitted

        given = await self.writer.apply(admit)
        if isinstance(given, BatosError):
            self._events.emit(QUEUE_BUSY, QueueBusy(user=brief["user"]))
            raise given
        found, waiting = given
        if found != name:
            return found
        self._events.emit(MISSION_ACCEPTED, MissionAccepted(mission=name, user=brief["user"], waiting=waiting))
        self.signals.asked.give(name)
        if runs:
            self._events.emit(MISSION_STATUS, MissionStatus(mission=name, status="running", reason=None, attempt=1))
            self.signals.begun.give(name)
        return name

    def _admit(
        self, root: Root, brief: dict[str, Any], at: str, files: Mapping[str, bytes], limit: int | None, *, runs: bool
    ) -> tuple[str, int] | Busy:
        """Record a brief as a mission; return its id and the number of waiting missions, or Busy if the queue is full.

        A brief with the idempotency key of an earlier one gets that one's id, and nothing is written.
        """
        repeats, key = root[roots.REPEATS], brief.get("idempotency_key")
        kept = None if key is None else roots.repeat_key(brief["user"], key)
        if kept is not None and kept in repeats:
            return str(repeats[kept]), 0
        waiting = roots.waiting_count(root)
        if limit is not None and waiting >= limit:
            return Busy(f"{limit} missions wait already, which is the limit", field="queue")
        self.insert(root, brief, at, files, runs=runs)
        if kept is not None:
            repeats[kept] = brief["id"]
        return str(brief["id"]), waiting + 1

    def insert(
        self, root: Root, brief: dict[str, Any], at: str, files: Mapping[str, bytes], *, runs: bool = False
    ) -> None:
        """Write brief, status and thought of a mission, and its files, as a change of the writer's."""
        missions, name = root[roots.MISSIONS], brief["id"]
        if name in missions:
            raise InternalError(f"the new id {name} is taken")
        attachments = root[roots.ATTACHMENTS]
        for sha256, data in files.items():
            if not attached_files.is_kept(attachments, sha256):
                attachments[sha256] = attached_files.make_attachment(root, sha256, data, as_blob=self._blobs)
        parents = (root["traits_obj"],) if "traits_obj" in root else ()
        thought = UvmObject({"mission": name}, parents)
        status = Status("queued", at)
        missions[name] = (Brief(brief, at), status, thought)
        if runs:
            status.become("running", at)
            self._claim(root, name, status)
        roots.move_tally(root, name, None, status.word)
        if brief.get("conversation") is not None:
            # There from the moment its first mission is accepted, so that the next may be asked at once.
            conversation = roots.conversation(root, brief["conversation"], brief["user"])
            attached_files.keep_in_conversation(conversation, brief.get("attachments", ()))
        root[roots.UNFOLDED].insert(name)

    # -- a mission's transaction and status

    @contextmanager
    def transaction(self, mission: str) -> Iterator[MissionTransaction]:
        """Open a mission's own snapshot. Changes that are not committed leave no trace."""
        transaction = MissionTransaction(self.db, self.thread, mission)
        transaction.watch(self.voters)
        try:
            yield transaction
        except Exception as error:  # of ZODB or the disk: each has its error of ours
            if isinstance(error, ConflictError):
                self._events.emit(TXN_CONFLICT, TransactionConflict(what=mission))
            shown = self.translate(error)
            if shown is error:
                raise
            raise shown from error
        finally:
            transaction.close()
            if transaction.committed:
                tid, seconds = tid_text(transaction.serial), transaction.seconds
                self._events.emit(TXN_COMMIT, TransactionCommit(what=mission, tid=tid, seconds=seconds))
            else:
                self._events.emit(TXN_ABORT, TransactionAbort(what=mission, reason=transaction.reason))

    async def move(
        self,
        mission: str,
        word: StatusWord,
        reason: BatosError | None = None,
        only: Collection[StatusWord] | None = None,
        attempt: int | None = None,
        **also: object,
    ) -> None:
        """Change a mission's status in a short transaction; `also` sets further fields of the status.

        Raises Refused for a mission that is answered, to run one that runs, for none of `only`, and at another attempt.
        """
        shown = None if reason is None else reason.as_dict()
        at = iso(self._clock())

        def change(root: Root) -> int:
            _, status, thought = self.find(root, mission)
            claims.check_here(root, mission, status, self.fence)
            check_move(mission, status, thought, word)
            if (only is not None and status.word not in only) or attempt not in (None, status.attempts):
                raise Refused(f"{mission} is {status.word}", field="mission", remedy="See it with `batos show`.")
            roots.move_tally(root, mission, status.word, word)
            status.become(word, at, shown)
            if word == "running":
                self._claim(root, mission, status)
            for name, value in also.items():
                setattr(status, name, value)
            if word in _ENDED:
                root[roots.UNFOLDED].discard(mission)
            elif mission not in root[roots.UNFOLDED]:
                root[roots.UNFOLDED].insert(mission)
            return status.attempts

        attempts = await self.writer.apply(change)
        told = MissionStatus(mission=mission, status=word, reason=shown)
        if word == "running":
            told["attempt"] = attempts
            self.signals.begun.give(mission)
        self._events.emit(MISSION_STATUS, told)

    def _claim(self, root: Root, mission: str, status: Status) -> None:
        """Let a mission that runs do so here, if several nodes have the image, as a change of the writer's."""
        if self.lease is not None:
            claims.claim(root, self.fence, mission, status)

    async def claim(self, missions: Collection[str]) -> list[str]:
        """Let missions run here, in a short transaction; return those that no other node was quicker with."""
        at = iso(self._clock())

        def change(root: Root) -> list[tuple[str, int]]:
            taken = []
            for name in missions:
                record = roots.find_record(root, name)
                if record is not None and record.status.word == "queued":
                    roots.move_tally(root, name, "queued", "running")
                    record.status.become("running", at)
                    self._claim(root, name, record.status)
                    taken.append((name, record.status.attempts))
            return taken

        taken = await self.writer.apply(change)
        for name, attempts in taken:
            told = MissionStatus(mission=name, status="running", reason=None, attempt=attempts)
            self._events.emit(MISSION_STATUS, told)
            self.signals.begun.give(name)
        return [name for name, _ in taken]

    async def again(self, mission: str, reason: BatosError) -> None:
        """Count another attempt of a mission that runs, in a short transaction; Refused: it does not run."""
        shown, at = reason.as_dict(), iso(self._clock())

        def change(root: Root) -> int:
            _, status, _ = self.find(root, mission)
            claims.check_here(root, mission, status, self.fence)
            if status.word != "running":
                raise Refused(f"{mission} is {status.word}", field="mission", remedy="See it with `batos show`.")
            status.become("running", at)
            return status.attempts

        attempts = await self.writer.apply(change)
        told = MissionStatus(mission=mission, status="running", reason=shown, attempt=attempts)
        self._events.emit(MISSION_STATUS, told)

    def translate(self, error: BaseException) -> BaseException:
        """Convert a storage's error to ours; after a full disk or a failed storage no mission is accepted."""
        if is_full(error):
            full = error if isinstance(error, DiskFull) else disk_full(error, storage.file_of(self.uri))
            self.refusing = self.refusing or full
            return full
        if isinstance(error, OSError):
            return ImageError(f"the image cannot be read or written: {error}", remedy="Check its disk.")
        if isinstance(error, ValueError) and "closed" in str(error):
            # FileStorage closes itself when it cannot know whether a commit reached the disk.
            gave_up = ImageError(
                "the database closed itself after a write that failed",
                remedy="Check its disk, then start again: every commit is there whole or not at all.",
            )
            self.refusing = self.refusing or gave_up
            return gave_up
        return as_damage(error) or error


_ENDED = frozenset({"failed", "cancelled"})
