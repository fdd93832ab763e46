"""Requests, options and the watch over runaway answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.errors import Runaway
from batos.inference.ollama.chat import (
    COUNTED_NUMBERS,
    COUNTED_SENTENCES,
    LOOP_LONGEST,
    LOOP_TIMES,
    LOOP_TOKENS,
    SAME_TOKEN_LIMIT,
    SCHEMA_BLANK_LIMIT,
    TEXT_BLANK_LIMIT,
    AnswerDraft,
    blanks_beyond,
    counts_on,
    default_cpu_threads,
    runaway_in,
    runner_key,
)


def _feed(pieces: list[str], *, structured: bool = False) -> AnswerDraft:
    draft = AnswerDraft(structured=structured)
    for piece in pieces:
        draft.take(piece)
    return draft


def test_the_grammars_own_blanks_are_no_runaway() -> None:
    """Two newlines and twenty blanks, twice beside each other, are what a schema's grammar permits."""
    gap = ["\n", "\n", *[" "] * 20]
    draft = _feed(["[", *gap, *gap, "]"], structured=True)
    assert draft.wasted == 44


@pytest.mark.parametrize(("structured", "limit"), [(True, SCHEMA_BLANK_LIMIT), (False, TEXT_BLANK_LIMIT)])
def test_blanks_beyond_the_limit_are(structured: bool, limit: int) -> None:
    """One character more than the limit ends the answer."""
    _feed(["x", "\n" * limit], structured=structured)
    with pytest.raises(Runaway, match="blanks"):
        _feed(["x", "\n" * limit, " "], structured=structured)


def test_equal_tokens_are_counted_in_a_row() -> None:
    """Thirty are permitted, as the daemon permits them; another token in between begins anew."""
    _feed(["so"] * SAME_TOKEN_LIMIT)
    _feed([*["so"] * SAME_TOKEN_LIMIT, ".", *["so"] * SAME_TOKEN_LIMIT])
    with pytest.raises(Runaway) as runaway:
        _feed(["so"] * (SAME_TOKEN_LIMIT + 1))
    assert (runaway.value.kind, runaway.value.wasted) == ("one token", 31)


@pytest.mark.parametrize("unit", [["1", "."], ["The", " lamp", "."], [str(part) for part in range(LOOP_LONGEST)]])
def test_a_loop_of_several_tokens_is_stopped(unit: list[str]) -> None:
    """Two tokens or some more, over and over: known within the tokens of a few sentences, wherever it begins."""
    whole = max(LOOP_TOKENS, LOOP_TIMES * len(unit))
    with pytest.raises(Runaway, match="a few tokens") as runaway:
        _feed(["It", " was", " said:", *unit * (2 * whole // len(unit))])
    assert runaway.value.kind == "a few tokens"
    _feed(["It", " was", " said:", *unit * ((whole - 1) // len(unit))])


def test_a_list_that_goes_on_is_no_loop() -> None:
    """The same tokens with something new between them, however long."""
    _feed([piece for number in range(500) for piece in ("- part ", f"{number * number:b}", "\n")])


def _pieces(text: str) -> list[str]:
    """Cut a text as tokenizers do: words with the blank before them, numbers by up to three digits."""
    return re.findall(r" ?[^\W\d]+|[0-9]{1,3}|\s+|.", text, re.DOTALL)


#: What models write without end: a line for a number, in which nothing else changes.
ENDLESS = (
    "{0}. The lamp is lit at dusk and trimmed by its keeper.\n",
    "{0}. **Step**: Repeat.\n",
    "| {0} | lamp | {1} |\n",
    "{0}, ",
    "Line {0} of {1}: the same as line {2}, and so on for every line that comes after it.\n",
)


@pytest.mark.parametrize("row", ENDLESS)
def test_rows_that_only_count_on_are_stopped(row: str) -> None:
    """Their words are the same, and each of their numbers goes on by the same step."""
    text = "A list:\n" + "".join(row.format(number, 2 * number + 7, number - 1) for number in range(1, 2000))
    with pytest.raises(Runaway, match="next number") as runaway:
        _feed(_pieces(text))
    assert runaway.value.wasted < 4_000
    assert runaway_in(text, structured=False, ended=False) == "a row with the next number"
    assert runaway_in(text, structured=False, ended=True) == ""


#: What people ask for: long, alike, and none of it without end.
HONEST = {
    "rows for a test": [
        f'{{"id": {n}, "name": "User {n}", "email": "user{n}@example.com", "active": true}},\n' for n in range(1, 61)
    ],
    "numbers to five hundred": [f"{n}, " for n in range(1, 501)],
    "seats": [f"Seat {n}\n" for n in range(1, 121)],
    "a table of squares": [f"| {n} | {n * n} |\n" for n in range(1, 900)],
    "a table of measurements": [f"2026-01-{n % 28 + 1:02d},{n * 7919 % 97}.{n * 31 % 10},ok\n" for n in range(900)],
    "a list of words": [f"{n}. {''.join(chr(97 + (n * k) % 26) for k in (3, 5, 7, 11))}\n" for n in range(600)],
    "an empty form": ["| ______ | ______ | ______ | ______ |\n"] * 10,
    "code": [f"    case {n}:\n        return {n * n % 251};\n" for n in range(256)],
    "a refrain": [f"Verse {n}\n" + "Row, row, row your boat, gently down the stream.\n" * 4 for n in range(11)],
}


@pytest.mark.parametrize("name", HONEST)
def test_long_answers_that_are_alike_are_honest(name: str) -> None:
    """Tables, lists, code, forms and songs come to their end."""
    text = "".join(HONEST[name])
    assert "".join(_feed(_pieces(text)).content) == text


@given(
    words=st.lists(st.text("abcdef ghij-.|", min_size=1, max_size=8), min_size=1, max_size=2),
    starts=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    steps=st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(lambda steps: any(steps[:1])),
    noise=st.integers(0, 600),
)
def test_one_new_thing_among_them_makes_rows_honest(
    words: list[str], starts: list[int], steps: list[int], noise: int
) -> None:
    """Rows of any form that count on are known; one that breaks the order among the last of them, and they are not."""
    rows = [
        "".join(f"{word}{start + step * row}" for word, start, step in zip(words, starts, steps, strict=False)) + "\n"
        for row in range(COUNTED_NUMBERS + 2)
    ]
    assert counts_on("".join(rows))
    near = COUNTED_NUMBERS + 1 - noise % (COUNTED_SENTENCES - 4)
    assert not counts_on("".join([*rows[:near], "other\n", *rows[near:]]))


def test_thinking_may_run_away_too() -> None:
    """The watch is over what a model thinks as well."""
    draft = AnswerDraft(structured=False)
    for _ in range(SAME_TOKEN_LIMIT):
        draft.ponder("hm")
    with pytest.raises(Runaway):
        draft.ponder("hm")


@pytest.mark.parametrize(
    ("text", "structured", "ended", "kind"),
    [
        ("a sentence.", False, True, ""),
        ("-" * 200, False, True, ""),
        ("-" * 200, False, False, "one token"),
        ("fine so" + " so" * 31, False, False, "one token"),
        ("{" + "\n" * 65, True, False, "blanks"),
        ("x" + " " * 65 + "y", False, True, ""),
        ("x" + " " * 257 + "y", False, True, "blanks"),
        ("", False, False, ""),
        (" \n" * 31, True, False, "blanks"),
    ],
)
def test_runaway_in_whole_texts(text: str, structured: bool, ended: bool, kind: str) -> None:
    """Blanks count anywhere; a repeated end counts only where the model did not stop by itself."""
    assert runaway_in(text, structured=structured, ended=ended) == kind


@given(st.lists(st.sampled_from(["x", " ", "  ", "\n\u2003\t", " " * 9, "yy"])).map("".join), st.integers(1, 12))
def test_blanks_are_found_wherever_they_begin(text: str, limit: int) -> None:
    """More than the limit in a row, of any kind, and not one fewer."""
    assert blanks_beyond(text, limit) == bool(re.search(rf"\s{{{limit + 1}}}", text))


@given(pieces=st.lists(st.sampled_from(["a", "b", " ", "\n", "word"]), max_size=200))
def test_a_stream_that_passes_is_kept_whole(pieces: list[str]) -> None:
    """No piece is lost or changed on the way."""
    try:
        draft = _feed(pieces)
    except Runaway:
        return
    assert draft.content == pieces


def test_what_makes_the_daemon_reload() -> None:
    """Model, window and threads are of the key; temperature is not."""
    one = runner_key("m", {"num_ctx": 512, "temperature": 0})
    assert one == runner_key("m", {"num_ctx": 512, "temperature": 1, "seed": 3})
    assert one != runner_key("m", {"num_ctx": 1024})
    assert one != runner_key("n", {"num_ctx": 512})
    assert default_cpu_threads() >= 1
