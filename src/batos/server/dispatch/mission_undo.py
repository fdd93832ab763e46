"""The verbs that undo missions and bring them back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from typing import Any, TypeAlias

from batos.history import undoing
from batos.history.mission_traces import Keeping
from batos.history.undoing import Undoing
from batos.protocol.mission_documents import as_plain
from batos.protocol.undo_shapes import RedoArgs, UndoArgs
from batos.uvm import UVM

#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]:
    """Return the function of each verb, by name."""

    @cache
    def work() -> Undoing:
        return Undoing(uvm.image, uvm.document_store, uvm.events, uvm.clock)

    async def undo(given: UndoArgs, *_told: object) -> dict[str, Any]:
        mission = await asyncio.to_thread(uvm.readings.resolve_mission, given.mission, given.user)
        keeping = Keeping(**dict.fromkeys(given.keep, True))
        by = given.user or uvm.settings.asker
        if given.dry_run:
            return as_plain(await asyncio.to_thread(work().plan, mission, by, keeping))
        return as_plain(await shield(work().undo(mission, by, keeping, cascade=given.cascade)))

    async def redo(given: RedoArgs, *_told: object) -> dict[str, Any]:
        mission = await asyncio.to_thread(_find_undone, uvm, given.mission, given.user)
        told = await shield(work().redo(mission, given.user or uvm.settings.asker, cascade=given.cascade))
        uvm.backfill.wake()
        uvm.mission_memory.wake()
        uvm.releaser.wake()
        return as_plain(told)

    return {"undo": undo, "redo": redo}


def _find_undone(uvm: UVM, named: str | None, user: str | None) -> str:
    if named is not None:
        return uvm.readings.resolve_mission(named, user)
    with uvm.image.snapshot() as root:
        return undoing.find_newest_undone(root, user)
