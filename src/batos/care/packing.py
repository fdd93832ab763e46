"""Packing: states of the image and the journal that are older than the kept history go, and their space is freed.

The words of calls go when their mission ended long ago; their fields and digests stay. A mission that has not ended
keeps its words, and so does each one that it may be served from.

No state goes that an open mission may still read, nor a question to the past or a dream of this process, nor one of the
last hour: another node may ask, and a backup may be under way. An undone mission is kept as data, so that a redo works
after a pack.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from persistent.timestamp import TimeStamp
from ZODB.DB import DB
from ZODB.serialize import referencesf

from batos.concurrency.jobs import Job
from batos.concurrency.threads import LongWork
from batos.events import Events
from batos.image import roots
from batos.image.filestorage import SoundFileStorage, disk_full, is_full
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.past import newest_commit
from batos.image.roots import JournalRoot, Root
from batos.image.transactions import snapshot
from batos.inference.journal import MISSIONS, MissionLog
from batos.protocol.event_payloads import IMAGE_PACKED, ImagePacked
from batos.protocol.server_documents import PackedPage, StoredSizes
from batos.records import tools

#: States that no pack takes away, in the time before now.
LEAST_KEPT: Final = timedelta(hours=1)
#: Seconds between two looks whether a pack is due, and the shortest time between two packs by themselves.
_LOOKS: Final = 3600.0
_PERIOD: Final = timedelta(days=1)
#: Seconds after a commit at which it is surely in a pack: a number of seconds is not as exact as a commit's id.
_LATER: Final = 0.001
#: Logs that one commit changes: the writers of missions wait for it.
BATCH: Final = 8
#: The key in the root's `genesis` under which the last pack is noted: {at, until}.
PACKED: Final = "packed"


@dataclass(frozen=True, slots=True)
class PackerParts:
    """The parts of a packer; `is_idle` tells whether no mission runs or waits, `days` of history are kept.

    The words of calls stay for `journal_days` after the end of their missions; 0: always.
    """

    image: LivingImage
    events: Events
    clock: Callable[[], datetime]
    is_idle: Callable[[], bool]
    days: float
    journal_days: float = 0.0
    least_kept: timedelta = LEAST_KEPT


class Packer:
    """Packs one image and its journal, when a person asks for it, and by itself once a day while nothing else runs."""

    def __init__(self, parts: PackerParts) -> None:
        self._parts = parts
        self._packing = asyncio.Lock()
        #: The work that the newest pack is a part of.
        self._work: LongWork | None = None
        every = (_LOOKS, _LOOKS)
        self.jobs = (
            Job("packing", partial(_then_hourly, self.pack_if_due), retry=every),
            Job("journal", partial(_then_hourly, self.erase_if_due), retry=every),
        )
        self._next_erasure = parts.clock()
        #: The moment that each open copy of the mind reads; two copies may read the same.
        self._read: list[datetime] = []

    @asynccontextmanager
    async def keeping(self, moment: datetime) -> AsyncIterator[None]:
        """Keep what a copy of the mind as of a moment reads, until it is closed; only an erasure takes it away."""
        self._read.append(moment)
        try:
            if moment < self._parts.clock() - self._parts.least_kept:
                async with self._packing:  # a pack that is under way knows nothing of this one
                    pass
            yield
        finally:
            self._read.remove(moment)

    async def pack(self, days: float | None = None, work: LongWork | None = None) -> PackedPage:
        """Take away what is older than so many days (None: those of the settings), and return what that freed.

        Missions go on meanwhile. Raises: DiskFull: there is no room for it; nothing is changed. NoServer: the work was
        told to stop.
        """
        kept = timedelta(days=self._parts.days if days is None else days)
        return await self._pack_both(self._parts.clock() - max(kept, self._parts.least_kept), work or LongWork())

    async def pack_to_now(self, times: int, work: LongWork) -> PackedPage:
        """Take away all but the present, so many times, as an erasure needs; return what the last one freed.

        A question to the past that is under way may fail.
        """
        for _ in range(times - 1):
            await self._pack_both(None, work)
        return await self._pack_both(None, work)

    async def _pack_both(self, wished: datetime | None, work: LongWork) -> PackedPage:
        """Pack image and journal to a moment (None: to the newest commit of each), if no open mission holds it back."""
        image, clock = self._parts.image, self._parts.clock
        async with self._packing, image.publishing.here():  # one node at a time
            self._work = work
            before = image.sizes()
            erased = await self._erase_words()
            with image.snapshot() as root:  # right before the packs: missions may have begun meanwhile
                until, held_by = _limit(root, wished or clock())
            if wished is not None and (read := min(self._read, default=until)) < until:
                until, held_by = read, f"a question as of {iso(read)}"
            for db in (image.db, image.journal_db):
                packing = partial(_pack, db, until, to_newest=wished is None and not held_by)
                if isinstance(db.storage, SoundFileStorage):
                    with db.storage.heeding(work.step):
                        await asyncio.to_thread(packing)
                else:
                    await work.ask_server(packing)
            after = image.sizes()
            noted = {"at": iso(clock()), "until": iso(until)}

            def note(root: Root) -> None:
                root[roots.GENESIS][PACKED] = noted

            await image.shared.apply(note)
        freed = _sum(before) - _sum(after)
        self._parts.events.emit(IMAGE_PACKED, ImagePacked(until=iso(until), freed=freed))
        return {"until": iso(until), "before": before, "after": after, "held_by": held_by, "erased": erased}

    async def _erase_words(self) -> int:
        """Erase the words of calls whose missions ended longer ago than they are kept; return how many calls."""
        if not self._parts.journal_days:
            return 0
        before = self._parts.clock() - timedelta(days=self._parts.journal_days)
        return await erase_old_words(self._parts.image, before)

    # -- by itself

    def keep_packed(self) -> None:
        """Pack, and erase the words of old calls, whenever it is due from now on, in the background."""
        for job, days in zip(self.jobs, (self._parts.days, self._parts.journal_days), strict=True):
            if days > 0:
                job.wake(_LOOKS)
                job.start()

    async def erase_if_due(self) -> bool:
        """Erase the words of old calls if this process did not do so within a day, and no mission runs."""
        now = self._parts.clock()
        if now < self._next_erasure or not self._may_work():
            return False
        await self._erase_words()
        self._next_erasure = now + _PERIOD
        return True

    async def pack_if_due(self) -> bool:
        """Pack if the last pack is a day old, a day of history is older than is kept, and no mission runs."""
        if not self._may_work():
            return False
        with self._parts.image.snapshot() as root:
            due = _is_due(root, self._parts.clock(), timedelta(days=self._parts.days))
        if due:
            await self.pack()
        return due

    def _may_work(self) -> bool:
        image = self._parts.image
        return image.refusing is None and image.publishing.is_here and self._parts.is_idle()

    async def aclose(self) -> None:
        """Stop; of a pack that is under way nothing is half done."""
        if self._work is not None:
            self._work.stop()
        async with self._packing:
            for job in self.jobs:
                await job.stop()


async def _then_hourly(look: Callable[[], Awaitable[bool]]) -> float:
    """Look whether there is something to do, and again in an hour."""
    await look()
    return _LOOKS


def _limit(root: Root, wished: datetime) -> tuple[datetime, str]:
    """Return the moment until which states may go, and the open mission that holds it back, if one does."""
    until, held_by = wished, ""
    for name in root[roots.UNFOLDED]:
        record = roots.find_record(root, name)
        if record is not None and not tools.rests(record):
            accepted = datetime.fromisoformat(record.brief.accepted_at)
            if accepted < until:
                until, held_by = accepted, name
    return until, held_by


def _is_due(root: Root, now: datetime, kept: timedelta) -> bool:
    last: dict[str, str] | None = root[roots.GENESIS].get(PACKED)
    if last is None:
        first = next(iter(roots.records_of(root)), None)
        return first is not None and datetime.fromisoformat(first[1].brief.accepted_at) < now - kept - _PERIOD
    until, at = (datetime.fromisoformat(last[name]) for name in ("until", "at"))
    return now - at >= _PERIOD and now - kept - until >= _PERIOD


def _pack(db: DB, until: datetime, *, to_newest: bool) -> None:
    """Pack a database; `to_newest` also beyond the moment, where a server's clock is ahead of ours.

    Raises: DiskFull: there is no room for the file that a pack writes beside the former one; that one stays.
    """
    moment = until.timestamp()
    if to_newest:
        moment = max(moment, TimeStamp(newest_commit(db)).timeTime() + _LATER)
    try:
        db.storage.pack(moment, referencesf)  # the database would log the traceback of a pack that was told to stop
    except Exception as error:
        if not is_full(error):
            raise
        path = Path(db.storage.getName())
        raise disk_full(error, path if path.is_file() else None, db.getSize()) from error


def _sum(sizes: StoredSizes) -> int:
    return sizes["bytes"] + sizes["journal_bytes"] + sizes["blob_bytes"]


# -- the words of old calls


async def erase_old_words(image: LivingImage, before: datetime) -> int:
    """Erase the words of all calls whose mission ended before a moment; return how many calls they were."""
    due = await asyncio.to_thread(list_due, image, before)
    erased = 0
    for start in range(0, len(due), BATCH):
        erased += await image.journal_writer.apply(partial(_erase_logs, names=due[start : start + BATCH]))
    return erased


def list_due(image: LivingImage, before: datetime) -> list[str]:
    """Return the logs whose words are to go."""
    with image.snapshot() as root, snapshot(image.journal_db) as journal:
        logs: Mapping[str, MissionLog] = journal.get(MISSIONS) or {}
        held = set(_held_logs(root))
        return [
            name for name, log in logs.items() if name not in held and log.has_words and _ended(root, name, log, before)
        ]


def _held_logs(root: Root) -> Iterator[str]:
    """Yield the logs of missions that have not ended, and of those that these may be served from, each once.

    A hostile mind may have missions that come from each other in a circle.
    """
    seen: set[str] = set()
    for name in root[roots.UNFOLDED]:
        held: str | None = name
        while held is not None and held not in seen:
            seen.add(held)
            yield held
            record = roots.find_record(root, held)
            held = None if record is None else record.brief.value.get("ancestor")


def _ended(root: Root, name: str, log: MissionLog, before: datetime) -> bool:
    """Test if a mission ended before a moment; a log of none (a dream, a generation) ends with its last call."""
    record = roots.find_record(root, name)
    if record is not None:
        return datetime.fromisoformat(record.status.at) < before
    moments = [each.fields["ended"] or each.fields["started"] for each in log.entries]
    return bool(moments) and max(map(datetime.fromisoformat, moments)) < before


def _erase_logs(root: JournalRoot, *, names: Sequence[str]) -> int:
    logs: Any = root.get(MISSIONS) or {}
    return sum(logs[name].erase_words() for name in names if name in logs)
