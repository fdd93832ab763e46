"""The verbs that change the mind's history: dreams, replays, undoing missions and bringing them back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from batos.autotelic import slot_values
from batos.client.pending import OnAcknowledged, OnEvent
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.past_reconciler import PastMind
from batos.history import copies, dreams, promotion, undoing
from batos.history.as_of import Moment
from batos.history.copies import MindCopy, PastQuestion, PastQuestions
from batos.history.mission_traces import Keeping
from batos.history.promotion import PromotionParts
from batos.history.undoing import Undoing
from batos.image.ids import iso
from batos.image.ownership import is_guest
from batos.image.roots import Root
from batos.missions.mission_events import EventRelay
from batos.protocol.brief import File
from batos.protocol.errors import Refused
from batos.protocol.memory_documents import DreamLine, RedonePage, UndonePage
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.trial_documents import SlotLineage
from batos.records.redefinitions import ChangeOrigin
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.server.dispatch.reads import Reader
from batos.uvm import UVM
from batos.verbs.history_verbs import (
    DREAM_DROP,
    DREAM_NEW,
    DREAM_PROMOTE,
    REDO,
    REPLAY,
    UNDO,
    DreamArgs,
    DreamNewArgs,
    RedoArgs,
    ReplayArgs,
    UndoArgs,
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
        moment = await asyncio.to_thread(copies.find_snapshot, self._uvm.image, mission)
        files = await self._files(before["brief"]["attachments"], before["brief"]["user"])
        codex = None if given.codex is None else await asyncio.to_thread(_sound_codex, given.codex)
        question = PastQuestion(
            moment, copies.replay_brief(before["brief"], mission), files, user,
            PastMind(self._uvm.reconciler, given.model or "", codex),
            lambda copy: copies.end_original(copy.image, before, files),
        )  # fmt: skip
        after = await self._copies.ask(question, EventRelay(on_event, on_acknowledged, follow=given.follow))
        return {**after, "replay": await asyncio.to_thread(copies.compare, before, after, self._uvm.journal)}

    async def _promote(self, given: DreamArgs, *_told: object) -> MissionDocument:
        uvm = self._uvm
        dream = await asyncio.to_thread(dreams.read, uvm.image, given.dream, given.user)
        await self._shield(promotion.promote(promotion_parts(uvm), dream))
        return await asyncio.to_thread(uvm.readings.mission, dream["mission"])

    async def _drop(self, given: DreamArgs, *_told: object) -> DreamLine:
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


def undo_verbs(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name."""

    @cache
    def work() -> Undoing:
        return Undoing(uvm.image, uvm.document_store, uvm.events, uvm.clock)

    async def undo(given: UndoArgs, *_told: object) -> UndonePage:
        if "." in given.mission:  # no id of a mission has one
            return await shield(_undo_slot(uvm, given))
        mission = await asyncio.to_thread(uvm.readings.resolve_mission, given.mission, given.user)
        keeping = Keeping(**dict.fromkeys(given.keep, True))
        by = given.user or uvm.settings.asker
        if given.dry_run:
            return await asyncio.to_thread(work().plan, mission, by, keeping)
        return await shield(work().undo(mission, by, keeping, cascade=given.cascade))

    async def redo(given: RedoArgs, *_told: object) -> RedonePage:
        mission = await asyncio.to_thread(_find_undone, uvm, given.mission, given.user)
        told = await shield(work().redo(mission, given.user or uvm.settings.asker, cascade=given.cascade))
        uvm.backfill.job.wake()
        uvm.mission_memory.job.wake()
        uvm.releaser.job.wake()
        return told

    return dict((bind(UNDO, undo), bind(REDO, redo)))


async def _undo_slot(uvm: UVM, given: UndoArgs) -> UndonePage:
    """Set a slot that was redefined, or the parents of an object, to the value from before."""
    if is_guest(given.user):
        raise Refused("slots are redefined by the home alone", field="mission", remedy="Name a mission of yours.")
    origin = ChangeOrigin(given.user or uvm.settings.asker, iso(uvm.clock()), "undone")

    def change(root: Root) -> SlotLineage:
        if not given.dry_run:
            slot_values.roll_back(root, given.mission, None, origin)
        return slot_values.describe(root, given.mission)

    found = await uvm.image.shared.apply(change)
    return UndonePage(mission=found["slot"], dry_run=given.dry_run, undone=[], kept=[], prompt="", slot=found)


def _find_undone(uvm: UVM, named: str | None, user: str | None) -> str:
    if named is not None:
        return uvm.readings.resolve_mission(named, user)
    with uvm.image.snapshot() as root:
        return undoing.find_newest_undone(root, user)
