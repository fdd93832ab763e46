"""The verbs of dreams and replays that think or change the mind; list and diff are those of whoever reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from batos.client.wire.pending import OnAcknowledged, OnEvent
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.past_reconciler import PastMind
from batos.history import dreams, promotion, replays
from batos.history.copies import MindCopy, PastQuestion, PastQuestions
from batos.history.moments import Moment
from batos.history.promotion import PromotionParts
from batos.missions.event_relay import EventRelay
from batos.protocol.brief import File
from batos.protocol.dream_documents import DreamLine
from batos.protocol.mission_documents import MissionDocument
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.server.dispatch.reads import Reader
from batos.uvm import UVM
from batos.verbs.dream_verbs import (
    DREAM_DROP,
    DREAM_NEW,
    DREAM_PROMOTE,
    REPLAY,
    DreamDropArgs,
    DreamNewArgs,
    DreamPromoteArgs,
    ReplayArgs,
)

#: Finds the files that a brief names.
FindFiles: TypeAlias = Callable[[Any, str | None], Awaitable[Sequence[File]]]


class Dreaming:
    """Asks in copies of the mind, and makes what came of it part of the mind or throws it away."""

    def __init__(self, uvm: UVM, copies: PastQuestions, reader: Reader, files: FindFiles, shield: Shield) -> None:
        self._uvm, self._copies, self._reader = uvm, copies, reader
        self._files, self._shield = files, shield

    def verbs(self) -> Mapping[str, Handler]:
        """Return the function of each verb, by name."""
        return dict(
            (
                bind(DREAM_NEW, self._dream),
                bind(DREAM_PROMOTE, self._promote),
                bind(DREAM_DROP, self._drop),
                bind(REPLAY, self._replay),
            )
        )

    async def _dream(self, given: DreamNewArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged) -> MissionDocument:
        brief = await self._reader.with_missions(given.brief)
        files = await self._files(brief.pop("attachments", None) or (), given.user)
        question = PastQuestion(None, brief, files, given.user)
        told = EventRelay(on_event, on_acknowledged, follow=given.follow)
        return await self._copies.ask(question, told, self._keep)

    async def _keep(self, copy: MindCopy, mission: str, moment: Moment) -> None:
        dream = await asyncio.to_thread(dreams.draw, copy.image, mission, moment.tid, copy.generations.installed)
        await self._uvm.image.journal_writer.apply(lambda root: dreams.store(root, dream))

    async def _replay(self, given: ReplayArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged) -> MissionDocument:
        readings, user = self._uvm.readings, given.user
        mission = await asyncio.to_thread(readings.resolve_mission, given.mission, user)
        before = await asyncio.to_thread(readings.mission, mission)
        moment = await asyncio.to_thread(replays.find_snapshot, self._uvm.image, mission)
        files = await self._files(before["brief"]["attachments"], before["brief"]["user"])
        codex = None if given.codex is None else await asyncio.to_thread(_sound_codex, given.codex)
        question = PastQuestion(
            moment, replays.replay_brief(before["brief"], mission), files, user,
            PastMind(self._uvm.reconciler, given.model or "", codex),
            lambda copy: replays.end_original(copy.image, before, files),
        )  # fmt: skip
        after = await self._copies.ask(question, EventRelay(on_event, on_acknowledged, follow=given.follow))
        return {**after, "replay": await asyncio.to_thread(replays.compare, before, after, self._uvm.journal)}

    async def _promote(self, given: DreamPromoteArgs, *_told: object) -> MissionDocument:
        uvm = self._uvm
        dream = await asyncio.to_thread(dreams.read, uvm.image, given.dream, given.user)
        await self._shield(promotion.promote(promotion_parts(uvm), dream))
        return await asyncio.to_thread(uvm.readings.mission, dream["mission"])

    async def _drop(self, given: DreamDropArgs, *_told: object) -> DreamLine:
        dream = await asyncio.to_thread(dreams.read, self._uvm.image, given.dream, given.user)
        await self._shield(promotion.drop(self._uvm.image, dream))
        return {**dreams.line_of(dream), "state": "dropped"}


def _sound_codex(texts: Mapping[str, str]) -> Codex:
    return codices.parse(texts).sound()


def promotion_parts(uvm: UVM) -> PromotionParts:
    """Return the parts of a UVM that make a dream part of its mind."""
    return PromotionParts(
        uvm.image, uvm.publisher, uvm.events, uvm.clock, uvm.approvals, uvm.lifecycle, uvm.method_runtime.generator
    )
