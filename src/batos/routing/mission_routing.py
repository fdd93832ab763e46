"""The routing of a mission: its decision, kept from the first attempt on, and the vectors of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.genesis.graph import CYCLE_FROM
from batos.image import roots
from batos.image.roots import Root, named_objects
from batos.inference.embedder import Embedder, Unembedded
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief
from batos.routing.question_vectors import JournaledVectors
from batos.routing.router import EMBED_SECONDS, Route, Router, RoutingState

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
        vectors=vectors,
        state=_state(root, brief),
    )


def _state(root: Root, brief: MissionBrief) -> RoutingState:
    """Return what a route depends on besides the question: nothing is learnt anew where it changes."""
    objects = named_objects(root)
    known = {persona: objects.get(prototype_name(persona)) for persona in PILLARS}
    acting = {who: own_slots(each).get("protocols", ()) for who, each in known.items() if each is not None}
    return RoutingState(_before(root, brief), int(own_slots(root["orchestrator_obj"]).get(CYCLE_FROM, 0)), acting)


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


# -- vectors of sentences: from the journal, else from the embedder, and written to the journal at once


#: Texts of one request.
MOST_TEXTS: Final = 32

_log = structlog.get_logger("batos.vectors")


@dataclass(slots=True)
class MissionVectors:
    """The vectors of one mission's sentences. After a failure of the embedder the mission asks for no more.

    `on_paid` is called for each request to the embedder.
    """

    router: Router
    journaled: JournaledVectors
    on_paid: Callable[[], None]
    _failed: bool = False

    @property
    def digest(self) -> str:
        """Return the digest of the embedder; "" if there is none."""
        return self.router.embedder.digest if self.router.embedder is not None else ""

    async def vectors(self, texts: Sequence[str], path: str) -> Sequence[Sequence[float]] | None:
        """Return the vectors of at most MOST_TEXTS texts, or None where no embedder gives any.

        Vectors that the journal has for `path` are read from there, so that a later attempt finds the same.
        """
        embedder = self.router.embedder
        if embedder is None or not texts or len(texts) > MOST_TEXTS:
            return None
        paid = self.journaled.find_all(embedder, texts, path)
        if paid is not None or self._failed or not self.router.may_embed:
            return paid
        try:
            return await self.journaled.keep_all(embedder, texts, path, lambda: self._pay(embedder, texts))
        except (Unembedded, ValueError) as error:
            self._failed = True
            self.router.leave_alone()
            _log.warning("sentences.words_alone", model=embedder.model, reason=str(error))
            return None

    async def _pay(self, embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if self.router.known.find(embedder.digest, text) is None]
        if new:
            self.on_paid()
            for text, vector in zip(new, await embedder.vectors_within(new, EMBED_SECONDS), strict=True):
                self.router.known.keep(embedder.digest, text, vector)
        found = [self.router.known.find(embedder.digest, text) for text in texts]
        return [vector for vector in found if vector is not None]
