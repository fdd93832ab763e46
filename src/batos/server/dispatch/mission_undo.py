"""The verbs that undo missions and bring them back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache

from batos.history import undoing
from batos.history.mission_traces import Keeping
from batos.history.undoing import Undoing
from batos.protocol.undo_documents import RedonePage, UndonePage
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.undo_verbs import REDO, UNDO, RedoArgs, UndoArgs


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name."""

    @cache
    def work() -> Undoing:
        return Undoing(uvm.image, uvm.document_store, uvm.events, uvm.clock)

    async def undo(given: UndoArgs, *_told: object) -> UndonePage:
        mission = await asyncio.to_thread(uvm.readings.resolve_mission, given.mission, given.user)
        keeping = Keeping(**dict.fromkeys(given.keep, True))
        by = given.user or uvm.settings.asker
        if given.dry_run:
            return await asyncio.to_thread(work().plan, mission, by, keeping)
        return await shield(work().undo(mission, by, keeping, cascade=given.cascade))

    async def redo(given: RedoArgs, *_told: object) -> RedonePage:
        mission = await asyncio.to_thread(_find_undone, uvm, given.mission, given.user)
        told = await shield(work().redo(mission, given.user or uvm.settings.asker, cascade=given.cascade))
        uvm.backfill.job.wake()
        uvm.mission_memory.job.wake()
        uvm.releaser.job.wake()
        return told

    return dict((bind(UNDO, undo), bind(REDO, redo)))


def _find_undone(uvm: UVM, named: str | None, user: str | None) -> str:
    if named is not None:
        return uvm.readings.resolve_mission(named, user)
    with uvm.image.snapshot() as root:
        return undoing.find_newest_undone(root, user)
