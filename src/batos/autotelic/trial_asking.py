"""Asks questions of trials in copies of the mind, until a person asks; and once a month those that no trial sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from statistics import fmean
from typing import Final

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic import item_makers, slot_values, trials
from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.slot_values import Changes
from batos.autotelic.trial_nights import AskedReply, TrialParts
from batos.history import as_of
from batos.history.copies import MindCopy, PastQuestion, PastQuestions
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.memory.records import memory_standings
from batos.missions.mission_events import EventRelay
from batos.protocol.errors import (
    BatosError,
    Busy,
    DiskFull,
    ImageError,
    ModelMissing,
    OllamaBusy,
    OllamaUnreachable,
    WordsErased,
)
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.trial_documents import SealedFigure, TrialExample
from batos.records import gold_items
from batos.records.gold_items import GoldItem, ItemKind, ItemSplit

#: Seconds between two looks whether somebody asks something.
LOOK: Final = 0.2
#: A question of a trial makes no method, and waits for nobody.
_POLICY: Final = {"install": "never", "interpret": "allow"}
#: Errors that say nothing of the form whose question met them.
_OUTSIDE: Final = (Busy, DiskFull, ImageError, ModelMissing, OllamaBusy, OllamaUnreachable, WordsErased)


@dataclass(frozen=True, slots=True)
class CopyAsker:
    """Asks each question in a copy of the mind of its own, as questions of the past are asked."""

    copies: PastQuestions
    look: float = LOOK

    async def ask(self, item: GoldItem, changes: Changes, go_on: Callable[[], bool]) -> AskedReply | None:
        """Ask a question with these values; None: somebody asks something, or nobody could answer now."""

        async def prepare(copy: MindCopy) -> None:
            await copy.image.writer.apply(lambda root: _set_up(root, item, changes))

        origin = {"client": gold_items.client_of(item.source)}  # by which it is erased with its source
        brief = {"text": item.question, "user": item.user, "origin": origin, "policy": dict(_POLICY)}
        told = EventRelay(_ignore, _ignore, follow=True)
        question = PastQuestion(None, brief, (), item.user, prepare=prepare, is_own=True)
        asking = asyncio.ensure_future(self.copies.ask(question, told))
        try:
            while not asking.done():
                await asyncio.wait({asking}, timeout=self.look)
                if not asking.done() and not go_on():
                    return None
            return read_reply(asking.result())
        except _OUTSIDE:
            return None
        except BatosError:  # counted against the form whose question it was
            return AskedReply("", passed=False, ended=False, calls=0)
        finally:
            asking.cancel()
            await asyncio.wait({asking})


def _set_up(root: Root, item: GoldItem, changes: Changes) -> None:
    """Write the values of slots; what nothing may answer is asked without the memory that does."""
    slot_values.try_out(root, changes)
    if item.kind == "N" and item.source in root[roots.DOCUMENTS]:
        memory_standings.set_standing(root, item.source, "retracted")


def read_reply(told: MissionDocument) -> AskedReply | None:
    """Return what a trial reads of a mission that has ended; None: it failed by what is no form's fault."""
    cost, is_done = told.get("cost"), told["status"] == "done"
    calls = cost["calls"] if cost else 0
    tokens = cost["prompt_tokens"] + cost["answer_tokens"] if cost else 0
    if not is_done and "reason" in told and told["reason"]["code"] in {each.code for each in _OUTSIDE}:
        return None
    if not is_done:
        return AskedReply("", told["id"], passed=False, ended=False, calls=calls, tokens=tokens)
    provenance = told.get("provenance", {})
    gate, ruled = provenance.get("gate"), provenance.get("combined", {}).get("ruled", "")
    return AskedReply(str(told.get("answer", "")), told["id"], ruled, gate is None or gate["ok"], True, calls, tokens)


def read_examples(root: Root, journal: Entries, name: str) -> list[TrialExample]:
    """Return answers of a trial that became better, and worse; those whose words were erased are left out."""
    found = []
    for each in trials.list_examples(root, name):
        before, after = (as_of.find_question(journal, mission) for mission in (each.before, each.after))
        if before is not None and after is not None:
            said = [str(report.get("answer", "")) for report in (before, after)]
            found.append(
                TrialExample(
                    question=str(before["brief"]["text"]), before=said[0], after=said[1],
                    worth=[each.pair.old, each.pair.new],
                )
            )  # fmt: skip
    return found


def _ignore(*_told: object) -> None:
    """Do nothing: a trial is nobody's question, so that nobody is told."""


#: The kinds of items that are answered; the others measure recall.
ANSWERED: Final = frozenset[ItemKind]({"A", "H", "N", "S", "U"})


def parts_of(
    image: LivingImage,
    clock: Callable[[], datetime],
    copies: PastQuestions,
    user: str,
    can_ask: Callable[[], Awaitable[bool]],
    models: Callable[[], Awaitable[Sequence[str]]],
) -> TrialParts:
    """Return the parts by which a user's gold items are asked, as long as a model would; `models` lists other ones."""

    def questions(root: Root, use: ItemSplit) -> Sequence[GoldItem]:
        return [each for each in gold_items.list_items(root, user, {use}) if each.kind in ANSWERED]

    def worth(item: GoldItem, reply: AskedReply, beside: str) -> float:
        return item_makers.score(item, reply.answer, beside, reply.ruled)

    return TrialParts(image, clock, questions, CopyAsker(copies).ask, worth, can_ask, models)


#: The time from the beginning of one round to that of the next.
_MONTH: Final = timedelta(days=30)
#: The use of the questions.
_USE: Final[ItemSplit] = "sealed"


def list_figures(root: Root) -> list[SealedFigure]:
    """Return the figure of each round that has ended, the newest first."""
    rounds = root.get(roots.SEALED)  # an older moment of the image has none
    ended = [] if rounds is None else [each for each in rounds.values() if each["ended"]]
    return [
        {"share": round(fmean(each["worths"].values()), 3), "questions": len(each["worths"]), "day": each["ended"][:10]}
        for each in reversed(ended)
    ]


def open_round(root: Root, now: datetime) -> str | None:
    """Return the round that goes on, or begin one a month after the last; None: none is due."""
    rounds = root[roots.SEALED]
    newest = rounds.maxKey() if rounds else ""
    if newest and not rounds[newest]["ended"]:
        return str(newest)
    if newest > iso(now - _MONTH):
        return None
    rounds[iso(now)] = PersistentMapping(ended="", worths=OOBTree())
    return iso(now)


def note_worth(root: Root, name: str, item: str, worth: float) -> None:
    """Note how right the answer to a question is; one that is noted already is not counted again."""
    root[roots.SEALED][name]["worths"].setdefault(item, worth)


class SealedQuestions:
    """Asks the sealed questions, as far as a beat may ask; the next beat goes on, also after a kill."""

    def __init__(self, parts: TrialParts) -> None:
        self._parts = parts

    def duty(self) -> Duty:
        """Return the duty of the heartbeat, which is looked at each day."""
        return Duty("sealed", self._mark, self.work)

    def _mark(self, root: Root) -> str:
        rounds = root[roots.SEALED]
        asked = len(rounds[rounds.maxKey()]["worths"]) if rounds else 0
        return f"{iso(self._parts.clock())[:10]} {len(rounds)} {asked} {len(self._parts.questions(root, _USE))}"

    async def work(self, allowance: Allowance) -> str:
        """Ask what the round of this month has not asked yet; return what was done."""
        now = self._parts.clock()
        if not allowance.may_ask() or not await self._parts.can_ask() or not await self._parts.read(self._list_all):
            return ""
        name = await self._parts.write(lambda root: open_round(root, now))
        if name is None:
            return ""
        asked = 0
        for item in await self._parts.read(lambda root: self._list_left(root, name)):
            reply = await self._parts.ask(item, (), allowance.go_on) if allowance.may_ask() else None
            if reply is None:
                return f"{asked} sealed questions"
            allowance.spend(reply.calls, reply.tokens)
            noting = partial(note_worth, name=name, item=item.id, worth=self._parts.worth(item, reply, ""))
            await self._parts.write(noting)
            asked += 1
        await self._parts.write(lambda root: root[roots.SEALED][name].update(ended=iso(self._parts.clock())))
        return f"{asked} sealed questions, and the figure of this month"

    def _list_all(self, root: Root) -> list[GoldItem]:
        return list(self._parts.questions(root, _USE))

    def _list_left(self, root: Root, name: str) -> list[GoldItem]:
        worths = root[roots.SEALED][name]["worths"]
        return [each for each in self._list_all(root) if each.id not in worths]
