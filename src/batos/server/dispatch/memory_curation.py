"""The verb that folds memories into summaries, and brings them back, through every door."""

from __future__ import annotations

from collections.abc import Mapping

from batos.autotelic.curator import CurationWish
from batos.client.wire.pending import OnEvent
from batos.protocol.errors import BriefError
from batos.protocol.event_payloads import MEMORY_FOLDED, MemoryFolded
from batos.protocol.memory_documents import CuratedPage, UnfoldedPage
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.memory_verbs import CURATE, CurateArgs


def verbs(uvm: UVM, shielded: Shield) -> Mapping[str, Handler]:
    """Return the verb by its name."""

    async def answer_curate(given: CurateArgs, on_event: OnEvent, *_told: object) -> CuratedPage | UnfoldedPage:
        user = given.user or uvm.settings.asker
        if given.undo is not None and given.dry_run:
            raise BriefError(
                "nothing is undone to look at it", field="args.dry_run", remedy="Leave one of the two out."
            )
        if given.undo is not None:
            told: CuratedPage | UnfoldedPage = await shielded(uvm.curator.undo(given.undo, user))
        else:

            def tell(folded: MemoryFolded) -> None:
                on_event(MEMORY_FOLDED.name, folded)

            days = uvm.settings.cold_days if given.cold_days is None else given.cold_days
            wish = CurationWish(user, days, given.limit, given.dry_run, given.rule)
            told = await shielded(uvm.curator.curate(wish, tell))
        uvm.backfill.job.wake()
        return told

    return dict((bind(CURATE, answer_curate),))
