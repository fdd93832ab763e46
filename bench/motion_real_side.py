"""Lets a mind with a real small model begin with bad values, learn at night, and be measured on sealed questions.

Questions are the tasks of a folder, asked over all its documents, the headings of these, and gaps in their sentences.
Each belongs to the part (propose, judge, sealed) of its document, as in the product.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from itertools import islice
from statistics import fmean
from typing import Final, TypeAlias

from batos.autotelic import entropy, item_makers, slot_values
from batos.autotelic.heartbeat import Allowance, Expense
from batos.autotelic.item_makers import ItemSource
from batos.autotelic.slot_values import Changes, Lever, SlotWrite
from batos.autotelic.trial_asking import CopyAsker
from batos.autotelic.trial_nights import AskedReply, TrialParts, Trials
from batos.history.copies import CopyParts, PastQuestions
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.records import gold_items
from batos.records.gold_items import GoldItem, ItemSplit
from batos.records.redefinitions import ChangeOrigin, Value
from batos.server.dispatch.guests import CopyPlaces
from batos.server.dispatch.reads import Reader
from batos.uvm import UVM, open_copy
from motion_worlds_side import Clock
from tasks_data_side import KeptLines, TaskData, digest_of
from tasks_side import Task, runs_code, score

#: The values of every slot by its name.
Setting: TypeAlias = Mapping[str, Value]

#: Gaps that are made of a document, and the question for one.
GAPS: Final = 4
GAP: Final = "Which number or name stands in the gap? {}"
#: The times that a question is asked where nobody answers.
TRIES: Final = 3
#: The first questions after which a value that has changed no answer is asked no more.
SAME: Final = 6
BENCH: Final = ChangeOrigin("bench", "2026-01-01T00:00:00.000Z", "the worst values of the sweep")


class RunStopped(Exception):
    """Ends a run before its end: as many calls were made as it was allowed, or nobody answers."""


@dataclass(slots=True)
class KeptAsker:
    """Asks what no earlier run has answered, within so many calls, and keeps each answer under all it depends on.

    The same question with the same values is another one each time that it is asked again. `calls` are those of all
    answers, `made` those of this run.
    """

    uvm: UVM
    asker: CopyAsker
    results: KeptLines
    about: Sequence[object]
    most: int
    calls: int = 0
    made: int = 0
    asked: Counter[str] = field(default_factory=Counter)

    def is_spent(self) -> bool:
        """Test if this run may make no more calls."""
        return bool(self.most) and self.made >= self.most

    async def ask(self, item: GoldItem, changes: Changes, go_on: Callable[[], bool]) -> AskedReply | None:
        """Return the answer with these values; None: nobody could answer now, or it is to leave."""
        values = {**acting(self.uvm), **{each.slot: each.value for each in changes}}
        values.pop(entropy.NAME, None)  # no answer depends on it
        same = digest_of([*self.about, item.kind, item.question, list(item.gold), sorted(map(repr, values.items()))])
        key = f"{same} {self.asked[same]}"
        if key not in self.results.rows:
            began = time.monotonic()
            found, tries = None, TRIES  # a busy machine, or a runner that is loaded anew, is no answer
            while found is None and tries and go_on() and not self.is_spent():
                found, tries = await self.asker.ask(item, changes, go_on), tries - 1
            if found is None:
                return None
            self.results.add(key, {"question": item.question, "reply": found._asdict()})
            self.made += max(1, found.calls)
            shown = " ".join(found.answer.split())[:80]
            tell(f"call {self.made}, {time.monotonic() - began:.1f} s: {item.question[:60]} -> {shown}")
        self.asked[same] += 1
        reply = AskedReply(**self.results.rows[key]["reply"])
        self.calls += reply.calls
        return reply


def tell(text: str) -> None:
    """Print how far the run is."""
    print(text, file=sys.stderr, flush=True)


def acting(uvm: UVM) -> dict[str, Value]:
    """Return the values that act now."""
    with uvm.image.snapshot() as root:
        return {each.name: each.read() for each in slot_values.list_places(root)}


def asker_of(uvm: UVM, results: KeptLines, about: Sequence[object], most: int) -> KeptAsker:
    """Return what asks in copies of the mind, as the product's own trials do."""
    reader = Reader(uvm.readings, uvm.mission_memory.write)
    parts = CopyParts(
        uvm.image, uvm.journal, reader.past, partial(open_copy, uvm), CopyPlaces().place, uvm.packer.keeping,
        reader.find_moment, reader.find_past_question, lambda: None,
    )  # fmt: skip
    return KeptAsker(uvm, CopyAsker(PastQuestions(parts)), results, about, most)


# -- questions


def list_questions(data: TaskData, user: str) -> list[GoldItem]:
    """Return the questions of a folder, each with the name of its document as its source."""
    found: list[GoldItem] = []
    for name, text in data.documents.items():
        source = ItemSource(name, user, name, text, gold_items.split_of(name), BENCH.at)
        found += item_makers.make_headings(source)
        for fact in islice(item_makers.facts_of(source), GAPS):
            found.append(source.item("A", GAP.format(fact.sentence.replace(fact.span, "___", 1)), (fact.span,)))
        for task in data.tasks:
            if task["files"][0] == name and not task["before"] and not runs_code(task):
                found.append(source.item("U", task["question"], (str(task["expected"]),)))
    return sorted(found, key=lambda each: sha256(each.id.encode()).digest())


def put_questions(root: Root, items: Sequence[GoldItem]) -> None:
    """Put questions under the memories of their documents."""
    memories = {str(own_slots(each)["source"]): name for name, each in root["documents"].items()}
    for document, memory in memories.items():
        own = [each._replace(source=memory) for each in items if each.source == document]
        if own:
            gold_items.put_items(root, memory, own)


@dataclass(frozen=True, slots=True)
class Class:
    """A mind that learns: its questions, who asks them, and the tasks that some of them are."""

    uvm: UVM
    asker: KeptAsker
    items: Sequence[GoldItem]
    tasks: Mapping[str, Task]
    clock: Clock = field(default_factory=Clock)
    #: The worth of each sealed question, by setting and the number of times that it was asked for.
    known: dict[str, list[float]] = field(default_factory=dict)

    def worth(self, item: GoldItem, reply: AskedReply, beside: str) -> float:
        """Return how right an answer is, in [0, 1]: of a task the share of its checks that no empty phrase passes."""
        task = self.tasks.get(item.question)
        if task is None or item.kind != "U":
            return item_makers.score(item, reply.answer, beside, reply.ruled)
        return score(task, reply.answer).content

    def pick(self, split: ItemSplit, most: int) -> list[GoldItem]:
        """Return the first questions of a part, all with 0."""
        found = [each for each in self.items if each.split == split]
        return found[:most] if most else found

    async def ask(self, item: GoldItem, changes: Changes) -> AskedReply:
        """Return an answer. Raises: RunStopped: no more may be asked, or nobody answers."""
        reply = await self.asker.ask(item, changes, lambda: True)
        if reply is None:
            raise RunStopped("the calls are spent" if self.asker.is_spent() else "nobody answers")
        return reply

    async def measure(self, setting: Setting, most: int, times: str = "") -> list[float]:
        """Return the worth of each sealed question with a setting; asked once for each word of `times`."""
        key = f"{sorted(map(repr, setting.items()))} {times}"
        if key not in self.known:
            changes = tuple(SlotWrite(*each) for each in setting.items())
            worth = [self.worth(item, await self.ask(item, changes), "") for item in self.pick("sealed", most)]
            self.known[key] = worth
        return self.known[key]

    async def give(self, setting: Setting) -> None:
        """Let a setting act."""

        def change(root: Root) -> None:
            for name, value in setting.items():
                slot_values.redefine(root, name, value, BENCH)

        await self.uvm.image.shared.apply(change)

    def levers(self) -> list[Lever]:
        """Return the levers that are kept without a person, of the whole mind."""
        with self.uvm.image.snapshot() as root:
            return [each for each in slot_values.list_levers(root) if each.kind.risk == 1 and not each.kind.apart]


# -- the sweep


def options_of(uvm: UVM, lever: Lever) -> list[Changes]:
    """Return every value of a lever in the order of its table, the acting one among them if it is there."""
    names = [each.slot for each in lever.acting]
    with uvm.image.snapshot() as root:
        places = {each.name: each for each in slot_values.list_places(root)}
        varied = list(lever.kind.vary([places[name] for name in names], ()))
    return [tuple(SlotWrite(*each) for each in zip(names, values, strict=True)) for values in varied]


async def sweep(of: Class, most: int) -> tuple[Setting, Setting]:
    """Return the worst and the best setting: each lever's worst and best value on questions of the first part."""
    questions, plain = of.pick("propose", most), acting(of.uvm)
    first = [await of.ask(each, ()) for each in questions]
    base = fmean(of.worth(*pair, "") for pair in zip(questions, first, strict=True))
    tell(f"as it is: {base:.3f}")
    worst, best = dict[str, int](), dict[str, int]()
    for lever in of.levers():
        means = {-1: base}
        for place, changes in enumerate(options_of(of.uvm, lever)):
            if changes != lever.acting:
                means[place] = await _mean(of, questions, first, changes)
                tell(f"{lever.name}, value {place}: {means[place]:.3f}")
        worst[lever.name] = min(means, key=lambda place: (means[place], place))
        best[lever.name] = max(means, key=lambda place: (means[place], -place))
    return await _combine(of, plain, worst), await _combine(of, plain, best)


async def _mean(of: Class, questions: Sequence[GoldItem], first: Sequence[AskedReply], changes: Changes) -> float:
    """Return the mean worth with a value; one that changes none of the first answers is as good as what acts."""
    worth, same = list[float](), True
    for number, (item, before) in enumerate(zip(questions, first, strict=True), start=1):
        reply = await of.ask(item, changes)
        worth.append(of.worth(item, reply, before.answer))
        same = same and reply.answer == before.answer
        if same and number >= SAME:
            return fmean(of.worth(*pair, "") for pair in zip(questions, first, strict=True))
    return fmean(worth)


async def _combine(of: Class, plain: Setting, places: Mapping[str, int]) -> Setting:
    """Return the setting in which each lever has the value at its place; -1 is what the codex says."""
    for name, place in places.items():
        lever = next((each for each in of.levers() if each.name == name), None)
        if place >= 0 and lever is not None:
            await of.give({each.slot: each.value for each in options_of(of.uvm, lever)[place]})
    found = acting(of.uvm)
    await of.give(plain)
    return found


# -- nights


async def learn(of: Class, nights: int, budget: Expense) -> None:
    """Let nights of trials pass. Raises: RunStopped: no more may be asked."""

    def questions(root: Root, use: ItemSplit) -> Sequence[GoldItem]:
        return gold_items.list_items(root, of.uvm.settings.asker, {use})

    async def can_ask() -> bool:
        return True

    parts = TrialParts(of.uvm.image, of.clock, questions, of.asker.ask, of.worth, can_ask)
    for night in range(1, nights + 1):
        of.clock.now = of.clock.now.replace(hour=9, minute=0, second=0) + timedelta(days=1)
        did = await Trials(parts).work(Allowance(lambda: not of.asker.is_spent(), budget))
        tell(f"night {night} of {nights}: {did or 'nothing to do'}")
        if of.asker.is_spent():
            raise RunStopped("the calls are spent")
