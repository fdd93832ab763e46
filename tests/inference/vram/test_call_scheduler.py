"""Turns at a card: few loads, nobody waits beyond the bound, nothing is lost, and never two runners at a base."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from batos.inference.vram.call_scheduler import ALL, BOUND, KEPT, LEAST_WORK, Call, CallScheduler, common
from batos.inference.vram.placement import KEPT_ALIVE, LOAD_SECONDS, Residents, Runner
from virtual_time_side import run_virtually

ROBIN, BRICK, BABS = (Runner("base", (name,)) for name in ("robin", "brick", "babs"))
TWIN = Runner("twin", ("alfred",))
RUNNERS = (ROBIN, BRICK, BABS, TWIN)


@dataclass(slots=True)
class Card:
    """A card that loads for LOAD_SECONDS, and keeps one runner of a base; both bases fit together."""

    scheduler: CallScheduler
    there: dict[str, Runner] = field(default_factory=dict)
    busy: Counter[Runner] = field(default_factory=Counter)
    #: The names of the calls in the order in which they began, and when each ended its wait.
    began: list[str] = field(default_factory=list)
    waited: dict[str, float] = field(default_factory=dict)
    loads: int = 0

    async def call(self, name: str, call: Call, seconds: float = 2.0, at: float = 0.0) -> None:
        """Make a call at a moment."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(at - loop.time())
        came = loop.time()
        async with self.scheduler.turn(call) as turn:
            self.began.append(name)
            self.busy[call.runner] += 1
            try:
                self.check()
                load = self.there.get(call.runner.base) != call.runner
                if load:
                    self.loads += 1
                    self.there[call.runner.base] = call.runner
                    await asyncio.sleep(LOAD_SECONDS)
                turn.listening(None)("The")
                self.waited[name] = loop.time() - came
                await asyncio.sleep(seconds)
                turn.note_load(LOAD_SECONDS * load)
            finally:
                self.busy[call.runner] -= 1

    def check(self) -> None:
        """Whoever has a turn shares its base with calls of the same runner alone, and with no more than answers."""
        at_work = [runner for runner, count in self.busy.items() if count]
        assert len({runner.base for runner in at_work}) == len(at_work)
        assert all(self.busy[runner] <= self.scheduler.many + 1 for runner in at_work)


def said(*contents: str) -> list[dict[str, str]]:
    """Return messages of a user with these contents."""
    return [{"role": "user", "content": content} for content in contents]


async def work(card: Card, calls: Sequence[tuple[str, Call, float, float]]) -> Card:
    """Make calls: name, call, seconds and moment of each."""
    async with asyncio.TaskGroup() as group:
        for name, call, seconds, at in calls:
            group.create_task(card.call(name, call, seconds, at))
    return card


def done(calls: Sequence[tuple[str, Call, float, float]], many: int = 1) -> Card:
    """Return the card after all calls."""
    return run_virtually(work(Card(CallScheduler(many)), calls))


# -- laws

asked = some.tuples(
    some.sampled_from(RUNNERS), some.sampled_from(["m-1", "m-2", "m-3"]), some.sampled_from([-9, 0, 3]),
    some.floats(0, 90), some.floats(0.1, 9), some.none() | some.floats(0, 60),
)  # fmt: skip


@given(rows=some.lists(asked, max_size=12), many=some.integers(1, 3))
def test_whoever_leaves_nothing_is_lost(
    rows: list[tuple[Runner, str, int, float, float, float | None]], many: int
) -> None:
    """Each call has its turn or has left before it; at a base one runner is at work; at the end nobody holds a turn."""

    async def crowd() -> Card:
        card = Card(CallScheduler(many))

        async def one(number: int) -> None:
            runner, mission, priority, at, seconds, leaves = rows[number]
            with card.scheduler.attend(mission):
                whole = card.call(str(number), Call(runner, mission=mission, priority=priority), seconds, at)
                if leaves is None:
                    await whole
                    return
                task = asyncio.ensure_future(whole)
                await asyncio.wait({task}, timeout=at + leaves)
                task.cancel()
                await asyncio.wait({task})

        await asyncio.gather(*(one(number) for number in range(len(rows))))
        return card

    card = run_virtually(crowd())
    stayed = {str(number) for number, row in enumerate(rows) if row[-1] is None}
    assert stayed <= set(card.waited)
    assert len(card.began) == len(set(card.began))
    assert not card.scheduler.queue()
    assert not +card.busy

    async def after() -> None:
        await Card(card.scheduler).call("last", Call(BABS))

    run_virtually(after())  # nothing that was left behind is in its way


@given(rows=some.lists(some.tuples(some.sampled_from(RUNNERS), some.floats(0, 40)), min_size=1, max_size=20))
def test_what_comes_together_is_loaded_once_a_runner(rows: list[tuple[Runner, float]]) -> None:
    """All come at once and take two seconds: each runner is loaded as often as the bound asks, never at each call."""
    card = done([(str(number), Call(runner), 2.0, 0.0) for number, (runner, _) in enumerate(rows)])
    least = len({runner for runner, _ in rows})
    spell = LEAST_WORK * LOAD_SECONDS
    assert least <= card.loads <= least + 2.0 * len(rows) / spell + 1


@settings(max_examples=25)
@given(at=some.lists(some.floats(0, 300), min_size=1, max_size=4, unique=True))
def test_nobody_waits_beyond_the_bound_for_one_that_is_asked_without_end(at: list[float]) -> None:
    """One persona has calls for all the time; whoever asks another now and then is answered within the bound."""
    flood = [(f"flood {number}", Call(ROBIN), 2.0, 1.0 * number) for number in range(250)]
    rare = [(f"rare {number}", Call(BRICK), 2.0, moment) for number, moment in enumerate(at)]
    card = done([*flood, *rare])
    assert max(card.waited[name] for name, *_ in rare) <= BOUND + 2 * len(rare)


# -- the order


def order(prompts: Sequence[Sequence[str]], many: int = 1) -> list[int]:
    """Return in which order calls of one mission to one runner that come together have their turns."""
    calls = [(str(number), Call(ROBIN, said(*each), "m-1"), 1.0, 0.0) for number, each in enumerate(prompts)]
    return [int(name) for name in done(calls, many).began]


def test_the_next_is_the_one_that_shares_most_with_the_last() -> None:
    """Calls of two voices that come mixed up are made voice by voice; the first that came begins."""
    prompts = [("all", "robin 1"), ("all", "brick 1"), ("all", "robin 2"), ("all", "brick 2"), ("all", "robin 1, more")]
    assert order(prompts) == [0, 4, 2, 1, 3]


def test_among_equals_the_first_that_came_is_next() -> None:
    """Nothing in common with the last, or as much: they go in the order in which they came."""
    assert order([("x",), ("a",), ("b",), ("c",)]) == [0, 1, 2, 3]


def test_many_at_once_nobody_waits() -> None:
    """As many calls as are allowed begin in the order in which they come."""
    assert order([(str(number),) for number in range(9)], ALL) == list(range(9))


def test_who_matters_more_is_next_also_where_it_needs_a_load() -> None:
    """A person's question goes before the mind's own work, whose runner takes no new calls meanwhile."""
    own = [(f"own {number}", Call(ROBIN, priority=-9), 2.0, 0.0) for number in range(9)]
    card = done([*own, ("asked", Call(BRICK), 2.0, 6.5)])
    assert card.began.index("asked") == 1
    assert card.waited["asked"] == pytest.approx(0.5 + LOAD_SECONDS)


def test_what_nobody_waits_for_is_done_all_the_same() -> None:
    """A person asks one persona without end: the mind's own work with another comes nearer with each bound."""
    asked = [(f"asked {number}", Call(ROBIN, mission=str(number)), 2.0, 1.5 * number) for number in range(600)]
    card = done([*asked, ("own", Call(BRICK, priority=-9), 2.0, 1.0)])
    assert 8 * BOUND < card.waited["own"] < 11 * BOUND


def test_the_last_call_of_another_runner_ends_first() -> None:
    """A call that is under way is never cut: the load waits for it."""
    card = done([("long", Call(ROBIN), 90.0, 0.0), ("other", Call(BRICK), 1.0, 1.0)])
    assert card.waited["other"] == pytest.approx(LOAD_SECONDS + 90.0 - 1.0 + LOAD_SECONDS)


def test_loads_go_one_at_a_time() -> None:
    """Two runners of two bases that come together: the second waits until the first has answered something."""

    async def both() -> float:
        card = Card(CallScheduler())
        await work(card, [("one", Call(ROBIN), 30.0, 0.0), ("two", Call(TWIN), 1.0, 0.0)])
        return card.waited["two"]

    assert run_virtually(both()) == pytest.approx(2 * LOAD_SECONDS)


def test_a_mission_finds_its_runner_again() -> None:
    """Between two of its calls another's would load; it waits for a moment, and only while the mission runs."""

    async def turns(*, attended: bool) -> list[str]:
        card = Card(CallScheduler(1))

        async def mission() -> None:
            for number in range(3):
                await card.call(f"step {number}", Call(ROBIN, mission="m-1"), 1.0)
                await asyncio.sleep(KEPT * LOAD_SECONDS / 2)  # any pace: the seconds are virtual

        async def attended_mission() -> None:
            with card.scheduler.attend("m-1"):
                await mission()

        other = card.call("other", Call(BRICK, mission="m-2"), 1.0, 5.5)
        await asyncio.gather(attended_mission() if attended else mission(), other)
        return card.began

    assert run_virtually(turns(attended=True)) == ["step 0", "step 1", "step 2", "other"]
    assert run_virtually(turns(attended=False)) == ["step 0", "other", "step 1", "step 2"]


def test_another_missions_call_is_sent_while_one_is_answered() -> None:
    """The daemon has no pause between two; where it answers both at once, it is known to answer so many."""

    async def sent() -> tuple[int, int, int]:
        scheduler, end = CallScheduler(1), asyncio.Event()
        had: list[str] = []

        async def call(mission: str, *, answers: bool) -> None:
            async with scheduler.turn(Call(ROBIN, mission=mission)) as turn:
                had.append(mission)
                if answers:
                    turn.listening(None)("The")
                await end.wait()

        calls = [call("m-1", answers=True), call("m-1", answers=True), call("m-2", answers=True)]
        tasks = [asyncio.ensure_future(each) for each in calls]
        await asyncio.sleep(1)  # any pace: the second is virtual
        end.set()
        await asyncio.gather(*tasks)
        return had.index("m-2"), scheduler.many, len(had)

    assert run_virtually(sent()) == (1, 2, 3)


def test_what_lies_on_the_processor_waits_for_nobody() -> None:
    """It takes no place of the card."""
    aside = Runner("small", (), on_card=False)
    card = done([("long", Call(ROBIN), 60.0, 0.0), ("aside", Call(aside), 1.0, 1.0)])
    assert card.waited["aside"] <= LOAD_SECONDS


def test_one_base_without_adapters_never_waits_for_a_load() -> None:
    """All personas share a runner: one load, and the calls one after another without a pause."""
    shared = Runner("base")
    card = done([(str(number), Call(shared, mission=str(number)), 2.0, 0.0) for number in range(20)])
    assert card.loads == card.scheduler.loads == 1


# -- what lies in memory


def test_what_does_not_fit_together_is_learnt() -> None:
    """A runner that should be there is loaded again: the one that was loaded since takes its place from then on."""
    found = Residents()
    for runner in (ROBIN, TWIN):
        found.replace(runner, found.victims(runner))
        found.note(runner, LOAD_SECONDS, 0.0)
    assert not found.victims(Runner("third"))
    found.note(ROBIN, LOAD_SECONDS, 10.0)
    assert found.victims(TWIN) == [ROBIN]
    assert TWIN not in found
    found.replace(TWIN, found.victims(TWIN))
    assert ROBIN not in found


def test_a_runner_that_nobody_used_for_long_says_nothing() -> None:
    """The daemon ends it by itself after minutes."""
    found = Residents()
    for runner in (ROBIN, TWIN):
        found.replace(runner, found.victims(runner))
        found.note(runner, LOAD_SECONDS, 0.0)
    found.note(ROBIN, LOAD_SECONDS, KEPT_ALIVE + 1)
    assert found.victims(TWIN) == []


def test_what_fits_together_after_all_is_learnt_too() -> None:
    """A runner is to be loaded, and was there all the time: both are in memory."""
    found = Residents()
    for now, runner in enumerate((ROBIN, TWIN, ROBIN)):
        if runner not in found:
            found.replace(runner, found.victims(runner))
        found.note(runner, LOAD_SECONDS, float(now))
    found.replace(TWIN, found.victims(TWIN))
    assert ROBIN not in found
    found.note(TWIN, 0.0, 5.0)
    assert ROBIN in found
    assert TWIN in found
    assert not found.victims(Runner("third"))


def test_the_seconds_of_a_load_are_learnt() -> None:
    """The newest counts as much as all before."""
    found = Residents()
    assert found.load_seconds(ROBIN) == LOAD_SECONDS
    for seconds in (2.0, 4.0, 0.0):
        found.note(ROBIN, seconds, 0.0)
    assert found.load_seconds(BRICK) == 3.0


@given(one=some.lists(some.text(max_size=9), max_size=3), other=some.lists(some.text(max_size=9), max_size=3))
def test_what_prompts_share(one: list[str], other: list[str]) -> None:
    """It is the length of the common beginning, message by message, as counted letter by letter."""

    def letters(contents: list[str]) -> list[tuple[int, str]]:
        return [(place, letter) for place, content in enumerate(contents) for letter in [*content, "\0end"]]

    shared = 0
    for mine, yours in zip(letters(one), letters(other), strict=False):
        if mine != yours:
            break
        shared += mine[1] != "\0end"
    assert common(said(*one), said(*other)) == shared
    assert all(a <= b for a, b in pairwise([common(said(*one), said(*one[:count])) for count in range(len(one) + 1)]))
