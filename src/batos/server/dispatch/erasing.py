"""The verb that erases something for good, through every door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Final

import structlog

from batos.care.erasure import Erasure, ErasureParts, ErasureRequest
from batos.client.pending import OnEvent
from batos.concurrency.threads import LongWork
from batos.image.storage import journal_uri
from batos.minds.stopping import as_batos_error
from batos.protocol.event_payloads import ERASURE_STEP, ErasureStep
from batos.protocol.server_documents import ErasedPage
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.server_verbs import ERASE, EraseArgs

_log = structlog.get_logger("batos.image")

#: Seconds between two tries to finish what was cut off.
_PAUSE: Final = 5.0


def erasure_parts(uvm: UVM) -> ErasureParts:
    """Return the parts of a UVM that an erasure works on."""
    home, journal = uvm.settings.home, journal_uri(uvm.image.uri, uvm.settings.journal)
    return ErasureParts(
        uvm.image, uvm.journal, uvm.document_store, uvm.packer, uvm.events, uvm.clock, home, journal,
        partial(_resting, uvm),
    )  # fmt: skip


@asynccontextmanager
async def _resting(uvm: UVM) -> AsyncIterator[None]:
    """Keep the mind's own work waiting: a duty may want the memories that an erasure has for itself, or ask copies."""
    async with uvm.heartbeat.resting(), uvm.learning.resting():
        yield


async def finish_one(uvm: UVM) -> bool:
    """Finish an erasure that was cut off; return whether nothing is left of one. An error is logged."""
    work = LongWork()
    try:
        return await work.finish(Erasure(erasure_parts(uvm)).finish(work))
    except Exception as error:  # no reason to end the process: `batos status` tells what is left
        _log.warning("erasure.not_finished", reason=as_batos_error(error).as_dict())
        return False


async def keep_finishing(uvm: UVM) -> None:
    """Try until nothing is left of an erasure that was cut off: it waits for missions that have not ended."""
    while True:
        if await finish_one(uvm):
            return
        await asyncio.sleep(_PAUSE)


def verbs(uvm: UVM, shield: Shield, leave_copies: Callable[[], Awaitable[None]]) -> Mapping[str, Handler]:
    """Return the verb by its name; `leave_copies` ends what thinks about the mind as it was."""

    @cache
    def erasure() -> Erasure:
        return Erasure(replace(erasure_parts(uvm), leave_copies=leave_copies))

    async def erase(given: EraseArgs, on_event: OnEvent, *_told: object) -> ErasedPage:
        begun: set[str] = set()

        def tell(phase: str, completed: int, total: int) -> None:
            step = ErasureStep(phase=phase, completed=completed, total=total)
            if phase not in begun:  # watchers and the log are told of each phase, the asker of each part of it
                begun.add(phase)
                uvm.events.emit(ERASURE_STEP, step)
            on_event(ERASURE_STEP.name, step)

        work = LongWork(tell)
        by = given.user or uvm.settings.asker
        request = ErasureRequest(
            given.target, given.user, by, cascade=given.cascade, as_words=given.words, alone=given.alone
        )
        if given.dry_run:
            return await work.finish(erasure().plan(request, work))
        try:
            told = await shield(erasure().erase(request, work), work.stop)
        finally:
            work.leave()
        uvm.backfill.job.wake()
        return told

    return dict((bind(ERASE, erase),))
