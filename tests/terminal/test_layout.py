"""Layout: nothing hides in text, lines break between words whatever the pieces, tables are as wide as the terminal."""

from __future__ import annotations

import io
import json
import unicodedata
from contextlib import redirect_stdout

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batos.terminal.layout import Flow, cells, columns, cut, escape, lay_out, plain, reveal, table, wrap

#: What changes the direction of text, what has no width, and what tags the sign before it.
BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
UNSEEN = "\u00ad\u200b\u2028\u2060\u2063\ufeff\U000e0001\U000e0041\U000e007f\U000e0100"
TEXT = st.text() | st.text(st.sampled_from(f"ab \n\t\r\x00\x07\x1b[31m\x7f\x85\x9b\u200d{BIDI}{UNSEEN}"))
PROSE = st.text(st.sampled_from("ab  -1.\n|`潮汐e\u0301\U0001f44d")) | st.text(max_size=60)


@given(text=TEXT)
@example("\x1b]0;title\x07\x1b[2J\x9b31m")
def test_plain_text_hides_nothing(text: str) -> None:
    """No control but newline and tab is left, no sign of direction, no sign without a width but a single joiner."""
    shown = plain(text)
    assert not [each for each in shown if unicodedata.category(each) == "Cc" and each not in "\n\t"]
    assert not set(shown) & set(BIDI + UNSEEN)
    assert "\u200d\u200d" not in shown
    assert plain(shown) == shown


@given(text=st.text(st.characters(categories=["L", "N", "P", "Zs", "Sm", "Sc", "Mn"], max_codepoint=0x10FF)))
def test_plain_text_keeps_what_is_seen(text: str) -> None:
    """Letters, digits, signs and accents of scripts stay as they are."""
    seen = text.replace("\u034f", "")
    assert plain(seen) == seen


def test_what_hides_is_named_for_who_looks_for_it() -> None:
    """A prompt shows which signs were in it; a document has them as escapes and says the same."""
    hidden = "pay\u200b him\U000e0041\x1b"
    assert reveal(hidden) == "pay<U+200B> him<U+E0041><U+001B>"
    assert plain(reveal(hidden)) == reveal(hidden)
    document = escape(json.dumps(hidden, ensure_ascii=False))
    assert document.isascii()
    assert json.loads(document) == hidden


@given(text=PROSE, at=st.integers(0, 60), width=st.integers(20, 60))
@example("x" * 18 + " 潮汐 - y", 19, 20)
def test_pieces_become_the_same_lines(text: str, at: int, width: int) -> None:
    """A text in two pieces is laid as the whole is, and no word is lost, changed or broken."""
    flow = Flow(width)
    assert flow.feed(text[:at]) + flow.feed(text[at:]) + flow.end() == lay_out(text, width)
    assert "".join(lay_out(text, width).split()) == "".join(text.split())


@given(
    words=st.lists(st.text(st.sampled_from("abc潮"), min_size=1, max_size=9), max_size=40), width=st.integers(20, 60)
)
def test_no_line_is_wider_than_the_terminal(words: list[str], width: int) -> None:
    """Lines of words that fit are as wide as the terminal at most, wide letters counted as two columns."""
    assert max(map(cells, lay_out(" ".join(words), width).split("\n"))) <= width


def test_points_and_labels_hang() -> None:
    """The further lines of a point, a footnote or a labelled line begin under its words; code and tables stay."""
    assert lay_out("- one two three four five", 20) == "- one two three four\n  five"
    assert lay_out("[1] one two three four", 20) == "[1] one two three\n    four"
    assert lay_out("route    one two three", 20) == "route    one two\n         three"
    assert lay_out("    one two three four", 20) == "    one two three\n    four"
    row = "usable  6.50 GiB  a card of 8 GiB less one"
    assert lay_out(row, 30) == "usable  6.50 GiB  a card of 8\n                  GiB less one"
    assert lay_out("One ended.  Two three four", 20) == "One ended.  Two\nthree four"
    code = "```\none two three four five six\n```\n| one | two | three | four |"
    assert lay_out(code, 20) == code
    assert lay_out("one two three four five", None) == "one two three four five"


def test_a_table() -> None:
    """Columns are as wide as their longest cell, no cell has a second line, no line ends in blanks."""
    shown = table([["m-1", "done", "Why\nnot?"], ["m-22", "failed", ""]], ("mission", "status", "question"))
    assert shown == "mission  status  question\nm-1      done    Why not?\nm-22     failed"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest cells are shortened and say so; elsewhere every cell is whole."""
    rows = [["m-1", "潮" * 30, "word " * 20], ["m-2", "short", "x"]]
    assert "word word" in table(rows, ("mission", "tide", "question"))
    monkeypatch.setenv("COLUMNS", "50")
    with redirect_stdout(Terminal()):
        lines = table(rows, ("mission", "tide", "question")).split("\n")
    assert max(map(cells, lines)) <= 50
    assert lines[1].endswith("…")
    assert [cells(line[: line.index("x")]) for line in lines if line.endswith("x")] == [
        cells(lines[0][: lines[0].index("question")])
    ]


def test_a_narrow_table_drops_what_is_empty_and_keeps_the_ends_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column without a cell goes, a name loses its middle: what tells it from others is at its end."""
    rows = [["brick_prototype_obj.guide_facet_", "active", ""], ["brick_prototype_obj.tamland_facet_", "off", ""]]
    monkeypatch.setenv("COLUMNS", "34")
    with redirect_stdout(Terminal()):
        lines = table(rows, ("method", "state", "why")).split("\n")
    assert lines[0].split() == ["method", "state"]
    assert [line.split()[0][-9:] for line in lines[1:]] == ["de_facet_", "nd_facet_"]
    assert "…" in lines[1]
    assert max(map(cells, lines)) <= 34


def test_columns_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is no terminal has none; COLUMNS says it where it is a number."""
    monkeypatch.setenv("COLUMNS", "50")
    assert [columns(io.StringIO()), columns(None), columns(Terminal())] == [None, None, 50]
    monkeypatch.setenv("COLUMNS", "many")
    assert (columns(Terminal()) or 0) > 0


def test_cut() -> None:
    """What has room is whole; what has not ends in a sign, in as many columns as there are."""
    assert cut("tide", 4) == "tide"
    assert cells(cut("潮汐潮汐", 5)) <= 5
    assert cut("a tide", 3) == "a…"


def test_wrapped_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are at most as wide as the terminal, never under 40 or over 100, and empty lines stay."""
    text = ("word " * 60).strip() + "\n\nend"
    for wide, widest in (("10", 40), ("60", 60), ("500", 100)):
        monkeypatch.setenv("COLUMNS", wide)
        lines = wrap(text, "> ").split("\n")
        assert widest - 5 <= max(map(len, lines)) <= widest
        assert lines[-2:] == ["", "> end"]
        assert all(line.startswith("> ") for line in lines if line)
