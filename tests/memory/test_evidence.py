"""Evidence: blocks that close only where they end, and lightening in a fixed order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import passage, size_of

from batos.memory.evidence import Evidence, Summary, Turn, rank


@given(text=st.text(max_size=200))
def test_a_summary_never_closes_its_own_block(text: str) -> None:
    """Whatever the text, the mark that ends the block is not in it, and the block says what it is."""
    block = Summary(3, 7, text, "external", by_model=False).block()
    opening, _, rest = block.partition("\n<")
    assert opening == "First sentences, taken by the machine, of turns 3 to 7:"
    mark = rest.partition('digest="')[2].partition('"')[0]
    assert mark not in text
    assert rest.endswith(f"\n{text}\n</earlier {mark}>")
    assert Summary(3, 3, text, "user").block().startswith("Summary, made by the machine, of turn 3:")


@given(excess=st.integers(-5, 5_000))
def test_lightening_drops_weak_passages_then_summaries_then_old_turns(excess: int) -> None:
    """At least so many bytes go, or all; each kind goes only when none of the one before is left, the oldest first."""
    found = tuple(passage(f"{'lamp ' * number} and the sea " * 4, number) for number in range(1, 6))
    turns = tuple(Turn(f"m-{number}", "q" * 99, "a" * 99, "model") for number in range(3))
    view = (Summary(1, 4, "s" * 300, "model"), Summary(5, 6, "s" * 100, "model"))
    evidence = Evidence(found, turns, view=view)
    left = evidence.lighten("lamp", excess)
    assert size_of(evidence) - size_of(left) >= min(excess, size_of(evidence))
    assert left.view == view or not left.passages
    assert left.turns == turns or not left.view
    assert left.view == view[len(view) - len(left.view) :]
    assert left.turns == turns[len(turns) - len(left.turns) :]
    kept = {each.number for each in left.passages}
    weakest_first = [each.number for each in reversed(rank(found, "lamp"))]
    assert kept == set(weakest_first[len(found) - len(kept) :])
    assert left.omitted_passages == len(found) - len(left.passages)
    gone = sum(each.last - each.first + 1 for each in view[: len(view) - len(left.view)])
    assert left.omitted_turns == len(turns) - len(left.turns) + gone


def test_turns_alone_can_be_left_out() -> None:
    """Summaries go first, then the oldest turns; no passage does."""
    turns = tuple(Turn(f"m-{number}", "q" * 40, "a" * 40, "model", number) for number in (3, 4))
    evidence = Evidence((passage("The lamp burns."),), turns, view=(Summary(1, 2, "s", "model"),))
    less = evidence.without_turns(evidence.view[0].size + 1)
    assert (less.passages, less.view, less.turns, less.omitted_turns) == (evidence.passages, (), turns[1:], 3)
    assert evidence.without_turns(0) == evidence


def test_a_summary_that_is_left_out_counts_for_the_turns_that_stand() -> None:
    """Positions of undone turns that it spans are none."""
    evidence = Evidence(view=(Summary(1, 9, "s", "model"), Summary(10, 12, "s", "model")), undone=(1, 4, 11))
    assert evidence.without_turns(1).omitted_turns == 7
