"""The modules that the cell brings give what those of CPython give."""

from __future__ import annotations

import heapq
import statistics
import string
import textwrap
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cell.hosting import result

from batos.cell.cell import Cell
from batos.cell.library import heapq as our_heapq
from batos.cell.library import statistics as our_statistics
from batos.cell.library import string as our_string
from batos.cell.library import textwrap as our_textwrap
from batos.cell.program import served_names

NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1000, 1000, allow_nan=False), min_size=2, max_size=12)
MODULES: dict[str, tuple[ModuleType, ModuleType]] = {
    "heapq": (our_heapq, heapq),
    "statistics": (our_statistics, statistics),
    "string": (our_string, string),
    "textwrap": (our_textwrap, textwrap),
}


def test_every_name_is_one_of_cpythons() -> None:
    """Nothing is invented."""
    assert served_names().keys() == MODULES.keys()
    for name, (_, theirs) in MODULES.items():
        assert served_names()[name] <= set(dir(theirs))


@given(NUMBERS)
def test_statistics_are_those_of_cpython(data: list[float]) -> None:
    """Of any numbers, as far as floats go."""
    for name in (
        "mean",
        "fmean",
        "median",
        "median_low",
        "median_high",
        "variance",
        "pvariance",
        "stdev",
        "pstdev",
        "quantiles",
    ):
        ours, theirs = getattr(our_statistics, name)(data), getattr(statistics, name)(data)
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert our_statistics.multimode(data) == statistics.multimode(data)
    assert our_statistics.quantiles(data, n=5, method="inclusive") == pytest.approx(
        statistics.quantiles(data, n=5, method="inclusive")
    )


def test_the_mean_of_ints_is_an_int_when_it_is_whole() -> None:
    """As in CPython; and what is empty is an error of the same kind."""
    assert repr(our_statistics.mean([1, 3, 5, 7])) == repr(statistics.mean([1, 3, 5, 7])) == "4"
    for name in ("mean", "median", "stdev", "mode"):
        with pytest.raises(ValueError, match="data"):
            getattr(our_statistics, name)([])


@given(st.lists(st.decimals("0.01", 10**6, places=2), min_size=1, max_size=9))
def test_the_middle_of_decimals_is_a_decimal(data: list[Decimal]) -> None:
    """Money is not added as floats."""
    for name in ("mean", "median"):
        ours, theirs = getattr(our_statistics, name)(data), getattr(statistics, name)(data)
        assert isinstance(ours, Decimal)
        assert ours == theirs


@given(st.text("ab -\n", max_size=60), st.integers(4, 20))
def test_wrapping_keeps_to_the_width_and_loses_no_word(text: str, width: int) -> None:
    """Whatever the text; and for words without hyphens the lines are CPython's."""
    lines = our_textwrap.wrap(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    simple = " ".join(text.replace("-", " ").split())
    assert our_textwrap.wrap(simple, width) == textwrap.wrap(simple, width)


@given(st.text(" \tab\n", max_size=40))
def test_indenting_is_that_of_cpython(text: str) -> None:
    """Dedenting, indenting and shortening."""
    assert our_textwrap.indent(text, "> ") == textwrap.indent(text, "> ")
    assert our_textwrap.shorten(text, 12) == textwrap.shorten(text, 12)
    spaces = text.replace("\t", " ")
    assert our_textwrap.dedent(spaces) == textwrap.dedent(spaces)


@given(st.lists(st.integers(-50, 50), max_size=20), st.integers(-50, 50))
def test_heaps_are_laid_out_as_those_of_cpython(data: list[int], item: int) -> None:
    """A heap in a slot is the same list, whoever pushed to it."""
    ours, theirs = list(data), list(data)
    our_heapq.heapify(ours)
    heapq.heapify(theirs)
    assert ours == theirs
    our_heapq.heappush(ours, item)
    heapq.heappush(theirs, item)
    assert our_heapq.heappop(ours) == heapq.heappop(theirs)
    assert ours == theirs
    assert our_heapq.nsmallest(3, data) == heapq.nsmallest(3, data)


async def test_the_modules_run_in_a_worker(cell: Cell) -> None:
    """They are Python that the interpreter knows, function by function."""
    numbers = [n * 37 % 50 + 1 for n in range(20)]
    calls = {
        **{
            f"statistics.{name}(data)": None
            for name in served_names()["statistics"]
            if name not in ("StatisticsError", "correlation", "linear_regression")
        },
        "statistics.correlation(data, data[::-1])": None,
        "statistics.linear_regression(data, data[::-1])": None,
        "textwrap.wrap('one two three-four fivesixseven', 7)": None,
        "textwrap.fill('one two', width=4)": None,
        "textwrap.shorten('one two three', 9)": None,
        "textwrap.indent('a\\n\\nb', '- ')": None,
        "textwrap.dedent('  a\\n    b')": None,
        "string.ascii_letters + string.digits": None,
        "string.capwords('one two')": None,
        "heapq.nlargest(3, data)": None,
        "list(heapq.merge([1, 3], [2]))": None,
    }
    body = "\n    ".join(f"found.append({call})" for call in calls)
    head = "import heapq, statistics, string, textwrap\ndef give(self, data):\n    found = []\n"
    source = f"{head}    {body}\n    return found"
    found = await result(cell, source, numbers)
    names: dict[str, Any] = {"data": numbers, **{name: theirs for name, (_, theirs) in MODULES.items()}}
    for call, ours in zip(calls, found, strict=True):
        expected = eval(call, names)  # the calls above
        assert ours == pytest.approx(list(expected) if isinstance(expected, tuple) else expected), call
