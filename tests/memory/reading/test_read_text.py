"""Texts on their way from the process that reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.memory.reading.read_text import (
    PHRASES,
    TITLE,
    ReadText,
    UnreadPart,
    as_line,
    clean,
    digest_of,
    from_line,
    moment_of,
    one_line,
)

WORDS = st.text(max_size=30)


@given(text=WORDS, title=WORDS, place=WORDS, turn=st.booleans())
def test_a_text_comes_as_it_went(text: str, title: str, place: str, turn: bool) -> None:
    """A line holds all of it, whatever characters it has."""
    read = ReadText(
        text, title, place=place, kind="turn" if turn else "document", speaker=title, left_out=(one_line(title),)
    )
    line = as_line(read)
    assert line.count(b"\n") == 1
    assert from_line(line) == read


def test_phrases_on_what_is_left_out_are_bounded() -> None:
    """Each is a line, and those beyond the most are counted."""
    left_out = tuple(f"page\n{number}" for number in range(PHRASES + 3))
    found = from_line(as_line(ReadText("a", left_out=left_out)))
    assert isinstance(found, ReadText)
    assert found.left_out == (*(f"page {number}" for number in range(PHRASES - 1)), "4 other parts")


def test_a_reason_comes_as_it_went() -> None:
    """Places that could not be read come with their reason."""
    assert from_line(as_line(UnreadPart("3", "it is empty"))) == UnreadPart("3", "it is empty")


@given(line=st.binary(max_size=60))
def test_a_line_of_a_process_that_went_mad_is_none(line: bytes) -> None:
    """Whatever a process writes that a file took over, it is no error here."""
    from_line(line)
    from_line(b'{"text": ' + line + b"}")


def test_a_process_cannot_choose_the_kind_of_a_memory() -> None:
    """A text is a document or a turn, and nothing else."""
    found = from_line(b'{"text": {"text": "a", "kind": "fact"}}')
    assert isinstance(found, ReadText)
    assert found.kind == "document"


def test_turns_with_the_same_words_have_their_own_digests() -> None:
    """What differs in place or speaker is another turn."""
    digests = {digest_of(ReadText("Yes.", place=place, speaker=who)) for place in "12" for who in ("user", "maro")}
    assert len(digests) == 4


@given(text=st.text(st.characters() | st.sampled_from("\ud800\udfff\0\r\n"), max_size=30))
def test_clean_text_can_be_written(text: str) -> None:
    """No NUL, no half of a pair, and lines end in one way."""
    cleaned = clean(text)
    assert not set(cleaned) & {"\0", "\r"}
    cleaned.encode()


@given(text=st.text(max_size=400))
def test_a_title_is_one_line(text: str) -> None:
    """No title is longer than fits."""
    title = one_line(text)
    assert len(title) <= TITLE
    assert len(title.splitlines()) <= 1


@given(value=st.floats() | st.integers() | st.text(max_size=30) | st.none() | st.booleans())
def test_a_moment_never_raises(value: object) -> None:
    """No moment is the empty text."""
    moment = moment_of(value)
    assert moment == "" or moment.endswith("Z")


def test_seconds_and_milliseconds_are_told_apart() -> None:
    """Exports of both kinds exist."""
    assert moment_of(1_700_000_000) == moment_of(1_700_000_000_000) == "2023-11-14T22:13:20.000Z"
