"""A yes of a person: for one question, one client, in time, and once."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from batos.server.mcp.mcp_service import Confirmations

MEANT = st.lists(st.text(max_size=4) | st.integers() | st.dictionaries(st.text(max_size=3), st.integers()), max_size=3)


@dataclass
class Hand:
    """A clock that a test moves."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@given(meant=MEANT, other=MEANT, client=st.text(max_size=4), foreign=st.text(max_size=4))
def test_a_mark_is_for_what_was_asked_alone_and_once(
    meant: list[object], other: list[object], client: str, foreign: str
) -> None:
    """Whatever is meant; another process's mark is nobody's."""
    marks = Confirmations(Hand())
    mark = marks.ask(client, *meant)
    assert not Confirmations(Hand()).take(mark, client, *meant)
    if other != meant:
        assert not marks.take(mark, client, *other)
    if foreign != client:
        assert not marks.take(mark, foreign, *meant)
    assert marks.take(mark, client, *meant)
    assert not marks.take(mark, client, *meant)


def test_a_mark_stands_for_ten_minutes_and_is_used_once_all_the_time() -> None:
    """What was used is known as long as its mark would stand."""
    clock = Hand()
    marks = Confirmations(clock)
    late, used = marks.ask("ann", "undo"), marks.ask("ann", "undo")
    assert marks.take(used, "ann", "undo")
    clock.now += 599
    assert not marks.take(used, "ann", "undo")
    clock.now += 2
    assert not marks.take(late, "ann", "undo")


@given(mark=st.text() | st.integers() | st.none() | st.from_regex(r"[0-9]*\.[a-z]*\.[a-z]*"))
def test_a_mark_of_nobody_is_refused(mark: object) -> None:
    """Whatever it is."""
    assert not Confirmations(Hand()).take(mark, "ann", "undo")
