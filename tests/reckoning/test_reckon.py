"""A reckoning: its line, the rows that it cites, what it leaves out, and what it does not decide."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.reckoning.asking import TODAY, ask, result

from batos.memory.passages import passages
from batos.reckoning.reckon import reckon, reckon_texts
from batos.reckoning.reckonings import Reckoning, write_number
from batos.reckoning.tables import Text

SALES = """date,product,units,price
2026-03-01,Kettle,80,39.50
2026-03-05,Toaster,45,29.90
2026-03-09,Kettle,,39.50
2026-04-02,Kettle,59,"1,039.50"
"""
LONG = "loan,branch,days\n" + "".join(
    f"{each},{'North' if each % 3 else 'Harbour'},{each % 40}\n" for each in range(1, 400)
)


def test_a_sum_is_shown_with_its_rows() -> None:
    """The line has file, column, condition, terms and result, and each row stands where its span says."""
    found = ask("How many units of kettles were sold in total?", SALES, "sales.csv")
    assert isinstance(found, Reckoning)
    assert found.line.startswith(
        "Computed from sales.csv: sum of units where product = Kettle: 80 + 59 = 139 (2 of 4 rows"
    )
    assert [SALES[each.start : each.end] for each in found.rows] == [each.text for each in found.rows]
    assert [each.text for each in found.rows] == ["2026-03-01,Kettle,80,39.50", '2026-04-02,Kettle,59,"1,039.50"']


def test_rows_with_missing_cells_are_told() -> None:
    """A row without a number is not counted as zero, and is named."""
    found = ask("What is the average of units?", SALES)
    assert found is not None
    assert found.result == "61.33"
    assert [each.text for each in found.left_out] == ["2026-03-09,Kettle,,39.50"]
    assert "1 rows left out" in found.line


def test_columns_that_fit_equally_are_named() -> None:
    """A question that could mean two columns has no result and says which they are."""
    found = ask("What is the total?", SALES)
    assert found is not None
    assert found.result == ""
    assert found.ambiguous == ("units", "price")
    assert "units; price" in found.line


def test_a_row_of_totals_is_no_row() -> None:
    """The last row of a table that adds up the others is not added to them."""
    table = "| club | places |\n|---|---|\n| chess | 16 |\n| pottery | 10 |\n| **Total** | 26 |\n"
    assert result("How many places are there in total?", table) == "26"


def test_prices_of_pieces_are_not_added_up() -> None:
    """A sum of unit prices and a sum of prices times pieces are both named."""
    found = ask("What do kettles cost in total?", SALES)
    assert found is not None
    assert found.ambiguous == ("sum of price", "sum of units x price")


@pytest.mark.parametrize(
    "question",
    [
        "How many blenders were sold?",
        "How many kettles were sold in July?",
        "How many kettles will be sold in total?",
        "How many kettles are left in total?",
        "How many more kettles than toasters were sold?",
        "How many kettles were sold, and how many toasters?",
        "What is the total of units per product?",
        "Is the total of units above 100?",
        "What was the total of units in March 2025?",
        "Write a function that sums the units.",
        "Why are there so few units in total?",
        "Units",
        "",
        "How many units " * 100,
    ],
)
def test_what_is_no_sure_computation_gets_none(question: str) -> None:
    """A word that is neither known nor in the table, a future, a comparison or two wishes make it none."""
    assert result(question, SALES, "sales.csv") is None


def test_negation_turns_a_condition() -> None:
    """`Not`, `except` and a column of yes and no give the other rows."""
    assert result("How many units did not come from Kettle?", SALES) == "45"
    assert result("What is the total of units except Toaster?", SALES) == "139"
    paid = "order,paid\nA,yes\nB,no\nC,yes\n"
    assert result("How many orders were not paid?", paid) == "1"


def test_passages_of_a_file_are_one_table() -> None:
    """A table that was cut into passages is computed as a whole, and its spans are those of the file."""
    cut = passages([("loans.csv", "d" * 64, LONG)])
    assert len(cut) > 3
    found = reckon("How many loans were made at the Harbour branch?", cut, TODAY)
    assert found is not None
    assert found.result == "133"
    assert len(found.rows) == 133
    assert all(LONG[each.start : each.end] == each.text for each in found.rows)


def test_a_table_with_a_hole_is_not_computed() -> None:
    """A passage that is missing within a file, or at an edge that the caller names, makes the table unsure."""
    cut = passages([("loans.csv", "d" * 64, LONG)])
    question = "How many loans were made at the Harbour branch?"
    assert reckon(question, [*cut[:1], *cut[2:]], TODAY) is None
    assert reckon(question, cut[:-1], TODAY, partial={"d" * 64}) is None
    assert reckon(question, cut[:-1], TODAY) is not None


def test_two_tables_that_fit_are_named() -> None:
    """Nothing is computed where two files have the same columns, until the question names one."""
    texts = [Text("north.csv", SALES), Text("south.csv", SALES)]
    found = reckon_texts("How many units of kettles were sold?", texts, TODAY)
    assert found is not None
    assert found.result == ""
    assert len(found.ambiguous) == 2
    named = reckon_texts("How many units of kettles were sold in north.csv?", texts, TODAY)
    assert named is not None
    assert named.result == "139"


def test_numbers_are_written_as_the_language_writes_them() -> None:
    """Thousands and decimals have the marks of the question's language."""
    found = result("Wie hoch ist die Summe der Preise?", "artikel;preis\nA;12.000,50\nB;1,25\n")
    assert found == "12.001,75"
    assert write_number(Decimal("12001.75"), "French") == "12 001,75"


def rows_of(values: list[tuple[str, int]]) -> str:
    """Return a table of names and numbers."""
    return "name,points\n" + "".join(f"{name},{points}\n" for name, points in values)


GROUPS = st.lists(st.tuples(st.sampled_from(["Ada", "Bo", "Cy"]), st.integers(2, 999)), min_size=3, max_size=12)


@given(GROUPS, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_rows_changes_no_sum(values: list[tuple[str, int]], random: Random) -> None:
    """A sum is the same however the rows stand."""
    mixed = list(values)
    random.shuffle(mixed)
    question = "What is the total of points?"
    assert result(question, rows_of(mixed)) == result(question, rows_of(values)) == f"{sum(p for _, p in values)}"


@given(GROUPS, st.integers(2, 999))
@settings(deadline=None)
def test_a_row_of_another_group_changes_no_filtered_sum(values: list[tuple[str, int]], more: int) -> None:
    """A condition keeps out what does not meet it."""
    values = [("Ada", 5), *values]
    expected = sum(points for name, points in values if name == "Ada")
    question = "What is the total of points of Ada?"
    for each in (values, [*values, ("Dora", more)]):
        assert result(question, rows_of(each)) == f"{expected}"


@given(st.lists(st.integers(100_000, 99_999_999), min_size=2, max_size=8))
@settings(deadline=None)
def test_a_table_tells_its_notation(cents: list[int]) -> None:
    """1,234.5, 1.234,5 and 1 234,5 are one number where a table has them throughout."""
    question = "What is the total amount?"
    found = set()
    for thousands, decimal in ((",", "."), (".", ","), (" ", ",")):
        written = [
            f"{each / 100:,.2f}".replace(",", "\0").replace(".", decimal).replace("\0", thousands) for each in cents
        ]
        found.add(result(question, "name;amount\n" + "".join(f"n{at};{each}\n" for at, each in enumerate(written))))
    assert len(found) == 1
    assert None not in found


@given(
    st.text('ab,;:|-#. \n\t"1289%€年月日（' + "水", max_size=300),
    st.sampled_from(["How many a?", "总共多少?", "Total of b"]),
)
@settings(deadline=None)
def test_any_text_is_read(text: str, question: str) -> None:
    """No text makes reading fail, and each span that is given stands in the text."""
    found = ask(question, text)
    assert found is None or all(text[each.start : each.end] == each.text for each in found.rows)


HOSTILE = {
    "a,b,c\n": "How many units in total?",
    "x,x,y\nx,y\n": "How many units in total?",
    "|a|b|\n|-|-|\n": "How many units in total?",
    "-|": "How many units in total?",
    "a  b  c  d\n": "How many units in total?",
    "- Kettle: 80 units, 39.50 euro\n": "How many units in total?",
    "1. a 1\n": "How many units in total?",
    "# a - 2026-01-01\n": "How many units in total?",
    '"a,b\n': "How many units in total?",
    "handover\n": "How many days until the handover?",
    "The handover is on 11 May 2026 and the handover.\n": "How many days until the handover?",
    "The report is sent two days before the end.\n": "When is the report sent?",
    "The end is on 4 May, two days later ": "When is the end?",
    "水，80台": "水总共多少台?",
}


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_grows_with_the_length(piece: str) -> None:
    """The time grows with the length of a text and not with its square, whatever the text repeats."""
    assert growth(lambda count: ask(HOSTILE[piece], piece * (count // len(piece))), 20_000) < MOST


def test_numbered_rows_are_named_by_their_numbers() -> None:
    """`Positions 2 and 3` are the rows whose first column has these numbers; one that is not there gets nothing."""
    bill = "Pos  Leistung  Betrag\n1    Gerüst    980,00 EUR\n2    Ziegel    1.247,00 EUR\n3    Bahn      946,00 EUR\n"
    assert result("Wie hoch ist die Summe der Beträge der Positionen 2 und 3?", bill) == "2193,00 EUR"
    assert result("Wie hoch ist die Summe der Beträge der Positionen 2 und 9?", bill) is None
