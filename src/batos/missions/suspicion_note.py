"""The note of a process that suspected missions wait in it, by which its death speaks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from batos.image.image import LivingImage
from batos.image.nodes import suspicion
from batos.missions.queue import QueueEntry
from batos.protocol.errors import BatosError

_log = structlog.get_logger("batos.workers")


class SuspicionNote:
    """Writes the note to the image while the process works, and drops it when that ends as it should."""

    def __init__(self, image: LivingImage, group: asyncio.TaskGroup) -> None:
        self._image, self._group = image, group
        self._task: asyncio.Task[None] | None = None

    def see(self, place: QueueEntry) -> None:
        """Write the note once, when the first suspected mission has come."""
        if place.runs_alone and self._task is None:
            self._task = self._group.create_task(self._apply(suspicion.note))

    async def aclose(self) -> None:
        """Drop the note."""
        if self._task is not None:
            await asyncio.wait({self._task})
            await self._apply(suspicion.drop)

    async def _apply(self, change: Callable[..., None]) -> None:
        try:
            await self._image.writer.apply(partial(change, fence=self._image.fence))
        except Exception as error:  # nothing hangs on it but what counts against missions: no server ends for it
            reason = error.as_dict() if isinstance(error, BatosError) else f"{type(error).__name__}: {error}"
            _log.warning("suspicion.not_noted", reason=reason)
