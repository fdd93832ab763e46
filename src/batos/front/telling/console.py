"""What people and programs read: text without control characters on a terminal, JSON documents for scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from batos.errors import BatosError, BudgetExceeded

#: Everything that could move a cursor, change a colour or hide text: C0 but newline and tab, C1, bidi controls.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    r"""Text of a model or a file without control characters.

    >>> plain("a\x1b[31mb\r\n")
    'a[31mb\n'
    """
    return _CONTROL.sub("", text)


class Terminated(BaseException):
    """SIGTERM came; a BaseException like KeyboardInterrupt, because nobody is to handle it on the way."""


@dataclass(slots=True)
class Console:
    """Where a verb's output goes: results to `out`, progress and errors to `err`."""

    out: TextIO
    err: TextIO
    as_json: bool
    colour: bool
    #: Why a result could not be written, if so.
    lost: str = ""
    #: How many lines of the last redrawing stand at the bottom of the terminal.
    _standing: int = 0

    @classmethod
    def of(cls, out: TextIO, err: TextIO, *, as_json: bool) -> Console:
        """A console that respects NO_COLOR and what is not a terminal."""
        return cls(out, err, as_json, err.isatty() and not os.environ.get("NO_COLOR"))

    # -- for programs

    def document(self, data: Mapping[str, Any]) -> None:
        """The one document of `--json`."""
        self._line({"v": 1, "ok": True, "data": data})

    def event(self, name: str, keys: Mapping[str, Any]) -> None:
        """A line of progress for a program; where it cannot be written, the document will say so."""
        with suppress(BatosError):
            self._line({"v": 1, "event": name, **keys})

    def interrupted(self, how: str) -> None:
        """The work was stopped from outside; `how` is a word."""
        error = {"code": how, "message": how, "remedy": "", "retry": True}
        if self.as_json:
            self._fault(error)
        self.say(how)

    def _fault(self, error: Mapping[str, Any]) -> None:
        if not self.lost:  # else there is nowhere to say so, and the exit code says it
            self._line({"v": 1, "ok": False, "error": error})

    def _line(self, value: Mapping[str, Any]) -> None:
        # Readable where it can be; a stream that is not UTF-8 could not say it.
        escaped = (self.out.encoding or "").lower().replace("-", "") != "utf8"
        text = json.dumps(value, ensure_ascii=escaped, default=str)
        # JSON escapes C0 alone, and a document may be looked at on a terminal as well.
        self._put(f"{_CONTROL.sub(lambda found: f'{chr(92)}u{ord(found[0]):04x}', text)}\n")

    def _put(self, text: str) -> None:
        """Write a result; when its reader has left, the rest goes nowhere, and what is under way goes on."""
        try:
            pour(self.out, text)
        except BrokenPipeError:
            pass  # whoever read this has seen enough
        except OSError as error:
            self.lost = error.strerror or str(error)
        if self.lost:
            # Said again at each later write: the first may have been a piece, for which nothing stops.
            raise BatosError(
                f"the result cannot be written to where it goes: {self.lost}",
                remedy="Missions that are done are in the image: `batos show last`.",
            )

    # -- for people

    def write(self, text: str) -> None:
        """A result."""
        self._put(f"{plain(text)}\n")

    def stream(self, text: str) -> None:
        """A piece of a result; where it cannot be written, the next whole one will say so."""
        with suppress(BatosError):
            self._put(plain(text))

    def say(self, text: str, *, dim: bool = False) -> None:
        """Progress, a note, a warning; silent where a program reads."""
        if not self.as_json:
            shown = plain(text)
            self._note(f"\x1b[2m{shown}\x1b[0m\n" if dim and self.colour else f"{shown}\n")

    @property
    def width(self) -> int:
        """The columns of the terminal on which progress is told, but the last: a full line would be two."""
        try:
            columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(self.err.fileno()).columns
        except (OSError, ValueError):  # not a number, or no terminal
            columns = shutil.get_terminal_size().columns
        return columns - 1

    def redraw(self, lines: Sequence[str]) -> None:
        """Lines that stand in the place of those of the call before, on a terminal; nothing elsewhere."""
        if self.colour and not self.as_json and (lines or self._standing):
            width = self.width
            up = f"\x1b[{self._standing}A" if self._standing else ""
            self._note(f"\r{up}\x1b[J" + "".join(f"{plain(line)[:width]}\n" for line in lines))
            self._standing = len(lines)

    def _note(self, text: str) -> None:
        with suppress(OSError):  # where nobody can read notes, the work goes on without them
            pour(self.err, text)

    def error(self, error: BatosError) -> None:
        """An error with its remedy."""
        if self.as_json:
            self._fault(error.as_dict())
            return
        self.say(f"error: {error.message}")
        # What to do belongs to what was said first, before further faults; a budget's table comes before what follows.
        rows = error.also if isinstance(error, BudgetExceeded) else ()
        for told in (*rows, error.remedy, *(() if rows else error.also)):
            if told:
                self.say(f"       {told}")

    def usage(self, wrong: click.ClickException) -> None:
        """A command line that is wrong."""
        context = getattr(wrong, "ctx", None)
        path = context.command_path if context else "batos"
        said = wrong.format_message()
        if isinstance(wrong, click.exceptions.NoArgsIsHelpError) and isinstance(wrong.ctx.command, click.Group):
            said = f"`{path}` needs one of: {', '.join(wrong.ctx.command.list_commands(wrong.ctx))}"
        remedy = f"See `{path} --help`."
        takes = context is not None and any(isinstance(each, click.Argument) for each in context.command.params)
        if isinstance(wrong, click.NoSuchOption) and takes:
            remedy = f"What begins with a dash and is no option stands behind two: {path} -- '{wrong.option_name} ...'"
        if self.as_json:
            field = getattr(getattr(wrong, "param", None), "name", None)
            error = {"code": "usage", "message": said, "remedy": remedy}
            self._fault({**error, "retry": False, **({"field": field} if field else {})})
            return
        self.say(f"error: {said}")
        self.say(f"       {remedy}")


def pour(stream: TextIO, text: str) -> None:
    """Write and flush; what the stream's encoding lacks is escaped.

    OSError: it cannot be written; from then on the stream leads nowhere, so that its end is no second error.
    """
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        raise


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Columns under heads, the last one as long as it is."""
    shown = [[plain(cell).replace("\n", " ") for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown)
    return "\n".join(lines)


def wrapped(text: str, indent: str = "  ") -> str:
    """Paragraphs wrapped to the terminal and indented."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    paragraphs = plain(text).split("\n")
    return "\n".join(textwrap.fill(each, width, initial_indent=indent, subsequent_indent=indent) for each in paragraphs)


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "call"), counted(2, "call")
    ('1 call', '2 calls')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def size(count: float | None) -> str:
    """Bytes for people.

    >>> size(4_920_000_000)
    '4.6 GiB'
    """
    if count is None:
        return "unknown size"
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
