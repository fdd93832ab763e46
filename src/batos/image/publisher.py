"""The one writer of shared structures: folds committed contributions in, many missions to a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

from batos.image import roots
from batos.image.ids import iso, tid_text
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.image.writer import Writer
from batos.objects.prototype import own_slots
from batos.protocol.errors import InternalError

#: Seconds between two looks whether another node has published a mission.
PAUSE: Final = 0.05

#: Called after the commit of a change to a projection, to report it.
Telling: TypeAlias = Callable[[], None]


class Applier(Protocol):
    """Folds contributions of one kind into a projection; memory and the method lifecycle register theirs."""

    def __call__(self, root: Root, mission: str, payload: Any) -> Sequence[Telling] | None:
        """Change the projection, and return the calls to make on the loop after the commit, in order. May run again."""


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
        """Apply a mission's contributions; return the calls to make after the commit, or None if it was published
        before.
        """
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
