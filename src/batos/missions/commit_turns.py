"""The order in which missions commit that change the same objects: who lost a conflict is not overtaken again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    """The missions that hold or wait for an object; `lock` serves them in the order in which they came."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    missions: int = 0


class CommitTurns:
    """The turns of one process's missions, by the ids of the objects that they change.

    A mission takes the turns of its objects before it commits, and keeps them until it has ended. If its commit meets
    another's, it thinks again while it has the turns, so that no other mission of this process changes what it builds
    on. Without that, of N missions that change one object each would think again up to N - 1 times.
    """

    def __init__(self) -> None:
        self._lines: dict[bytes, _Line] = {}

    def __len__(self) -> int:
        """Return the number of objects whose turn a mission has or waits for."""
        return len(self._lines)

    @contextmanager
    def place(self) -> Iterator[CommitPlace]:
        """Return a mission's place; its turns are given back at the end."""
        place = CommitPlace(self._lines)
        try:
            yield place
        finally:
            place.leave()


class CommitPlace:
    """The turns that one mission has."""

    def __init__(self, lines: dict[bytes, _Line]) -> None:
        self._lines = lines
        self._held: list[bytes] = []

    async def take(self, objects: Collection[bytes]) -> None:
        """Wait for the turns of these objects, beside those that the mission has.

        If it lacks one, it gives all back and takes them anew in the order of their ids, so that no two missions wait
        for each other. A cancelled wait takes nothing.
        """
        if all(oid in self._held for oid in objects):
            return
        wanted = sorted({*self._held, *objects})
        self.leave()
        try:
            for oid in wanted:
                await self._take_one(oid)
        except BaseException:
            self.leave()
            raise

    async def _take_one(self, oid: bytes) -> None:
        line = self._lines.setdefault(oid, _Line())
        line.missions += 1
        try:
            await line.lock.acquire()
        except BaseException:
            self._leave_line(oid, line)
            raise
        self._held.append(oid)

    def leave(self) -> None:
        """Give all turns back."""
        while self._held:
            oid = self._held.pop()
            line = self._lines[oid]
            line.lock.release()
            self._leave_line(oid, line)

    def _leave_line(self, oid: bytes, line: _Line) -> None:
        line.missions -= 1
        if not line.missions:
            del self._lines[oid]
