"""The routing decision of a turn: made by the router, stored at a mission's first attempt, and used by later ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief
from batos.routing.question_vectors import JournaledVectors
from batos.routing.router import Route, Router

#: The journal note of an attempt's beginning has the route under this name.
ROUTE_NOTE = "route"


async def decide(
    router: Router, brief: MissionBrief, root: Root, notes: Iterable[Mapping[str, Any]], vectors: JournaledVectors
) -> Route:
    """Decide who takes a mission, and how; `vectors` has what was embedded for it, or pays for it.

    `notes` are of the attempts that asked the same before, nearest first: what was noted there is used again, so that
    the same calls are made, whatever became of the codex or the embedder since. The asker's choice wins over all.
    """
    effort = None if brief.effort == "auto" else brief.effort
    for note in notes:
        if ROUTE_NOTE in note:
            return Route.from_dict(note[ROUTE_NOTE]).override(brief.persona, effort, router.margin)
    return await router.route(
        brief.text,
        files=len(brief.attachments),
        persona=brief.persona,
        effort=effort,
        before=_before(root, brief),
        vectors=vectors,
    )


def _before(root: Root, brief: MissionBrief) -> str | None:
    """Return the persona that led the turn before this one, or None."""
    last = brief.in_reply_to
    conversation = root[roots.CONVERSATIONS].get(brief.conversation) if brief.conversation else None
    if last is None and conversation is not None and conversation.turns:
        last = conversation.turns[conversation.turns.maxKey()]
    if last is None or last not in root[roots.MISSIONS]:
        return None
    record, _, thought = root[roots.MISSIONS][last]
    route = own_slots(thought).get("route")
    return str(route["personas"][0]) if route and record.value["user"] == brief.user else None
