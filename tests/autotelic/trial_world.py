"""A world of trials without a model: a reply is right as often as the values that act let it be."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from batos.autotelic import slot_values, trials
from batos.autotelic.heartbeat import Allowance, Expense
from batos.autotelic.slot_values import Changes
from batos.autotelic.trial_nights import AskedReply, TrialParts, Trials
from batos.image.roots import Root
from batos.protocol.trial_documents import TrialDocument
from batos.records.gold_items import GoldItem, ItemSplit
from batos.records.redefinitions import ChangeOrigin, Value
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

#: No value of any lever of the shipped codex is this one.
BEST: tuple[str, Value] = ("ROBIN.temperature", 0.3)


def share(*words: object) -> float:
    """Return a number in [0, 1) that these words always have."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big") / 2**48


@dataclass
class TrialWorld:
    """A mind with known questions; `effects` has what each value of a slot adds to the share of right answers."""

    uvm: UVM
    effects: dict[tuple[str, Value], float] = field(default_factory=dict)
    seed: int = 0
    base: float = 0.5
    noise: float = 0.25
    #: The questions of each use that were made at a time.
    made: dict[str, int] = field(default_factory=lambda: {"2026-11-01T12:00:00.000Z": 300})
    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)
    asked: list[str] = field(default_factory=list)
    stops_after: int | None = None

    def questions(self, _root: Root, use: ItemSplit) -> Sequence[GoldItem]:
        """The gold items of a use."""
        return [
            GoldItem(f"{use}-{made}-{number}", "A", f"question {number}?", ("yes",), "d-1", use, "tester", made)
            for made, count in self.made.items()
            for number in range(count)
        ]

    async def ask(self, item: GoldItem, changes: Changes, go_on: Callable[[], bool]) -> AskedReply | None:
        """Answer rightly as often as the values that act let it be."""
        if not go_on() or (self.stops_after is not None and len(self.asked) >= self.stops_after):
            return None
        self.asked.append(item.id)
        values = {**self.acting(), **{each.slot: each.value for each in changes}}
        gain = sum(self.effects.get((slot, value), 0.0) for slot, value in values.items())
        is_noisy = share(self.seed, item.id, "noisy") < self.noise
        drawn = share(self.seed, item.id, *(sorted(values.items(), key=repr) if is_noisy else ()))
        said = "yes" if drawn < self.base + gain else "no"
        return AskedReply(f"{said}{'!' * is_noisy * (gain != 0)}", calls=1, tokens=200)

    def acting(self) -> Mapping[str, Value]:
        """The values that act now."""
        with self.uvm.image.snapshot() as root:
            return {each.name: each.read() for each in slot_values.list_places(root)}

    def nights(self) -> Trials:
        """What tries changes in this world."""
        return Trials(
            TrialParts(
                self.uvm.image, lambda: self.now, self.questions, self.ask,
                lambda item, reply, beside: float(reply.answer.startswith(item.gold[0])),
            )
        )  # fmt: skip

    async def night(self, calls: int = 300) -> str:
        """One night with so many calls."""
        self.now += timedelta(days=1)
        return await self.nights().work(Allowance(lambda: True, Expense(1e9, calls, 10**9)))

    def documents(self) -> list[TrialDocument]:
        """Every trial, the oldest first."""
        with self.uvm.image.snapshot() as root:
            return [trials.document(root, name) for name in root["trials"]]

    async def finish(self) -> None:
        """End the trial that waits for questions, if there is one."""
        for each in self.documents():
            if each["state"] in trials.OPEN:
                await self.nights().undo(each["id"], ChangeOrigin("ann", each["begun"]))

    async def give(self, slot: str, value: object) -> None:
        """Redefine a slot as a person does."""
        origin = ChangeOrigin("ann", "2026-11-30T12:00:00Z", "by hand")
        await self.uvm.image.shared.apply(lambda root: slot_values.redefine(root, slot, value, origin))


@asynccontextmanager
async def trial_world(home: Path, **chosen: object) -> AsyncIterator[TrialWorld]:
    """A mind that is asked by trials alone."""
    async with scripted_uvm(home, ScriptedBridge()) as uvm:
        yield TrialWorld(uvm, **chosen)  # type: ignore[arg-type]  # fields of the world by their names
