"""The queue of a process: by priority, then by age, and what is dropped is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batos.image.records import Brief, Status
from batos.missions.worker_runs import Queue, QueueEntry, entry_of
from batos.protocol.brief import parse

places = st.builds(QueueEntry, st.integers(0, 40).map(lambda number: f"m-{number:02}"), st.integers(-9, 9))
works = st.lists(st.tuples(st.sampled_from(["put", "drop", "take", "clear"]), places), max_size=200)


@given(works=works)
def test_whose_turn_is_next_is_the_first_of_a_sorted_list(works: list[tuple[str, QueueEntry]]) -> None:
    """Whatever is put, dropped and taken, the queue answers as a list does that is sorted at each step."""
    queue, kept = Queue(), dict[str, QueueEntry]()
    for work, place in works:
        ordered = sorted(kept.values(), key=lambda each: (-each.priority, each.mission))
        first = queue.first()
        assert first == (ordered[0] if ordered else None)
        assert len(queue) == len(kept)
        if work == "put":
            queue.put(place)
            kept.setdefault(place.mission, place)
        elif work == "drop":
            assert queue.drop(place.mission) == kept.pop(place.mission, None)
        elif work == "take" and first is not None:
            assert queue.drop(first.mission) == kept.pop(first.mission)
        elif work == "clear":
            assert set(queue.clear()) == set(kept.values())
            kept = {}
        assert (place.mission in queue) == (place.mission in kept)


def test_what_is_dropped_does_not_pile_up() -> None:
    """A mission that is put and dropped ten thousand times behind another leaves no ten thousand traces."""
    queue = Queue()
    queue.put(QueueEntry("m-0", 9))
    for _ in range(10_000):
        queue.put(QueueEntry("m-1"))
        queue.drop("m-1")
    assert len(queue._heap) < 100
    assert queue.first() == QueueEntry("m-0", 9)


def test_a_mission_put_again_with_another_priority_has_the_new_one() -> None:
    """What is left in the heap of an earlier place is nobody's turn."""
    queue = Queue()
    for place in (QueueEntry("m-1", 9), QueueEntry("m-2", 5)):
        queue.put(place)
    queue.drop("m-1")
    queue.put(QueueEntry("m-1", 1))
    assert queue.first() == QueueEntry("m-2", 5)


def test_what_runs_alone_waits_until_the_process_has_lived() -> None:
    """It is held back at first; then those with fewest deaths go first."""
    queue = Queue()
    worse, bad, plain = QueueEntry("m-1", 9, deaths=3), QueueEntry("m-2", deaths=2), QueueEntry("m-3", -9, deaths=1)
    for place in (worse, bad, plain):
        queue.put(place)
    assert (queue.first(), queue.holds_back()) == (plain, False)
    queue.drop(plain.mission)
    assert (queue.first(), queue.holds_back(), len(queue)) == (None, True, 2)
    queue.see_life()
    assert (queue.first(), queue.holds_back()) == (bad, False)
    queue.put(plain)
    order = []
    while (first := queue.first()) is not None:
        order.append(first)
        queue.drop(first.mission)
    assert order == [plain, bad, worse]
    assert not queue.holds_back()


def test_after_an_end_what_runs_alone_has_its_turn() -> None:
    """The process is known to live without it: the order is that of all entries again."""
    queue = Queue()
    worse, plain = QueueEntry("m-1", 9, deaths=3), QueueEntry("m-3", -9)
    for place in (worse, plain):
        queue.put(place)
    assert queue.first() == plain
    queue.see_end()
    assert queue.first() == worse


def test_a_place_is_what_the_brief_says() -> None:
    """Priority, deadline and patience come from the brief; two counted deaths make it run alone."""
    asked: dict[str, Any] = {"text": "Why?", "user": "me"}
    plain = Brief(parse(asked).model_dump(mode="json", exclude_none=True), "now")
    status = Status("queued", "now")
    assert entry_of("m-1", plain, status) == QueueEntry("m-1")
    asked |= {"priority": 3, "deadline": "2027-01-01T00:00:00.000Z", "policy": {"wait_ollama": True}}
    given_all = Brief(parse(asked).model_dump(mode="json", exclude_none=True), "now")
    whole = QueueEntry("m-1", 3, "2027-01-01T00:00:00.000Z", waits_for_ollama=True)
    assert entry_of("m-1", given_all, status) == whole
    status.deaths = 2
    suspected = entry_of("m-1", given_all, status)
    assert suspected == replace(whole, deaths=2)
    assert (whole.runs_alone, suspected.runs_alone) == (False, True)
