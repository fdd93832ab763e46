"""The verb that erases something for good, through every door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from typing import Any, TypeAlias

from batos.care.erasure import Erasure, ErasureParts, ErasureRequest
from batos.client.wire.care_shapes import EraseArgs
from batos.image.storage import journal_uri
from batos.mission_documents import as_plain
from batos.uvm import UVM

#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]:
    """Return the verb by its name."""

    @cache
    def work() -> Erasure:
        home, journal = uvm.settings.home, journal_uri(uvm.image.uri, uvm.settings.journal)
        return Erasure(
            ErasureParts(uvm.image, uvm.journal, uvm.document_store, uvm.packer, uvm.events, uvm.clock, home, journal)
        )

    async def erase(given: EraseArgs, *_told: object) -> dict[str, Any]:
        by = given.user or uvm.settings.asker
        request = ErasureRequest(
            given.target, given.user, by, cascade=given.cascade, as_words=given.words, alone=given.alone
        )
        if given.dry_run:
            return as_plain(await work().plan(request))
        told = await shield(work().erase(request))
        uvm.backfill.wake()
        return as_plain(told)

    return {"erase": erase}
