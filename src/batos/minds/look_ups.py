"""Look-ups of a mission: by a person's message, by a method, and as tools of a cycle."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from batos.agency.look_ups.granted import LookingMission, LookUpOrder, order_of
from batos.agency.look_ups.look_up_tools import LookUpTools
from batos.agency.look_ups.memories import MemoryLookUp
from batos.image.ownership import DOOR
from batos.memory.records import memory_records
from batos.minds import context_building
from batos.minds.context import MindContext
from batos.minds.permission import ask_person, list_earlier_questions
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import LookUpFailed, NotFound, ObjectError, Refused

#: The begin of the names of the kernel's functions for look-ups.
LOOK_UP: Final = "look_up."
#: The most characters of a text that is answered; the journal has all of it.
MOST_SHOWN: Final = 64 * 1024


def asking_of(context: MindContext) -> LookingMission:
    """Return a mission as one that looks up."""
    mission = context.mission
    reach = context_building.reach_of(mission.brief)
    memory = None
    if reach is not None and context.io.recollection is not None:
        memory = MemoryLookUp(
            lambda query: context_building.find_passages(context, query),
            lambda name: _text_of(context, name),
            context.io.session.clock,
        )
    said, ask = list_earlier_questions(context), partial(ask_person, context)
    return LookingMission(mission.root, mission.brief, context.io.outside, memory, said, ask)


def _text_of(context: MindContext, name: str) -> str | None:
    """Return the text of a document that the mission may recall."""
    root, reach = context.mission.root, context_building.reach_of(context.mission.brief)
    try:
        found = memory_records.find_document(root, name, context.mission.brief.user)
    except NotFound:
        return None
    if reach is None or (reach.scopes is not None and own_slots(found)["scope"] not in reach.scopes):
        return None
    return "\n\n".join(str(own_slots(each)["text"]) for each in memory_records.chunks_of(root, found))


def toolbox_of(context: MindContext) -> LookUpTools | None:
    """Return the look-ups that are granted to a mission, as a toolbox; None where it can look nothing up."""
    return None if context.io.look_ups is None else LookUpTools(asking_of(context), context.io.look_ups)


async def look_up(
    context: MindContext, capability: UvmObject, order: LookUpOrder, path: str
) -> dict[str, Any] | list[dict[str, str]]:
    """Return what a message to a capability brings: the hits, or the document without its page.

    Raises: ObjectError: it may be caught by a method: as `LookUps.answer`, or this mind looks nothing up.
    """
    if context.io.look_ups is None:
        raise ObjectError("this mind looks nothing up")
    try:
        found = cast("dict[str, Any]", await context.io.look_ups.answer(asking_of(context), capability, order, path))
    except (Refused, LookUpFailed) as error:
        if order.by_person:
            raise
        raise ObjectError(error.message, remedy=error.remedy) from error
    if "hits" in found:
        return list(found["hits"])
    told = {name: value for name, value in found["document"].items() if value and name not in _KEPT}
    if len(told["text"]) > MOST_SHOWN:
        left_out = f"all behind the first {MOST_SHOWN:,} of {len(told['text']):,} characters"
        told |= {"text": told["text"][:MOST_SHOWN], "left_out": [*told.get("left_out", ()), left_out]}
    return told


async def answer_message(context: MindContext, capability: UvmObject, selector: str, *args: object) -> dict[str, Any]:
    """Return what a mission's own message to a capability brings, with its trust class. Raises: as `look_up`."""
    order = order_of(selector, args, by_person=context.mission.brief.origin.door != DOOR)
    path = f"{own_slots(capability).get('name', 'look_up')}/{selector.rstrip('_')}#0"
    found = await look_up(context, capability, order, path)
    return {"trust": "external", **({"hits": found} if isinstance(found, list) else found)}


#: The fields of a document that stay in the journal.
_KEPT: Final = frozenset({"page", "etag", "last_modified"})
