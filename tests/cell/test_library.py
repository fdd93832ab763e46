"""The modules that the cell brings give what those of CPython give."""

from __future__ import annotations

import decimal
import heapq
import statistics
import string
import textwrap
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cell.hosting import result

from batos.cell.cell import Cell
from batos.cell.library import decimal as our_decimal
from batos.cell.library import decimal_forms
from batos.cell.library import heapq as our_heapq
from batos.cell.library import statistics as our_statistics
from batos.cell.library import string as our_string
from batos.cell.library import textwrap as our_textwrap
from batos.cell.library.reading import served_names

NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1000, 1000, allow_nan=False), min_size=2, max_size=12)
MODULES: dict[str, tuple[ModuleType, ModuleType]] = {
    "decimal": (our_decimal, decimal),
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


WRITTEN = st.decimals(
    allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9
) | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40).filter(
    lambda each: each != 0 and -60 < each.adjusted() < 60
)
ROUNDINGS = [name for name in dir(our_decimal) if name.startswith("ROUND_")]


def told(work: Any) -> str:
    """A number as text, or the kind of failure."""
    try:
        found = str(work())
    except ArithmeticError:
        return "no number"
    return "no number" if found in ("Infinity", "-Infinity", "NaN") else found


def _power(base: Any, power: int) -> Any:
    """A power, rounded once: CPython's own of a negative exponent is off by one in the last digit now and then."""
    if power >= 0 or not isinstance(base, decimal.Decimal):
        return base**power
    with decimal.localcontext() as exact:
        exact.prec = 200
        found = base**power
    return +found


@example(decimal.Decimal("0.0345"), decimal.Decimal(0), -2)
@given(WRITTEN, WRITTEN, st.integers(-5, 5))
def test_decimals_are_those_of_cpython(one: decimal.Decimal, other: decimal.Decimal, power: int) -> None:
    """Each sum, product, quotient and power of two numbers, and what is read from them, digit for digit."""
    left, right = our_decimal.Decimal(str(one)), our_decimal.Decimal(str(other))
    assert str(left) == str(one)
    both = [(left, right, left), (one, other, one)]
    with decimal.localcontext(decimal.Context(traps=[decimal.InvalidOperation, decimal.DivisionByZero])):
        for work in (
            lambda a, b, c: a + b,
            lambda a, b, c: a - b,
            lambda a, b, c: a * b,
            lambda a, b, c: a / b,
            lambda a, b, c: _power(a, power),
            lambda a, b, c: -c,
            lambda a, b, c: abs(c),
            lambda a, b, c: c.normalize(),
            lambda a, b, c: int(c),
            lambda a, b, c: float(c),
            lambda a, b, c: c.copy_abs().sqrt(),
            lambda a, b, c: a == b,
            lambda a, b, c: 3 - c,
            lambda a, b, c: 7 * c,
        ):
            ours, theirs = (told(lambda given=given, work=work: work(*given)) for given in both)
            assert ours.replace("-0", "0") == theirs.replace("-0", "0"), (one, other)
    for op, theirs_too in (("<", one < other), ("<=", one <= other), (">", one > other), (">=", one >= other)):
        assert decimal_forms._compare(left, op, right) == theirs_too


@given(WRITTEN, st.sampled_from(ROUNDINGS), st.integers(-3, 6))
def test_decimals_are_rounded_and_shown_as_cpython_does(one: decimal.Decimal, rounding: str, places: int) -> None:
    """To so many places, either way of each rounding; and as text with signs, commas and widths."""
    ours, unit = our_decimal.Decimal(str(one)), f"1e{-places}"
    found = told(lambda: ours.quantize(our_decimal.Decimal(unit), rounding=rounding))
    wanted = told(lambda: one.quantize(decimal.Decimal(unit), rounding=rounding))
    assert found.lstrip("-") == wanted.lstrip("-")
    for spec in (".2f", ",.2f", "+.1f", "012.3f", ">14.2f", "*^20.2f", ".0%"):
        if abs(one) >= 1:
            assert decimal_forms._format(ours, spec) == format(one, spec)


@given(st.lists(WRITTEN, max_size=9), st.booleans())
def test_decimals_are_ordered_as_cpython_does(given: list[decimal.Decimal], backwards: bool) -> None:
    """Sorted, stable, also within tuples; the least and the greatest."""
    pairs = [(our_decimal.Decimal(str(each)), index) for index, each in enumerate(given)]
    theirs = sorted(((each, index) for index, each in enumerate(given)), reverse=backwards)
    assert [index for _, index in decimal_forms._sort(pairs, reverse=backwards)] == [index for _, index in theirs]
    if given:
        numbers = [each for each, _ in pairs]
        assert str(decimal_forms._least(numbers)) == str(min(given))
        assert str(decimal_forms._greatest(*numbers, numbers[0])) == str(max(*given, given[0]))
