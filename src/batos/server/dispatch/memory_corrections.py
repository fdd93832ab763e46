"""The verbs by which a person corrects what is remembered: edit, retract, restore, pin, unpin, and curate."""

from __future__ import annotations

from collections.abc import Mapping

from batos.autotelic.curator import CurationWish
from batos.client.wire.pending import OnEvent
from batos.memory.corrections import Corrections
from batos.protocol.errors import BriefError
from batos.protocol.event_payloads import MEMORY_FOLDED
from batos.protocol.memory_documents import CuratedPage, EditedPage, RetractedPage, UnfoldedPage
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.correction_verbs import (
    CURATE,
    MEMORIES_EDIT,
    MEMORIES_RESTORE,
    MEMORIES_RETRACT,
    PIN,
    UNPIN,
    CurateArgs,
    MemoriesEditArgs,
    MemoriesRetractArgs,
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

    async def curate(given: CurateArgs, on_event: OnEvent, *_told: object) -> CuratedPage | UnfoldedPage:
        if given.undo is not None and given.dry_run:
            raise BriefError(
                "nothing is undone to look at it", field="args.dry_run", remedy="Leave one of the two out."
            )
        if given.undo is not None:
            told: CuratedPage | UnfoldedPage = await shield(uvm.curator.undo(given.undo, owner_of(given.user)))
        else:
            days = uvm.settings.cold_days if given.cold_days is None else given.cold_days
            wish = CurationWish(owner_of(given.user), days, given.limit, given.dry_run, given.rule)
            told = await shield(uvm.curator.curate(wish, lambda folded: on_event(MEMORY_FOLDED.name, folded)))
        uvm.backfill.job.wake()
        return told

    return dict(
        (
            bind(CURATE, curate),
            bind(MEMORIES_EDIT, edit),
            bind(MEMORIES_RETRACT, retract),
            bind(
                MEMORIES_RESTORE,
                lambda given, *_told: shield(
                    corrections().restore(given.documents, owner_of(given.user), alone=given.alone)
                ),
            ),
            bind(PIN, lambda given, *_told: shield(corrections().pin(given.documents, owner_of(given.user)))),
            bind(UNPIN, lambda given, *_told: shield(corrections().unpin(given.documents, owner_of(given.user)))),
        )
    )
