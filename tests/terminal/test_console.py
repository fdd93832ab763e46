"""The console: nothing on a terminal but text, documents that are whole, streams that may fail without a crash."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.protocol.errors import BatosError, BudgetExceeded, Refused
from batos.terminal.console import Console, count_text, duration_text, size
from batos.terminal.layout import plain

#: What changes the direction of text, and can so hide what it says.
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def console(*, as_json: bool = False, colour: bool = False) -> tuple[Console, io.StringIO, io.StringIO]:
    """A console with what it wrote to each stream."""
    out, err = io.StringIO(), io.StringIO()
    return Console(out, err, as_json, colour), out, err


TEXT = st.text() | st.text(st.sampled_from(f"ab \n\t\r\x00\x07\x1b[31m\x7f\x85\x9b{BIDI}"))


@given(text=TEXT)
def test_nothing_brings_a_control_character_out(text: str) -> None:
    """Results, notes and errors alike are cleaned on their way."""
    shown, out, err = console()
    shown.write(text)
    shown.stream(text)
    shown.say(text)
    error = Refused(text, remedy=text)
    error.also = (text,)
    shown.error(error)
    for said in (out.getvalue(), err.getvalue()):
        assert plain(said) == said


@given(value=st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_a_document_is_one_line(value: Any) -> None:
    """Whatever it holds, a document is one line of JSON and says the same when it is read."""
    shown, out, err = console(as_json=True)
    shown.document({"value": value})
    line, end = out.getvalue().split("\n")
    assert json.loads(line) == {"v": 1, "ok": True, "data": {"value": value}}
    assert (end, err.getvalue()) == ("", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16"])
def test_any_stream_can_say_it(encoding: str) -> None:
    """What a stream's encoding lacks is escaped: JSON stays JSON, text stays readable, nothing fails."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding)
    Console(out, out, as_json=True, has_colour=False).document({"text": "é…日\udcff"})
    assert json.loads(raw.getvalue().decode(encoding))["data"] == {"text": "é…日\udcff"}
    raw.truncate(0)
    raw.seek(0)
    Console(out, out, as_json=False, has_colour=False).write("a…\udcff")
    assert raw.getvalue().decode(encoding).lstrip("\ufeff").startswith("a")


@pytest.mark.parametrize(
    ("err", "no_colour", "colour"),
    [(Terminal(), "", True), (Terminal(), "1", False), (io.StringIO(), "", False)],
)
def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch, err: TextIO, no_colour: str, colour: bool) -> None:
    """Dim text and lines that move are for a terminal, and not with NO_COLOR."""
    monkeypatch.setenv("NO_COLOR", no_colour)
    shown = Console.from_streams(io.StringIO(), err, as_json=False)
    assert shown.has_colour == colour
    shown.say("a note", dim=True)
    shown.redraw(["50 %", "20 %"])
    shown.redraw([])
    assert isinstance(err, io.StringIO)
    assert ("\x1b" in err.getvalue()) == colour


@pytest.mark.parametrize(
    ("terminal", "no_colour", "told"), [("xterm", "", True), ("dumb", "", False), ("xterm", "1", False)]
)
def test_what_is_wrong_is_red(monkeypatch: pytest.MonkeyPatch, terminal: str, no_colour: str, told: bool) -> None:
    """On a terminal that has colours; a result that goes elsewhere has none."""
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setenv("NO_COLOR", no_colour)
    for out, red in ((Terminal(), told), (io.StringIO(), False)):
        Console.from_streams(out, Terminal(), as_json=False).write("WRONG", warn=True)
        assert (out.getvalue() == "\x1b[31mWRONG\x1b[0m\n") == red


def test_programs_hear_no_notes() -> None:
    """With --json nothing of what is for people is said, on neither stream."""
    shown, out, err = console(as_json=True, colour=True)
    shown.say("a note")
    shown.redraw(["50 %", "20 %"])
    shown.redraw([])
    assert out.getvalue() + err.getvalue() == ""


def test_an_error_is_told_whole() -> None:
    """People get message, remedy and further faults on stderr; a program gets one document on stdout."""
    error = Refused("no", remedy="Ask less.", field="budget")
    error.also = ("and no again",)
    shown, out, err = console()
    shown.error(error)
    assert (out.getvalue(), err.getvalue()) == ("", "error: no\n       Ask less.\n       and no again\n")
    over = BudgetExceeded("too large", {}, 0, remedy="Take less.")
    over.also = ("weights  9 GiB",)
    shown, _, err = console()
    shown.error(over)
    assert err.getvalue() == "error: too large\n       weights  9 GiB\n       Take less.\n"
    shown, out, err = console(as_json=True)
    shown.error(error)
    document = {"code": "refused", "message": "no", "remedy": "Ask less.", "retry": False, "field": "budget"}
    assert json.loads(out.getvalue()) == {"v": 1, "ok": False, "error": {**document, "also": ["and no again"]}}


def test_what_was_stopped_says_so() -> None:
    """People read a word, a program an error document of that code."""
    shown, out, err = console()
    shown.print_interruption("terminated")
    assert (out.getvalue(), err.getvalue()) == ("", "terminated\n")
    shown, out, _ = console(as_json=True)
    shown.print_interruption("terminated")
    assert json.loads(out.getvalue())["error"]["code"] == "terminated"


@pytest.fixture
def left() -> Iterator[TextIO]:
    """A pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.fixture
def full() -> Iterator[TextIO]:
    """A device that is always full."""
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        yield stream


def test_a_reader_that_left_is_no_error(left: TextIO) -> None:
    """The first write finds nobody, and so do all later ones; the work goes on, and closing is quiet."""
    shown = Console(left, io.StringIO(), as_json=True, has_colour=False)
    shown.document({"text": "x" * 100_000})
    shown.event("mission.token", {"text": "x"})
    shown.write("x")


def test_a_full_device_is_said_once(full: TextIO) -> None:
    """A result that cannot be written is an error with a remedy; telling that goes nowhere, and closing is quiet."""
    shown = Console(full, io.StringIO(), as_json=False, has_colour=False)
    with pytest.raises(BatosError, match="No space left") as raised:
        shown.write("x")
    assert "batos show last" in raised.value.remedy
    shown.error(raised.value)
    with pytest.raises(BatosError, match="No space left"):
        shown.write("x")


@pytest.mark.parametrize("quiet", [True, False])
def test_a_program_that_cannot_be_told_gets_the_exit_code(full: TextIO, quiet: bool) -> None:
    """An event that is lost stops nothing but is not forgotten; errors that have nowhere to go raise nothing more."""
    err = io.StringIO()
    shown = Console(full, err, as_json=True, has_colour=False)
    if not quiet:
        shown.event("mission.accepted", {})
        shown.stream("It ")
    with pytest.raises(BatosError):
        shown.document({})
    shown.error(Refused("no", remedy="Ask another."))
    shown.print_interruption("terminated")
    assert err.getvalue() == "error: no\n       Ask another.\n"


def test_an_error_that_a_program_cannot_be_told(full: TextIO) -> None:
    """The document of an error goes nowhere: people are told, and nothing is raised."""
    err = io.StringIO()
    Console(full, err, as_json=True, has_colour=False).error(Refused("no", remedy="Ask another."))
    assert err.getvalue() == "error: no\n       Ask another.\n"


@pytest.mark.parametrize("stream", ["left", "full"])
def test_notes_that_nobody_can_read_are_dropped(request: pytest.FixtureRequest, stream: str) -> None:
    """Where stderr leads nowhere the work goes on, and results are written."""
    out = io.StringIO()
    shown = Console(out, request.getfixturevalue(stream), as_json=False, has_colour=True)
    shown.say("a note", dim=True)
    shown.redraw(["50 %", "20 %"])
    shown.redraw([])
    shown.error(Refused("no"))
    shown.write("the answer")
    assert out.getvalue() == "the answer\n"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "unknown size"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 2**20, "5.0 MiB"),
        (3 * 2**40, "3072.0 GiB"),
    ],
)
def test_sizes(count: int | None, shown: str) -> None:
    """Bytes in the unit that people read, gibibytes at most."""
    assert size(count) == shown


@given(
    pieces=st.lists(st.text(max_size=8) | st.sampled_from(["tide ", "a\u200d", "\u200d\u200d", "harbours and piers\n"]))
)
def test_on_a_terminal_a_stream_is_laid_as_the_whole_is(pieces: list[str]) -> None:
    """Whatever the pieces in which an answer comes, the same lines stand there as when it is written whole."""
    streamed, whole = Terminal(), Terminal()
    shown = Console(streamed, io.StringIO(), as_json=False, has_colour=False)
    for piece in pieces:
        shown.stream(piece)
    shown.end_stream()
    Console(whole, io.StringIO(), as_json=False, has_colour=False).write("".join(pieces))
    assert streamed.getvalue() == whole.getvalue()


@pytest.mark.parametrize("is_plain", [False, True])
def test_markdown_is_shown_as_styles_on_a_terminal(is_plain: bool) -> None:
    """An answer that is streamed looks as the same one written whole; --plain and a pipe show it as it is."""
    answer = "# Piers\n\nThe **north** pier\x1b[31m broke.\n"
    streamed, whole, piped = Terminal(), Terminal(), io.StringIO()
    shown = Console(streamed, io.StringIO(), as_json=False, has_colour=True, is_plain=is_plain)
    for letter in answer.rstrip("\n"):
        shown.stream(letter)
    shown.end_stream()
    for out in (whole, piped):
        Console(out, io.StringIO(), as_json=False, has_colour=True, is_plain=is_plain).write_answer(answer.rstrip("\n"))
    assert streamed.getvalue() == whole.getvalue()
    assert piped.getvalue() == plain(answer)
    styled = "\x1b[1mPiers\x1b[0m\n\nThe \x1b[1mnorth\x1b[0m pier[31m broke.\n"
    assert whole.getvalue() == (plain(answer) if is_plain else styled)


def test_notes_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors, remedies and results are broken between words on a terminal, and whole lines elsewhere."""
    monkeypatch.setenv("COLUMNS", "40")
    out, err = Terminal(), Terminal()
    words = ("harbour " * 12).strip()
    shown = Console(out, err, as_json=False, has_colour=True)
    shown.error(Refused(words, remedy=words))
    shown.write(words)
    lines = (out.getvalue() + err.getvalue()).replace("\x1b[31m", "").replace("\x1b[0m", "").splitlines()
    assert max(map(len, lines)) <= 40
    assert "\n       harbour harbour harbour harbour\n" in err.getvalue()
    assert err.getvalue().startswith("\x1b[31merror: harbour")
    assert out.getvalue().split() == words.split()
    piped, piped_out, piped_err = console()
    piped.error(Refused(words))
    piped.write(words)
    assert (piped_out.getvalue(), piped_err.getvalue()) == (f"{words}\n", f"error: {words}\n")


def test_a_line_that_is_redrawn_is_gone_before_anything_else_is_said() -> None:
    """What is written, streamed or said takes the place of a line that was redrawn."""
    for say in (Console.write, Console.stream, Console.say):
        err = Terminal()
        shown = Console(Terminal(), err, as_json=False, has_colour=True)
        shown.redraw(["thinking"])
        say(shown, "done")
        assert "\x1b[1A\x1b[J" in err.getvalue()
        before = err.getvalue()
        shown.redraw([])
        assert err.getvalue() == before


def test_counts() -> None:
    """One thing is no plural, none and many are."""
    assert [count_text(number, "call") for number in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]


@given(text=TEXT)
def test_a_document_holds_text_whole_and_no_control_character(text: str) -> None:
    """What a program reads is what was said; what a terminal shows of it has nothing but the newline at its end."""
    shown, out, _ = console(as_json=True)
    shown.document({"said": text})
    line = out.getvalue()
    assert json.loads(line)["data"]["said"] == text
    assert plain(line) == line
    assert line.count("\n") == 1
    assert "\t" not in line


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "0 s"), (59.6, "1 min 0 s"), (3_599.4, "59 min 59 s")])
def test_times_for_people(seconds: float, told: str) -> None:
    """A time is told in its two largest units."""
    assert duration_text(seconds) == told
