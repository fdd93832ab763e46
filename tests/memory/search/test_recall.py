"""Recall: what fits into a budget, chosen by what matches and by what is newest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import SHA, passage, size_of

from batos.memory.evidence import MOST_DOCUMENTS, Past, Summary, Turn
from batos.memory.passages import passages
from batos.memory.search.recall import VIEW_SHARE, recall

turn_lists = st.lists(
    st.integers(1, 90).map(lambda size: Turn(f"m-{size}", "q" * size, "a" * size, "model")), max_size=5
)


def past_of(turns: Sequence[Turn], view: tuple[Summary, ...] = ()) -> Past:
    """Return a past of these turns, oldest first, behind a view; they are numbered after it."""
    before = Past(view=view).last_summarised_turn
    numbered = [replace(turn, position=position) for position, turn in enumerate(turns, start=before + 1)]
    return Past(before + len(numbered), lambda: reversed(numbered), view)


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """A conversation with a view of its older turns, and perhaps an exchange that is replied to: one of it, or not."""
    spans = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 300)), max_size=4))
    view: list[Summary] = []
    for turns, size in spans:
        first = view[-1].last + 1 if view else 1
        view.append(Summary(first, first + turns - 1, "s" * size, "model"))
    past = past_of(draw(turn_lists), tuple(view))
    known = [Turn("m-else", "q", "a", "user"), *past.newest(), *([Turn("m-old", "q", "a", "user", 1)] if view else [])]
    return replace(past, meant=draw(st.sampled_from([None, *known])))


@given(
    found=st.lists(st.integers(1, 900).map(lambda size: "w" * size), max_size=20),
    past=pasts(),
    room=st.integers(0, 6_000),
)
def test_recall_stays_within_its_room_and_counts_what_it_left_out(found: list[str], past: Past, room: int) -> None:
    """What is shown takes no more than the room; every turn is shown, stood for or counted; the newest are kept."""
    candidates = [passage(text, number) for number, text in enumerate(found, start=1)]
    evidence = recall(candidates, past, "w", room)
    assert size_of(evidence) <= room
    assert len(evidence.passages) + evidence.omitted_passages == len(candidates)
    assert [each.number for each in evidence.passages] == list(range(1, len(evidence.passages) + 1))
    told = {each.position for each in evidence.turns if each.position}
    for summary in evidence.view:
        told |= set(range(summary.first, summary.last + 1))
    assert len(told) + evidence.omitted_turns == past.count
    assert evidence.view == past.view[len(past.view) - len(evidence.view) :]
    meant = past.meant is not None and past.meant.size <= (room // 2 if candidates else room)
    assert (evidence.turns[-1:] == (past.meant,)) == meant or past.meant in evidence.turns[-1:]
    rest = evidence.turns[:-1] if meant else evidence.turns
    newest = [each for each in past.newest() if not (meant and past.meant and each.mission == past.meant.mission)]
    assert list(rest) == list(reversed(newest[: len(rest)]))


def test_turns_are_loaded_until_the_room_is_used_up() -> None:
    """However long the conversation: one turn more than has room is looked at, and what is left out is counted."""
    looked: list[int] = []

    def newest() -> Iterator[Turn]:
        for position in range(10_000, 0, -1):
            looked.append(position)
            yield Turn(f"m-{position}", "q" * 50, "a" * 50, "model", position)

    evidence = recall((), Past(10_000, newest), "", 1_000)
    assert [each.position for each in evidence.turns] == list(range(9_994, 10_001))
    assert looked[-1] == 9_993
    assert evidence.omitted_turns == 10_000 - 7


def test_summaries_have_a_share_that_turns_do_not_take() -> None:
    """With many turns the newest summary still has its place; with few the view is shown whole."""
    view = tuple(Summary(number, number, "s" * 200, "model") for number in range(1, 6))
    many = [Turn(f"m-{number}", "q" * 40, "a" * 40, "model") for number in range(100)]
    room = 3_000
    crowded = recall((), past_of(many, view), "", room)
    assert crowded.view
    assert sum(each.size for each in crowded.view) <= room // VIEW_SHARE + many[0].size
    assert sum(each.size for each in crowded.turns) >= room - room // VIEW_SHARE - many[0].size - 2 * 16
    assert recall((), past_of(many[:2], view), "", room).view == view


def test_positions_of_undone_turns_are_not_left_out() -> None:
    """Neither among the newest turns nor below summaries that have no room; the evidence tells them."""
    view = (Summary(1, 4, "s" * 900, "model"), Summary(5, 6, "s", "model"))
    turns = [Turn(f"m-{place}", "q", "a", "model", place) for place in (7, 9)]
    past = Past(10, lambda: reversed(turns), view, undone=(2, 5, 8, 10))
    whole, small = recall((), past, "", 5_000), recall((), past, "", 500)
    assert (whole.omitted_turns, whole.undone) == (0, past.undone)
    assert (small.view, small.omitted_turns) == (view[1:], 3)


def test_all_passages_are_shown_if_they_fit() -> None:
    """A file that fits is shown whole, whether it matches the question or not."""
    candidates = passages([("a", SHA, "One.\n\n" + "x" * 1_190 + "\n\nTwo.")])
    evidence = recall(candidates, Past(), "nothing of it", 10_000)
    assert [each.text for each in evidence.passages] == [each.text for each in candidates]


def test_of_too_many_passages_those_that_match_are_shown() -> None:
    """The room is used: the best matches come first, then their neighbours, then the rest in order."""
    lines = [f"Line {number} about {'lamps' if number % 30 == 0 else 'nothing'}." for number in range(1, 301)]
    candidates = [passage(line, number) for number, line in enumerate(lines, start=1)]
    few = recall(candidates, Past(), "lamps", 10 * candidates[-1].size)
    assert [each.text.split()[1] for each in few.passages] == [str(30 * number) for number in range(1, 11)]
    more = recall(candidates, Past(), "lamps", 13 * candidates[-1].size)
    assert {"29", "31", "59"} < {each.text.split()[1] for each in more.passages}
    first = recall(candidates, Past(), "whales", 5 * candidates[-1].size)
    assert [each.text.split()[1] for each in first.passages] == ["1", "2", "3", "4", "5"]


def test_a_citation_can_number_every_passage_that_is_shown() -> None:
    """However large the window, no more documents are shown than a citation's schema can name."""
    candidates = [passage("w", number) for number in range(1, 400)]
    assert max(each.number for each in recall(candidates, Past(), "w", 10**6).passages) <= MOST_DOCUMENTS


def test_turns_have_a_room_of_their_own_where_they_are_given_one() -> None:
    """The passages have all of the other room then, and the turns none of it."""
    candidates = passages([("a", SHA, "One.\n\n" + "x" * 1_190 + "\n\nTwo.")])
    past = past_of([Turn(f"m-{number}", "q" * 40, "a" * 40, "model") for number in range(9)])
    evidence = recall(candidates, past, "One", 5_000, 3 * 112)
    assert len(evidence.turns) == 3
    assert len(evidence.passages) == len(candidates)
    assert recall(candidates, past, "One", 5_000, 0).turns == ()
