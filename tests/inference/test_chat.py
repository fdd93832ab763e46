"""Requests, options and the watch over runaway answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.errors import Runaway
from batos.inference.chat import (
    LOOP_LONGEST,
    LOOP_TIMES,
    LOOP_TOKENS,
    SAME_TOKEN_LIMIT,
    SCHEMA_BLANK_LIMIT,
    TEXT_BLANK_LIMIT,
    Draft,
    blanks_beyond,
    default_cpu_threads,
    runaway_in,
    runner_key,
)


def _feed(pieces: list[str], *, structured: bool = False) -> Draft:
    draft = Draft(structured=structured)
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
    _feed([piece for number in range(500) for piece in ("- part ", str(number), "\n")])


def test_thinking_may_run_away_too() -> None:
    """The watch is over what a model thinks as well."""
    draft = Draft(structured=False)
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
