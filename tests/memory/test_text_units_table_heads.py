"""What stands above the rows of a table: it travels with every part of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.search.test_chunk_search_nearness import found
from tests.memory.test_document_store import incoming

from batos.memory.text_units import LONGEST_HEAD, TableHeads

PIPES = "In crowns:\n\n| village | deficit |\n|---|---|\n| Elm | 5 |\n| Ash | 7 |"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (PIPES, "In crowns:\n| village | deficit |"),
        ("# Villages\n\n| village | deficit |\n|---|---|\n| Elm | 5 |", "| village | deficit |"),
        ("|  | 2024 |\n| village | deficit |\n|---|---|\n| Elm | 5 |", "|  | 2024 |\n| village | deficit |"),
        ("village,deficit\nElm,5\nAsh,7", "village,deficit"),
        ('village,deficit\n"Elm, upper",5\nAsh,7', "village,deficit"),
        ("Dorf;Holz\n;(kg)\nUlm;5\nEsch;7", "Dorf;Holz\n;(kg)"),
        ("village\tdeficit\nElm\t5\nAsh\t7", "village\tdeficit"),
        ("village   wells   deficit\nElm       2       5\nAsh       3       7", "village   wells   deficit"),
    ],
)
def test_a_row_has_its_names_and_its_caption(text: str, head: str) -> None:
    """The first row and the last; the head itself has none, and nothing has one behind the table."""
    tables = TableHeads(f"{text}\n\nThe end.")
    assert tables.above(len(text) - 1) == head
    assert tables.above(text.index("Ulm" if "Ulm" in text else "Elm")) == head
    assert tables.above(text.index(head.rpartition("\n")[2])) == ""
    assert tables.above(len(text) + 3) == ""


@pytest.mark.parametrize(
    "text",
    [
        "We came home, late,\nwith wet shoes, hungry,\nand the dog, asleep.",
        "12,30\n13,31\n14,32",
        "Anna: yes, please\nBob: no, thanks\nCy: why, though",
        "- milk\n- bread\n- eggs",
        "",
    ],
)
def test_lines_that_are_no_table_have_no_head(text: str) -> None:
    """Prose, figures without names, a chat and a list."""
    tables = TableHeads(text)
    assert {tables.above(place) for place in range(len(text) + 1)} == {""}


@given(text=st.text(st.sampled_from('ab1 ,;|\t\n"-.:#é')), place=st.integers(0, 200))
def test_whatever_the_text_a_head_stands_above_its_place(text: str, place: int) -> None:
    """Each of its lines is one of the text that ends before the place."""
    head = TableHeads(text).above(place)
    before = [line.strip() for line in text[:place].split("\n")]
    assert len(head) <= LONGEST_HEAD
    assert all(line in before for line in head.split("\n") if head)


def rows(form: str) -> list[str]:
    """Lines of a hundred villages in a form of two, three and four."""
    return [form.format(f"Kelby-{n}", n % 7, 200 + n) for n in range(100)]


@pytest.mark.parametrize(
    ("above", "form"),
    [
        ("All sums are in thousands of crowns.\n\n| village | wells | deficit |\n|---|---|---|", "| {} | {} | {} |"),
        ("village,wells,deficit", "{},{},{}"),
        ("village\twells\tdeficit", "{}\t{}\t{}"),
        ("village      wells     deficit", "{}      {}     {}"),
    ],
)
@pytest.mark.parametrize("number", [11, 61, 99])
async def test_each_row_of_a_long_table_is_found_by_its_columns(above: str, form: str, number: int) -> None:
    """The best part has the row, and the names of the columns with it."""
    text = "\n".join((above, *rows(form)))
    best = (await found(f"What is the deficit of Kelby-{number}?", incoming(text, "/home/ann/villages.txt")))[0]
    assert rows(form)[number] in best.text.split("\n")
    assert "deficit" in best.text or "deficit" in best.head
    assert not best.is_perhaps
