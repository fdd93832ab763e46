"""The verb that folds memories into summaries, and brings them back, through every door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from batos.autotelic.curator import CurationWish
from batos.client.wire.pending import OnEvent
from batos.protocol.errors import BriefError
from batos.protocol.event_payloads import MEMORY_FOLDED, MemoryFolded
from batos.protocol.memory_shapes import CurateArgs
from batos.protocol.mission_documents import as_plain
from batos.uvm import UVM

#: A verb's function of its arguments; the client hears of each region before the result.
Verb: TypeAlias = Callable[[Any, OnEvent, object], Awaitable[dict[str, Any]]]
#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


def verbs(uvm: UVM, shielded: Shield) -> Mapping[str, Verb]:
    """Return the verb by its name."""

    async def answer_curate(given: CurateArgs, on_event: OnEvent, *_told: object) -> dict[str, Any]:
        user = given.user or uvm.settings.asker
        if given.undo is not None and given.dry_run:
            raise BriefError(
                "nothing is undone to look at it", field="args.dry_run", remedy="Leave one of the two out."
            )
        if given.undo is not None:
            told = await shielded(uvm.curator.undo(given.undo, user))
        else:

            def tell(folded: MemoryFolded) -> None:
                on_event(MEMORY_FOLDED.name, folded)

            days = uvm.settings.cold_days if given.cold_days is None else given.cold_days
            wish = CurationWish(user, days, given.limit, given.dry_run, given.rule)
            told = await shielded(uvm.curator.curate(wish, tell))
        uvm.backfill.wake()
        return as_plain(told)

    return {"curate": answer_curate}
