"""What a mission has spent is known over all of its runs, and waiting is told apart from thinking."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from ollama import ChatResponse, Message

from batos.image.ids import iso
from batos.inference.cost import Cost, Spending, cost_of, seconds_of_runs
from batos.inference.journal import Record
from batos.inference.ollama.chat import Answer, answer_of

ANSWER = Answer("So.", "", "stop", 100, 10, 2.0, 9.0, 1, 0.5)
START = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    """So many seconds after the start."""
    return iso(START + timedelta(seconds=seconds))


def record(state: Any, started: float, ended: float | None = None, answer: Answer | None = None) -> Record:
    """A call in the journal."""
    response = None if answer is None else asdict(answer)
    over = None if ended is None else at(ended)
    return Record("k", "m-1", "brick/reflex#0", "m", "d", {}, state, at(started), over, response)


def test_waiting_is_not_thinking() -> None:
    """The queue and the load are told as waiting; where the daemon names only the whole, its load is taken off."""
    cost = Cost()
    cost.charge(ANSWER)
    cost.charge(replace(ANSWER, load_seconds=0.01, total_seconds=0.6))
    assert (cost.seconds, round(cost.waited, 3), cost.loads) == (1.0, 8.6, 1)
    old = replace(ANSWER, evaluation_seconds=None)
    assert (old.thinking_seconds, ANSWER.thinking_seconds) == (7.0, 0.5)


def test_what_the_runner_spent_is_read_from_the_last_line() -> None:
    """Reading and writing together; a prompt that was cached whole has no time of its own."""
    said: dict[str, Any] = {
        "message": Message(role="assistant", content="So."),
        "done": True,
        "total_duration": 9 * 10**9,
    }
    whole = ChatResponse(**said, prompt_eval_duration=10**9, eval_duration=2 * 10**9)
    assert answer_of("So.", "", whole).evaluation_seconds == 3.0
    assert answer_of("So.", "", ChatResponse(**said, eval_duration=10**9)).evaluation_seconds == 1.0
    assert answer_of("So.", "", ChatResponse(**said)).evaluation_seconds is None


def test_the_journal_tells_what_was_spent() -> None:
    """Every call counts, also one that failed or was cut; tokens and time are those of answers."""
    cost = cost_of([record("done", 0, 9, ANSWER), record("failed", 9, 10), record("open", 10)])
    assert (cost.calls, cost.tokens, cost.seconds, cost.loads, cost.from_journal) == (3, 110, 0.5, 1, 0)


def test_a_run_takes_as_long_as_something_is_known_of_it() -> None:
    """From its beginning to its last moment in the journal; what no process ran is not counted."""
    notes: list[dict[str, Any]] = [
        {"begun": at(0)},
        {"state": "IDLE", "at": at(1)},
        {"paused": {}, "at": at(30)},
        {"begun": at(5_000)},
    ]
    assert seconds_of_runs(notes, [record("done", 2, 20, ANSWER), record("done", 5_001, 5_012, ANSWER)]) == 42.0
    assert seconds_of_runs([], []) == 0.0
    assert seconds_of_runs([{"begun": at(3)}], []) == 0.0


@given(some.lists(some.tuples(some.integers(0, 100), some.integers(0, 1_000)), max_size=5))
def test_runs_take_what_each_of_them_took(runs: list[tuple[int, int]]) -> None:
    """However long a mission stood still in between."""
    notes: list[dict[str, Any]] = []
    now = 0
    for took, stood in runs:
        notes += [{"begun": at(now)}, {"state": "FAILED", "at": at(now + took)}]
        now += took + stood + 1
    assert seconds_of_runs(notes, []) == sum(took for took, _ in runs)


def test_spending_adds_up() -> None:
    """What came since is what is there less what was."""
    one, two = Spending(1, 10, 0.5), Spending(2, 30, 0.25)
    assert (one + two) - one == two
