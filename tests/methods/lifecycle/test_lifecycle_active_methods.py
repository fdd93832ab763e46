"""Which uses are the control, and which of too many methods is the worst."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batos.image.records import Lineage
from batos.methods.lifecycle import lifecycle
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject
from batos.protocol.method_documents import no_use


def lived(selector: str, calls: int, bad: int, since: int = 0) -> Lineage:
    """A lineage whose first revision was used so often, `since` of which were before it became active."""
    found = Lineage(UvmObject(), selector, Intent("say"))
    found.active = 1
    found.totals[1] = no_use()
    found.totals[1]["method"] |= {"calls": calls, "bad": bad}
    found.since["method"] |= {"calls": since, "bad": min(since, bad)}
    return found


@given(st.text(max_size=30), st.text(max_size=30), st.integers(1, 50))
def test_the_choice_is_made_once(mission: str, selector: str, every: int) -> None:
    """Asked again, also by a later attempt or another process, it is the same."""
    first = lifecycle.is_control(mission, selector, every)
    assert first == lifecycle.is_control(mission, selector, every)
    assert not lifecycle.is_control(mission, selector, 0)
    assert lifecycle.is_control(mission, selector, 1)


def test_about_one_in_so_many() -> None:
    """Of a thousand missions a tenth, and not the same ones for two methods."""
    chosen = [lifecycle.is_control(f"m-{number}", "sage_facet_", 10) for number in range(1_000)]
    others = [lifecycle.is_control(f"m-{number}", "other_facet_", 10) for number in range(1_000)]
    assert 70 < sum(chosen) < 130
    assert sum(one and other for one, other in zip(chosen, others, strict=True)) < 30


def test_the_worst_by_outcome() -> None:
    """What fails most, not what is old or unused."""
    kept: list[tuple[str, Any]] = [("a_", (50, 2)), ("b_", (6, 5)), ("c_", (0, 0)), ("d_", (200, 60))]
    assert lifecycle.worst(lived(name, *did) for name, did in kept).selector == "b_"


def test_the_unused_goes_before_the_proved() -> None:
    """Where nothing fails, who was never used goes first; of two of these the first by name."""
    assert lifecycle.worst([lived("a_", 9, 0), lived("c_", 0, 0), lived("b_", 0, 0)]).selector == "b_"


def test_what_was_before_does_not_count() -> None:
    """A revision that was brought back is not the worst for what it did before."""
    assert lifecycle.worst([lived("a_", 30, 20, since=30), lived("b_", 30, 20)]).selector == "b_"
