"""The verbs by which a person corrects what is remembered: edit, retract, restore, pin, unpin."""

from __future__ import annotations

from collections.abc import Mapping

from batos.memory.corrections import Corrections
from batos.protocol.errors import BriefError
from batos.protocol.memory_documents import EditedPage, PinnedPage, RestoredPage, RetractedPage
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.memory_verbs import (
    MEMORIES_EDIT,
    MEMORIES_RESTORE,
    MEMORIES_RETRACT,
    PIN,
    UNPIN,
    MemoriesEditArgs,
    MemoriesRestoreArgs,
    MemoriesRetractArgs,
    PinArgs,
    UnpinArgs,
)


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name."""

    def corrections() -> Corrections:
        return Corrections(uvm.image, uvm.document_store, uvm.clock)

    def owner_of(user: str | None) -> str:
        return user or uvm.settings.asker

    async def edit(given: MemoriesEditArgs, *_told: object) -> EditedPage:
        told = await shield(uvm.document_store.edit(given.document, given.text, owner_of(given.user)))
        uvm.backfill.job.wake()
        return told

    async def retract(given: MemoriesRetractArgs, *_told: object) -> RetractedPage:
        if bool(given.documents) == (given.source is not None):
            raise BriefError("either documents or a source is given", field="args.source", remedy="Give one of them.")
        work = corrections().retract(given.documents, owner_of(given.user), source=given.source, cascade=given.cascade)
        return await shield(work)

    async def restore(given: MemoriesRestoreArgs, *_told: object) -> RestoredPage:
        return await shield(corrections().restore(given.documents, owner_of(given.user), alone=given.alone))

    async def pin(given: PinArgs, *_told: object) -> PinnedPage:
        return await shield(corrections().pin(given.documents, owner_of(given.user)))

    async def unpin(given: UnpinArgs, *_told: object) -> PinnedPage:
        return await shield(corrections().unpin(given.documents, owner_of(given.user)))

    return dict(
        (
            bind(MEMORIES_EDIT, edit),
            bind(MEMORIES_RETRACT, retract),
            bind(MEMORIES_RESTORE, restore),
            bind(PIN, pin),
            bind(UNPIN, unpin),
        )
    )
