"""The verbs of dreams that think or change the mind; list and diff are those of whoever reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeAlias

from batos.brief import File
from batos.client.wire.dream_shapes import DreamDropArgs, DreamNewArgs, DreamPromoteArgs
from batos.client.wire.pending import OnAcknowledged, OnEvent
from batos.history import dreams, promotion
from batos.history.moments import Moment
from batos.server.dispatch.event_relay import EventRelay
from batos.server.dispatch.past_asking import PastQuestion, PastQuestions
from batos.uvm import UVM

#: No method is made in a dream: it would be gone with the copy.
_POLICY: Final = {"install": "never"}

#: Finds the files that a brief names.
FindFiles: TypeAlias = Callable[[Any, str | None], Awaitable[Sequence[File]]]
#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


class Dreaming:
    """Asks in copies of the mind, and makes what came of it part of the mind or throws it away."""

    def __init__(self, uvm: UVM, copies: PastQuestions, files: FindFiles, shield: Shield) -> None:
        self._uvm, self._copies, self._files, self._shield = uvm, copies, files, shield

    def verbs(self) -> Mapping[str, Callable[[Any, OnEvent, OnAcknowledged], Awaitable[dict[str, Any]]]]:
        """Return the function of each verb, by name."""
        return {"dream_new": self._dream, "dream_promote": self._promote, "dream_drop": self._drop}

    async def _dream(self, given: DreamNewArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged) -> dict[str, Any]:
        brief: dict[str, Any] = dict(given.brief)
        files = await self._files(brief.pop("attachments", None) or (), given.user)
        policy = brief.get("policy")
        brief["policy"] = {**(policy if isinstance(policy, Mapping) else {}), **_POLICY}
        question = PastQuestion(None, brief, files, given.user)
        told = EventRelay(on_event, on_acknowledged, follow=given.follow)
        return {**await self._copies.ask(question, told, self._keep), "dream": True}

    async def _keep(self, copy: UVM, mission: str, moment: Moment) -> None:
        dream = await asyncio.to_thread(dreams.draw, copy.image, mission, moment.tid)
        await self._uvm.image.journal_writer.apply(lambda root: dreams.store(root, dream))

    async def _promote(self, given: DreamPromoteArgs, *_told: object) -> dict[str, Any]:
        uvm = self._uvm
        dream = await asyncio.to_thread(dreams.read, uvm.image, given.dream, given.user)
        await self._shield(promotion.promote(uvm.image, uvm.publisher, uvm.events, dream))
        return await asyncio.to_thread(uvm.readings.mission, dream["mission"])

    async def _drop(self, given: DreamDropArgs, *_told: object) -> dict[str, Any]:
        dream = await asyncio.to_thread(dreams.read, self._uvm.image, given.dream, given.user)
        await self._shield(promotion.drop(self._uvm.image, dream))
        return {**dreams.line_of(dream), "state": "dropped"}
