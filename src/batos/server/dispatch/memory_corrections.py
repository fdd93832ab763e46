"""The verbs by which a person corrects what is remembered: edit, retract, restore, pin, unpin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from batos.memory.corrections import Corrections
from batos.protocol.errors import BriefError
from batos.protocol.memory_shapes import (
    MemoriesEditArgs,
    MemoriesRestoreArgs,
    MemoriesRetractArgs,
    PinArgs,
    UnpinArgs,
)
from batos.protocol.mission_documents import as_plain
from batos.uvm import UVM

#: The function of a verb: its arguments, and who hears of it.
Verb: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]
#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Verb]:
    """Return the function of each verb, by name."""

    def corrections() -> Corrections:
        return Corrections(uvm.image, uvm.document_store, uvm.clock)

    def owner_of(user: str | None) -> str:
        return user or uvm.settings.asker

    async def edit(given: MemoriesEditArgs, *_told: object) -> dict[str, Any]:
        told = await shield(uvm.document_store.edit(given.document, given.text, owner_of(given.user)))
        uvm.backfill.wake()
        return as_plain(told)

    async def retract(given: MemoriesRetractArgs, *_told: object) -> dict[str, Any]:
        if bool(given.documents) == (given.source is not None):
            raise BriefError("either documents or a source is given", field="args.source", remedy="Give one of them.")
        work = corrections().retract(given.documents, owner_of(given.user), source=given.source, cascade=given.cascade)
        return as_plain(await shield(work))

    async def restore(given: MemoriesRestoreArgs, *_told: object) -> dict[str, Any]:
        return as_plain(await shield(corrections().restore(given.documents, owner_of(given.user), alone=given.alone)))

    async def pin(given: PinArgs, *_told: object) -> dict[str, Any]:
        return as_plain(await shield(corrections().pin(given.documents, owner_of(given.user))))

    async def unpin(given: UnpinArgs, *_told: object) -> dict[str, Any]:
        return as_plain(await shield(corrections().unpin(given.documents, owner_of(given.user))))

    return {
        "memories_edit": edit,
        "memories_retract": retract,
        "memories_restore": restore,
        "pin": pin,
        "unpin": unpin,
    }
