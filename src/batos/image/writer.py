"""Writers: a queue of small changes that are committed together, and the one writer of shared structures."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import transaction
from transaction.interfaces import TransientError
from ZODB.DB import DB

from batos.concurrency.threads import CommitThread, finish_despite_cancel
from batos.image import roots
from batos.image.ids import iso, tid_text
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, InternalError

T = TypeVar("T")
R = TypeVar("R")

#: Writes more about a mission, by its id, in the commit that accepts it.
Noted: TypeAlias = Callable[[Root, str], None]

#: Times that a batch is tried whose commits meet those of other nodes.
_ATTEMPTS: Final = 20


def back_off(attempt: int) -> None:
    """Wait after an attempt that met another node's commit: at random, and longer each time, so that both get in."""
    time.sleep(random.uniform(0, min(0.1, 0.002 * 2**attempt)))


@dataclass(slots=True, eq=False)
class _QueuedChange(Generic[T]):
    change: Callable[[Any], T]
    done: asyncio.Future[T]
    result: T | None = None
    failure: BaseException | None = None


class Writer(Generic[R]):
    """The only writer of the records that missions share (briefs, statuses, projections), or of the journal.

    A change is a function of the database's root that does nothing but change objects, since the changes of a failed
    batch run again one by one. A change that raises a BatosError fails alone, and nothing of it is kept. The
    connection refuses a batch that breaks an invariant. A batch that meets a commit of another node runs again on what
    that has written.
    """

    #: True for what the publisher alone writes.
    publishing = False

    def __init__(
        self,
        db: DB,
        thread: CommitThread,
        failed: Callable[[BaseException], BaseException],
        committed: Callable[[int, float], None] = lambda changes, seconds: None,
    ) -> None:
        self.db = db
        self._thread = thread
        self._failed = failed
        self._committed = committed
        self._manager = transaction.TransactionManager(explicit=True)
        self._connection: Any = None
        #: The loop adds to it, and the commit thread takes from it: both ends of a deque are safe for one thread each.
        self._waiting: deque[_QueuedChange[Any]] = deque()
        self._flushing = False
        #: The time that the newest commit took.
        self._seconds = 0.0
        #: Transactions committed so far; with the number of changes, how well they are grouped.
        self.commits = 0

    def may_write(self) -> bool:
        """Return True if a change can be made at once: no other node has to write it."""
        return True

    async def apply(self, change: Callable[[R], T]) -> T:
        """Make a change; it is durable when this returns. Waits for the commit's end even while cancelled."""
        loop = asyncio.get_running_loop()
        waiting = _QueuedChange(change, loop.create_future())
        self._waiting.append(waiting)
        if not self._flushing:
            self._flushing = True
            loop.call_soon(self._next, loop)
        return await finish_despite_cancel(waiting.done)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the commit thread make what waits by then: other commits may stand before it."""
        if not self._waiting:
            self._flushing = False
            return
        try:
            self._thread.submit(lambda: self._flush(loop))
        except RuntimeError as error:  # its thread has ended; who waits must not wait for ever
            batch = self._take()
            for waiting in batch:
                waiting.failure = InternalError(f"a change came after the image was closed ({error})")
            self._deliver(loop, batch)

    def _take(self) -> list[_QueuedChange[Any]]:
        """Take all that waits out of the queue."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._take()
        try:
            self._commit_unrefused(batch)
        except Exception as error:  # told to those who wait for the changes
            left = [each for each in batch if each.failure is None]
            if len(left) == 1:
                left[0].failure = self._failed(error)
            else:
                self._commit_each(left)
        loop.call_soon_threadsafe(self._deliver, loop, batch)

    def _commit_unrefused(self, batch: list[_QueuedChange[Any]]) -> None:
        """Commit all changes of a batch but those that refuse: the others are made once more without such a one."""
        left = batch
        while left:
            try:
                self._commit_beside_others(left)
                return
            except BatosError:
                before, left = left, [each for each in left if each.failure is None]
                if len(left) == len(before):  # no change refused: the commit itself failed
                    raise

    def _commit_each(self, batch: list[_QueuedChange[Any]]) -> None:
        for waiting in batch:
            try:
                self._commit_beside_others([waiting])
            except Exception as error:  # told to the one who waits
                waiting.failure = self._failed(error)

    def _commit_beside_others(self, batch: list[_QueuedChange[Any]]) -> None:
        for attempt in range(1, _ATTEMPTS):
            try:
                return self._commit(batch)
            except TransientError:
                back_off(attempt)
        return self._commit(batch)

    def _commit(self, batch: list[_QueuedChange[Any]]) -> None:
        if self._connection is None:
            self._connection = self.db.open(self._manager)
            self._connection.publishing = self.publishing
        self._manager.begin()
        try:
            root = self._connection.root()
            for waiting in batch:
                try:
                    waiting.result = waiting.change(root)
                except BatosError as refusal:
                    waiting.failure = self._failed(refusal)
                    raise
            begun = perf_counter()
            self._manager.commit()
            self._seconds = round(perf_counter() - begun, 6)
            self.commits += 1
        except BaseException:
            self._manager.abort()
            raise

    def _deliver(self, loop: asyncio.AbstractEventLoop, batch: list[_QueuedChange[Any]]) -> None:
        made = 0
        for waiting in batch:
            if waiting.failure is not None:
                waiting.done.set_exception(waiting.failure)
            else:
                waiting.done.set_result(waiting.result)
                made += 1
        if made:
            self._committed(made, self._seconds)
        self._next(loop)

    def close(self) -> None:
        """Give the connection back; nothing may wait any more."""
        if self._connection is not None:
            self._connection.publishing = False  # the next one that has it out of the pool may be any
            self._connection.close()
            self._connection = None


#: Seconds between two looks whether another node has published a mission.
PAUSE: Final = 0.05

#: Called after the commit of a change to a projection, to report it.
Telling: TypeAlias = Callable[[], None]


#: Folds a mission's contribution of one kind into a projection, and returns the calls to make on the loop after the
#: commit, in order; it may run again. Memory and the method lifecycle register theirs.
Applier: TypeAlias = Callable[[Root, str, Any], Sequence[Telling] | None]


class Publisher:
    """Folds what committed missions contributed, and marks them done."""

    def __init__(self, writer: Writer[Root], appliers: Mapping[str, Applier], clock: Callable[[], datetime]) -> None:
        self._writer = writer
        self._appliers = dict(appliers)
        self._clock = clock

    def register(self, kind: str, applier: Applier) -> None:
        """Fold contributions of another kind too, from now on: before any mission is published."""
        self._appliers[kind] = applier

    async def fold(self, mission: str) -> bool:
        """Publish one committed mission; concurrent ones share a commit. False: it was, and nothing has changed.

        Where another node is the publisher, this waits until that has published the mission.
        """
        at = iso(self._clock())
        while not self._writer.may_write():
            if await asyncio.to_thread(self._is_published, mission):
                return False
            await asyncio.sleep(PAUSE)
        tellings = await self._writer.apply(lambda root: self._fold(root, mission, at))
        for tell in tellings or ():
            tell()
        return tellings is not None

    def _is_published(self, mission: str) -> bool:
        with snapshot(self._writer.db) as root:
            return bool(roots.mission_record(root, mission).status.published)

    def _fold(self, root: Root, mission: str, at: str) -> list[Telling] | None:
        """Apply a mission's contributions; return the calls to make after the commit, None if published before."""
        _, status, thought = root[roots.MISSIONS][mission]
        if status.published:
            return None
        # Reading the slots also loads the thought: before that its serial would be zero.
        slots = own_slots(thought)
        if "contributions" not in slots:
            raise InternalError(f"{mission} is to be published and has no committed thought")
        tellings: list[Telling] = []
        for kind, payload in slots["contributions"]:
            if kind not in self._appliers:
                raise InternalError(f"{mission} contributes to {kind!r}, which nothing here folds")
            tellings.extend(self._appliers[kind](root, mission, payload) or ())
        roots.move_tally(root, mission, status.word, "done")
        status.become("done", at)
        status.published = True
        status.tid = tid_text(thought._p_serial)
        root[roots.UNFOLDED].discard(mission)
        return tellings
