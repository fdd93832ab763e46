"""Worlds of trials without a model: a reply is right as often as the values that act let it be, in words or in many."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from batos.autotelic import item_makers, slot_values, trial_verdicts, trials
from batos.autotelic.heartbeat import Allowance, Expense
from batos.autotelic.slot_values import Changes
from batos.autotelic.trial_nights import AskedReply, TrialParts, Trials
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.trial_documents import TrialDocument
from batos.records.gold_items import GoldItem, ItemSplit
from batos.records.redefinitions import ChangeOrigin, Value
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

#: The reply with a value: an answer, the question said back, the answer among very many words, or another matter.
Manner: TypeAlias = Literal["plain", "echo", "stuffed", "off"]
_BEGUN = datetime(2026, 11, 30, 12, tzinfo=UTC)
_FILLER = "the harbour and the pier and all the boats that lie there in the evening when the gulls come in "


def share(*words: object) -> float:
    """Return a number in [0, 1) that these words always have."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big") / 2**48


@dataclass
class TrialWorld:
    """A mind with known questions; `effects` has what each value of a slot adds to the share of right answers.

    `made` has the questions of each use that were made at a time, `nightly` those of each further night. Of the share
    `noise` of them other values give another reply by chance.
    """

    uvm: UVM
    effects: dict[tuple[str, Value], float] = field(default_factory=dict)
    manners: dict[tuple[str, Value], Manner] = field(default_factory=dict)
    seed: int = 0
    base: float = 0.5
    noise: float = 0.25
    made: dict[str, int] = field(default_factory=lambda: {"2026-11-01T12:00:00.000Z": 300})
    nightly: int = 0
    now: datetime = _BEGUN
    asked: list[str] = field(default_factory=list)
    stops_after: int | None = None
    #: The models that Ollama has beside the codex's.
    models: Sequence[str] = ()

    def questions(self, _root: Root, use: ItemSplit) -> Sequence[GoldItem]:
        """Return the gold items of a use."""
        return [
            GoldItem(
                f"{use}-{made}-{number}", "A", f"Which lamp burns at berth {number}?", (f"lamp {made[8:10]}{number}",),
                "d-1", use, "tester", made,
            )
            for made, count in self.made.items() for number in range(count)
        ]  # fmt: skip

    async def ask(self, item: GoldItem, changes: Changes, go_on: Callable[[], bool]) -> AskedReply | None:
        """Answer rightly as often as the values that act let it be."""
        if not go_on() or (self.stops_after is not None and len(self.asked) >= self.stops_after):
            return None
        self.asked.append(item.id)
        values = {**self.acting(), **{each.slot: each.value for each in changes}}
        held = [pair for pair in values.items() if pair in self.effects or pair in self.manners]
        gain = sum(self.effects.get(pair, 0.0) for pair in held)
        is_noisy = share(self.seed, item.id, "noisy") < self.noise
        drawn = share(self.seed, item.id, *(sorted(values.items(), key=repr) if is_noisy else ()))
        manner: Manner = next((self.manners[pair] for pair in held if pair in self.manners), "plain")
        return _reply(item, manner, is_right=drawn < self.base + gain, in_other_words=is_noisy and bool(changes))

    def acting(self) -> Mapping[str, Value]:
        """Return the values that act now."""
        with self.uvm.image.snapshot() as root:
            return {each.name: each.read() for each in slot_values.list_places(root)}

    def nights(self) -> Trials:
        """Return what tries changes in this world, judged as the product judges."""

        def worth(item: GoldItem, reply: AskedReply, beside: str) -> float:
            return item_makers.score(item, reply.answer, beside)

        async def can_ask() -> bool:
            return True

        async def models() -> Sequence[str]:
            return self.models

        return Trials(TrialParts(self.uvm.image, lambda: self.now, self.questions, self.ask, worth, can_ask, models))

    async def night(self, calls: int = 300) -> str:
        """Let one night pass with so many calls; return what was done."""
        self.now += timedelta(days=1)
        if self.nightly:
            self.made[iso(self.now)] = self.nightly
        return await self.nights().work(Allowance(lambda: True, Expense(1e9, calls, 10**9)))

    def documents(self) -> list[TrialDocument]:
        """Return every trial, the oldest first."""
        with self.uvm.image.snapshot() as root:
            return [trials.document(root, name) for name in root["trials"]]

    async def finish(self) -> None:
        """End the trial that waits for questions, if there is one."""
        for each in self.documents():
            if each["state"] in trials.OPEN:
                await self.undo(each["id"])

    async def undo(self, name: str) -> None:
        """Undo a trial, or end it, as a person does."""
        origin = ChangeOrigin("ann", iso(self.now), "by hand")
        await self.uvm.image.shared.apply(lambda root: trial_verdicts.undo(root, name, origin))

    async def give(self, slot: str, value: object) -> None:
        """Redefine a slot as a person does."""
        origin = ChangeOrigin("ann", iso(self.now), "by hand")
        await self.uvm.image.shared.apply(lambda root: slot_values.redefine(root, slot, value, origin))


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time, a second later each time."""
        self.now += timedelta(seconds=1)
        return self.now


def _reply(item: GoldItem, manner: Manner, *, is_right: bool, in_other_words: bool) -> AskedReply:
    gold = item.gold[0]
    said = f"{gold} burns there" if is_right else "The pier is dark there"
    texts: Mapping[Manner, str] = {
        "plain": f"{said}{', I think' * in_other_words}.",
        "echo": item.question,
        "stuffed": f"{_FILLER * 12}{gold} {_FILLER * 12}.",
        "off": f"{_FILLER}.",
    }
    tokens = 200 + len(texts[manner].split())
    return AskedReply(texts[manner], calls=1, tokens=tokens)


@asynccontextmanager
async def trial_world(home: Path, **chosen: Any) -> AsyncIterator[TrialWorld]:
    """Open a mind that is asked by trials alone."""
    async with scripted_uvm(home, ScriptedBridge()) as uvm:
        yield TrialWorld(uvm, **chosen)
