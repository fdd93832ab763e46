"""A mission's paid calls: budgets, what the journal serves, what is kept of a call that failed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.inference.counting_bridge import DIGEST, CountedBridge, Desk, asked, desk, identity, step, until
from tests.inference.still_clock import HOUR, on_still_clock, pass_time

from batos.events import Events
from batos.image.transactions import snapshot
from batos.inference.cost import SpendingLimits, cost_of
from batos.inference.journal import MISSIONS
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Session
from batos.protocol.errors import BatosError, ContextOverflow, ModelMissing, OllamaBusy, Refused, RunnerDied, TimedOut


async def test_an_answer_is_in_the_journal_before_it_is_used() -> None:
    """When `think` returns, the record is durable, with request, response, tokens, digest and times."""
    async with desk() as at:
        session = at.session(CountedBridge())
        answer = await session.think(asked("Why?"), step("a#0"))
        (record,) = at.records()
        assert record.response is not None
        assert (record.state, record.path, record.model, record.digest) == ("done", "a#0", "robin", DIGEST)
        assert record.response["text"] == answer.text
        assert record.tokens == {"prompt": 10, "answer": 4}
        assert record.request["messages"] == list(asked("Why?").messages)
        assert record.ended is not None
        assert record.started <= record.ended
        assert session.keys == [record.key]


async def test_what_is_served_from_the_journal_costs_nothing() -> None:
    """The same call again, in this session or the next, is one call; the listener hears the whole text at once."""
    async with desk() as at:
        bridge = CountedBridge()
        await at.session(bridge).think(asked(), step())
        at.open()
        heard: list[str] = []
        session = at.session(bridge)
        answer = await session.think(asked(), step(on_token=heard.append))
        await session.think(asked(), step())
        assert heard == [answer.text]
        assert sum(bridge.begun.values()) == 1
        cost = session.cost.as_dict()
        assert cost["from_journal"] == 2
        assert {name: cost[name] for name in ("calls", "prompt_tokens", "answer_tokens", "seconds")} == {
            "calls": 0,
            "prompt_tokens": 0,
            "answer_tokens": 0,
            "seconds": 0,
        }
        assert session.models == {"robin": DIGEST}
        assert len(at.records()) == 1


async def test_another_path_is_another_call() -> None:
    """Two samples of one question are two answers."""
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge)
        await session.think(asked(), step("a#0"))
        await session.think(asked(), step("a#1"))
        assert sum(bridge.given.values()) == 2


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        (SpendingLimits(calls=2, tokens=10**6, seconds=HOUR), "budget.calls"),
        (SpendingLimits(calls=99, tokens=28, seconds=HOUR), "budget.tokens"),
    ],
)
async def test_a_budget_that_is_spent_refuses(limits: SpendingLimits, field: str) -> None:
    """After two calls of 14 tokens the third is refused and names what is spent; what was paid is still served."""
    async with desk() as at:
        session = at.session(CountedBridge(), limits=limits)
        for number in range(2):
            await session.think(asked(str(number)), step())
        with pytest.raises(Refused) as refused:
            await session.think(asked("2"), step())
        assert refused.value.field == field
        assert refused.value.exit_code == 4
        assert field.partition(".")[2] in refused.value.remedy
        await session.think(asked("1"), step())
        assert session.cost.calls == 2
        assert len(at.records()) == 2, "a refused call is no entry"


async def test_what_certainly_cannot_be_paid_or_held_is_not_sent() -> None:
    """No tokenizer makes of a prompt as few tokens as the budget or the window has: nothing is asked or written."""
    async with desk() as at:
        bridge, roomy = CountedBridge(), {"num_ctx": 1280, "num_predict": 64}
        with pytest.raises(Refused, match="at least 1015 tokens") as refused:
            await at.session(bridge, limits=SpendingLimits(9, 1000, HOUR)).think(
                asked("w" * 20_000, options=roomy), step()
            )
        assert refused.value.field == "budget.tokens"
        with pytest.raises(ContextOverflow, match="at least 1015 tokens") as over:
            await at.session(bridge).think(asked("w" * 20_000, options={"num_ctx": 1014, "num_predict": 64}), step())
        assert over.value.window == 1014
        assert not bridge.begun
        assert at.records() == []
        await at.session(bridge, limits=SpendingLimits(9, 1015, HOUR)).think(asked("w" * 20_000, options=roomy), step())
        assert sum(bridge.begun.values()) == 1


async def test_a_mission_whose_time_is_over_makes_no_call() -> None:
    """By the session's own clock, which only ever grows."""
    now = [0.0]
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge, limits=SpendingLimits(9, 9_999, 30.0), ticks=lambda: now[0])
        await session.think(asked("1"), step())
        now[0] = 30.0
        with pytest.raises(TimedOut, match="30 seconds") as over:
            await session.think(asked("2"), step())
        assert over.value.field == "budget.seconds"
        assert sum(bridge.begun.values()) == 1


@on_still_clock
async def test_a_call_is_stopped_when_the_time_is_over() -> None:
    """A call under way ends with the mission's time; what came of it is kept."""
    async with desk() as at:
        bridge, ticks = CountedBridge(gate=asyncio.Event()), asyncio.get_running_loop().time
        session = at.session(bridge, limits=SpendingLimits(9, 9_999, HOUR), ticks=ticks)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: bridge.begun)
        await pass_time(HOUR / 2)
        assert not task.done()
        await pass_time(HOUR / 2)
        with pytest.raises(TimedOut):
            await task
        (record,) = at.records()
        assert (record.state, record.partial) == ("cut", "partly")


async def test_a_model_that_nobody_has() -> None:
    """A model without a digest is missing, by name."""
    async with desk() as at:
        with pytest.raises(ModelMissing, match="unknown"):
            await at.session(CountedBridge()).think(asked(model="unknown"), step())


async def test_what_was_paid_is_found_after_the_model_was_changed() -> None:
    """A mission finds its answers under the digest they were paid under; what is new is paid under today's."""
    async with desk() as at:
        bridge = CountedBridge()
        await at.session(bridge).think(asked("old"), step())
        session = at.session(bridge, digests={"robin": "e" * 64})
        await session.think(asked("old"), step())
        assert session.models == {"robin": DIGEST}
        await session.think(asked("new"), step())
        assert (session.cost.from_journal, session.cost.calls) == (1, 1)
        assert [record.digest for record in at.records()] == [DIGEST, "e" * 64]
        # Also while Ollama is away and nobody knows today's digest.
        away = at.session(bridge, digests={})
        await away.think(asked("new"), step())
        assert away.cost.from_journal == 1


async def test_what_a_mission_paid_is_its_own_whatever_the_model_is_called_by_now() -> None:
    """Made anew from a changed base, it has another name: what was paid is served; to a retry only under its name."""
    async with desk() as at:
        bridge = CountedBridge()
        await at.session(bridge).think(asked("old"), step())
        anew = {"robin:2": "e" * 64}
        session = at.session(bridge, digests=anew)
        await session.think(asked("old", model="robin:2"), step())
        assert (session.cost.from_journal, session.cost.calls) == (1, 0)
        assert session.models == {"robin": DIGEST}
        retry = at.session(bridge, mission="m-2", earlier=("m-1", "m-2"), digests=anew)
        await retry.think(asked("old", model="robin:2"), step())
        assert (retry.cost.from_journal, retry.cost.calls) == (0, 1)


async def test_a_mission_sees_its_ancestors_answers_and_no_others() -> None:
    """What m-0 paid for serves m-1 when it is an ancestor, else is paid for again."""
    async with desk() as at:
        bridge = CountedBridge()
        await at.session(bridge, mission="m-0").think(asked(), step())
        await at.session(bridge, earlier=("m-0", "m-1")).think(asked(), step())
        assert sum(bridge.given.values()) == 1
        await at.session(bridge, earlier=("m-1",)).think(asked(), step())
        assert sum(bridge.given.values()) == 2


@pytest.mark.parametrize("error", [OllamaBusy("full"), RunnerDied("gone")], ids=repr)
async def test_a_call_that_failed_is_kept_and_can_be_paid_again(error: BatosError) -> None:
    """Its error and what came of it are in the journal; the next attempt asks again and adds an entry of its own."""
    async with desk() as at:
        failing = CountedBridge(lambda request: error)
        session = at.session(failing)
        with pytest.raises(type(error)):
            await session.think(asked(), step())
        (record,) = at.records()
        assert (record.state, record.partial) == ("cut", "partly")
        assert record.response == {"error": error.as_dict()}
        await at.session(CountedBridge()).think(asked(), step())
        assert [each.state for each in at.records()] == ["cut", "done"]


async def test_a_call_that_said_nothing_has_failed() -> None:
    """Without any text the entry is failed, not cut."""

    class Mute(CountedBridge):
        async def think(self, *given: Any, **also: Any) -> Any:
            raise OllamaBusy("full")

    async with desk() as at:
        with pytest.raises(OllamaBusy):
            await at.session(Mute()).think(asked(), step())
        (record,) = at.records()
        assert (record.state, record.partial) == ("failed", None)


async def test_a_cancelled_call_is_cut() -> None:
    """What had come of it is kept and counted as paid for, and the cancellation goes on."""
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        session = at.session(bridge)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: bridge.begun)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (record,) = at.records()
        assert (record.state, record.partial) == ("cut", "partly")
        assert record.response is not None
        assert record.response["error"]["code"] == "cancelled"
        told = session.cost.as_dict()
        assert (told["answer_tokens"], told["wasted"], told["prompt_tokens"] > 0) == (1, 1, True)
        assert cost_of(at.records()).as_dict() == told


async def test_a_cancellation_while_the_answer_is_written_does_not_lose_it() -> None:
    """The write is waited for: the answer is there for whoever asks next, in this session or another."""
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: at.writer._waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.think(asked(), step())
        await at.session(bridge).think(asked(), step())
        assert sum(bridge.begun.values()) == 1
        assert session.cost.calls == 1
        assert [record.state for record in at.records()] == ["done"]


async def test_the_unfinished_text_is_saved_from_time_to_time() -> None:
    """An open entry with what has come so far is in the journal while the answer still comes; the end moves it on."""
    now = [0.0]
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())

        def later(piece: str) -> None:
            now[0] += 5.0

        session = at.session(bridge, ticks=lambda: now[0], partial_every=2.0)
        now[0] = 3.0  # the session began at 0, the call does at 3: nothing is due with its first piece
        task = asyncio.create_task(session.think(asked(), step(on_token=later)))
        await until(lambda: bridge.begun)
        assert at.records() == []
        assert bridge.gate is not None
        bridge.gate.set()
        await task
        (record,) = at.records()
        assert (record.state, record.partial) == ("done", None)

        held = CountedBridge(gate=asyncio.Event())
        session = at.session(held, partial_every=0.0)
        task = asyncio.create_task(session.think(asked("more"), step()))
        await until(lambda: len(at.records()) == 2)
        assert [(each.state, each.partial) for each in at.records()[1:]] == [("open", "partly")]
        task.cancel()
        await asyncio.wait({task})
        assert [each.state for each in at.records()] == ["done", "cut"]


async def test_an_entry_left_open_by_a_dead_process_is_moved_on() -> None:
    """The same call paid again ends the open entry instead of adding one."""
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        task = asyncio.create_task(at.session(bridge, partial_every=0.0).think(asked(), step()))
        await until(at.records)
        at.open()  # the next process: the entry is open
        await at.session(CountedBridge()).think(asked(), step())
        assert [record.state for record in at.records()] == ["done"]
        task.cancel()
        await asyncio.wait({task})


async def test_duplicates_at_once_are_one_call() -> None:
    """Ten that ask the same at the same time get one answer; nine are served from the journal."""
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge)
        answers = await asyncio.gather(*(session.think(asked(), step()) for _ in range(10)))
        assert len({answer.text for answer in answers}) == 1
        assert (bridge.most_at_once, session.cost.calls, session.cost.from_journal) == (1, 1, 9)


async def test_a_duplicate_outlives_the_cancellation_of_the_first() -> None:
    """Whoever waited for a call that was cancelled makes it; nobody is cancelled but who was meant."""
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        session = at.session(bridge)
        first, second = (asyncio.create_task(session.think(asked(), step())) for _ in range(2))
        await until(lambda: bridge.begun)
        first.cancel()
        assert bridge.gate is not None
        bridge.gate.set()
        answer = await second
        assert answer.text == "about Why?"
        with pytest.raises(asyncio.CancelledError):
            await first
        assert bridge.most_at_once == 1


async def test_each_call_is_told() -> None:
    """inference.start, first_token and end for what is paid; end alone, marked so, for what is served."""
    told: list[tuple[str, Any]] = []
    events = Events(lambda name, keys: told.append((name, keys.get("from_journal"))), log=False)
    async with desk() as at:
        session = at.session(CountedBridge(), events=events)
        for _ in range(2):
            await session.think(asked(), step())
    assert told == [
        ("inference.start", None),
        ("inference.first_token", None),
        ("inference.end", False),
        ("inference.end", True),
    ]


questions = some.sampled_from(["a", "b", "c"])
actions = some.one_of(
    some.tuples(some.just("ask"), questions),
    some.tuples(some.just("fail"), questions),
    some.tuples(some.just("cancel"), questions, some.integers(0, 12)),
    some.tuples(some.just("together"), questions, some.integers(2, 4)),
    some.tuples(some.just("restart")),
)


class Life:
    """A mission's calls over any number of processes, with the ledger of what Ollama answered."""

    def __init__(self, at: Desk) -> None:
        self.at = at
        self.failing: set[str] = set()
        self.bridge = CountedBridge(self.reply)
        self.session: Session = at.session(self.bridge)

    def reply(self, request: ChatRequest) -> str | BaseException:
        """A failure if one is due."""
        question = request.messages[-1]["content"]
        return OllamaBusy("full") if question in self.failing else question

    async def do(self, action: tuple[Any, ...]) -> None:
        """One thing that may happen."""
        if action[0] == "restart":
            self.at.open()
            self.session = self.at.session(self.bridge)
            return
        kind, question = action[:2]
        self.failing = {question} if kind == "fail" else set()
        tasks = [self.asking(question) for _ in range(action[2] if kind == "together" else 1)]
        if kind == "cancel":
            for _ in range(action[2]):
                await asyncio.sleep(0)
            tasks[0].cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                assert isinstance(each, OllamaBusy | asyncio.CancelledError)
            else:
                assert each.text == question

    def asking(self, question: str) -> asyncio.Task[Any]:
        """A call under way."""
        return asyncio.create_task(self.session.think(asked(question), step()))


async def lived(what: list[tuple[Any, ...]]) -> tuple[CountedBridge, Counter[str]]:
    """The bridge after all that, and the number of done entries by question."""
    async with desk() as at:
        life = Life(at)
        for action in what:
            await life.do(action)
        done = Counter(identity(_request(record.request)) for record in at.records() if record.state == "done")
        with snapshot(at.db) as root:
            assert set(root.get(MISSIONS, ())) <= {"m-1"}
        return life.bridge, done


def _request(shown: Any) -> ChatRequest:
    return asked(messages=tuple(shown["messages"]), options=shown["options"])


@settings(max_examples=100)
@given(some.lists(actions, max_size=12))
def test_no_key_is_paid_twice(what: list[tuple[Any, ...]]) -> None:
    """Whatever is asked, fails, is cancelled, comes together or is restarted: one answer a key, one call at a time."""
    bridge, done = asyncio.run(lived(what))
    assert all(times == 1 for times in bridge.given.values())
    assert done == bridge.given
    assert bridge.most_at_once <= 1


class Stop(Exception):
    """What the test holds a mission with."""


async def test_a_held_mission_pays_for_what_is_under_way_and_for_no_more() -> None:
    """Whoever would pay more waits until the calls under way are in the journal, and is stopped only then."""
    holding = False

    def check_stop() -> None:
        if holding:
            raise Stop

    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        session = at.session(bridge, check_stop=check_stop)
        under_way = [asyncio.create_task(session.think(asked(each), step(each))) for each in ("1", "2")]
        await until(lambda: sum(bridge.begun.values()) == 2)
        holding = True
        refused = asyncio.create_task(session.think(asked("3"), step("3")))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not refused.done()
        assert bridge.gate is not None
        bridge.gate.set()
        with pytest.raises(Stop):
            await refused
        assert sorted(record.state for record in at.records()) == ["done", "done"]
        assert all(task.done() or not task.cancelled() for task in under_way)
        await asyncio.gather(*under_way)
        assert session.cost.calls == sum(bridge.begun.values()) == 2
        # What is paid for is served all the same.
        await session.think(asked("1"), step("1"))
        holding = False
        await session.think(asked("3"), step("3"))
