"""Markdown on a terminal: the same whatever the pieces, no text lost, and nothing but marks that have an end styled."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.terminal.layout import CODE, OFF, STRONG, Markdown, paint, style

MARKDOWN = st.lists(
    st.sampled_from(["**", "*", "`", "```", "# ", "###### ", "#", "| a |", "\n", " ", "lamp", "a", "-", "7", "."])
    | st.text(max_size=3),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a **tide table** of `lamp.txt`", f"a {STRONG}tide table{OFF} of {CODE}`lamp.txt`{OFF}"),
        ("## The **north** pier\nIt broke.", f"{STRONG}The north pier{OFF}\nIt broke."),
        ("* **Pier**: broken", f"* {STRONG}Pier{OFF}: broken"),
        ("`a**b**c`", f"{CODE}`a**b**c`{OFF}"),
        ("2**3 is 8, 2*3 is 6", "2**3 is 8, 2*3 is 6"),
        ("pass **kwargs on", "pass **kwargs on"),
        ("** not strong **", "** not strong **"),
        ("***both***", "***both***"),
        ("#no heading, ####### none", "#no heading, ####### none"),
        (
            "```sh\n# a comment with **stars**\n```\n**after**",
            f"```sh\n# a comment with **stars**\n```\n{STRONG}after{OFF}",
        ),
        ("| **a** | `b` |", "| **a** | `b` |"),
        ("an open ` mark\nand **another", "an open ` mark\nand **another"),
        ("**" + "long " * 60 + "**", "**" + "long " * 60 + "**"),
        ("##", "##"),
        ("", ""),
    ],
)
def test_marks_with_an_end_become_styles(text: str, shown: str) -> None:
    """Headings, strong words and code; what only looks like a mark stands as it was written."""
    assert style(text) == shown


@given(text=MARKDOWN, cuts=st.lists(st.integers(1, 6), max_size=60))
def test_the_pieces_change_nothing(text: str, cuts: list[int]) -> None:
    """An answer that grows looks as it does when it is written whole."""
    places = [0, *(min(len(text), each) for each in accumulate(cuts)), len(text)]
    markdown = Markdown()
    grown = "".join(markdown.feed(text[start:end]) for start, end in pairwise(places))
    assert grown + markdown.end() == style(text)


@given(text=MARKDOWN)
def test_no_text_is_lost(text: str) -> None:
    """The same signs stand there in the same order, but for the marks of headings and strong words."""
    shown = style(text)
    assert re.sub(f"[#* {STRONG}{CODE}{OFF}]", "", shown) == re.sub("[#* ]", "", text)


@given(text=MARKDOWN)
def test_a_style_ends_on_its_line(text: str) -> None:
    """What follows a line is never coloured by it."""
    for line in style(text).split("\n"):
        begun = [each for each in line if each in STRONG + CODE + OFF]
        assert not begun or begun[-1] == OFF
        assert paint(line).count("\x1b[0m") == line.count(OFF)
