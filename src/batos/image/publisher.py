"""The one writer of shared structures: folds committed contributions in, many missions to a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from batos.errors import InternalError
from batos.image import roots
from batos.image.ids import iso, tid_text
from batos.image.writer import Writer


class Applier(Protocol):
    """Folds contributions of one kind into a projection; memory and jit register theirs."""

    def __call__(self, root: Any, mission: str, payload: Any) -> None:
        """Change the projection; must give the same state when the same contribution comes twice."""


class Publisher:
    """Folds what committed missions contributed, and marks them done."""

    def __init__(self, writer: Writer, appliers: Mapping[str, Applier], clock: Callable[[], datetime]) -> None:
        self._writer = writer
        self._appliers = dict(appliers)
        self._clock = clock

    async def fold(self, mission: str) -> None:
        """Publish one committed mission; concurrent ones share a commit. Folding twice changes nothing."""
        at = iso(self._clock())
        await self._writer.apply(lambda root: self._fold(root, mission, at))

    def _fold(self, root: Any, mission: str, at: str) -> None:
        _, status, thought = root[roots.MISSIONS][mission]
        if status.published:
            return
        if thought._p_serial == b"\0" * 8:
            raise InternalError(f"{mission} is to be published and has no committed thought")
        for kind, payload in thought.contributions:
            self._appliers[kind](root, mission, payload)
        status.become("done", at)
        status.published = True
        status.tid = tid_text(thought._p_serial)
        root[roots.UNFOLDED].discard(mission)
