"""The console: text without control characters on a terminal, JSON documents for scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from batos.protocol.errors import BatosError, BudgetExceeded
from batos.terminal.layout import JOINERS, Flow, Markdown, columns, cut, escape, lay_out, paint, plain, style


class Terminated(BaseException):
    """SIGTERM or SIGHUP came; a BaseException like KeyboardInterrupt, because nobody is to handle it on the way."""


@dataclass(slots=True)
class Console:
    """Where a verb's output goes: results to `out`, progress and errors to `err`."""

    out: TextIO
    err: TextIO
    as_json: bool
    has_colour: bool
    #: The reason for which a result could not be written, if so.
    lost: str = ""
    #: The number of lines of the last redrawing that stand at the bottom of the terminal.
    _standing: int = 0
    #: Answers are shown as they are, also on a terminal.
    is_plain: bool = False
    #: The text that is being streamed, as it is styled and laid into lines, and the joiner that its last piece ended
    #: with.
    _markdown: Markdown | None = None
    _flow: Flow | None = None
    _joined: str = ""

    @classmethod
    def from_streams(cls, out: TextIO, err: TextIO, *, as_json: bool, is_plain: bool = False) -> Console:
        """Make a console that respects NO_COLOR, a dumb terminal, and output that is no terminal."""
        plain_alone = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(out, err, as_json, err.isatty() and not plain_alone, is_plain=is_plain)

    # -- for programs

    def document(self, data: Mapping[str, object]) -> None:
        """Write the one document of `--json`."""
        self._line({"v": 1, "ok": True, "data": data})

    def event(self, name: str, keys: Mapping[str, object]) -> None:
        """Write a line of progress for a program; where that cannot be written, the document will say so."""
        with suppress(BatosError):
            self._line({"v": 1, "event": name, **keys})

    def print_interruption(self, how: str) -> None:
        """Tell that the work was stopped from outside; `how` is a word."""
        error = {"code": how, "message": how, "remedy": "", "retry": True}
        if self.as_json:
            self._fault(error)
        self.say(how)

    def _fault(self, error: Mapping[str, object]) -> None:
        """Write the document of an error, unless it is known that nothing can be written."""
        with suppress(BatosError):
            if not self.lost:
                self._line({"v": 1, "ok": False, "error": error})

    def _line(self, value: Mapping[str, object]) -> None:
        # Readable where it can be; a stream that is not UTF-8 could not say it.
        ascii_alone = (self.out.encoding or "").lower().replace("-", "") != "utf8"
        # JSON escapes C0 alone, and a document may be looked at on a terminal as well.
        self._put(f"{escape(json.dumps(value, ensure_ascii=ascii_alone, default=str))}\n")

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
                f"the result cannot be written to its output: {self.lost}",
                remedy="Free space, or write to another place. Finished missions are in the image: `batos show last`.",
            )

    # -- for people

    def write(self, text: str, *, warn: bool = False) -> None:
        """Write a result; on a terminal its lines are broken between words, and a warning is red."""
        self.redraw([])
        shown = lay_out(plain(text), columns(self.out))
        self._put(f"\x1b[31m{shown}\x1b[0m\n" if warn and self.has_colour and self.out.isatty() else f"{shown}\n")

    def write_answer(self, text: str) -> None:
        """Write an answer; on a terminal its Markdown is shown as styles."""
        if not self._shows_styles:
            self.write(text)
            return
        self.redraw([])
        self._put(f"{paint(lay_out(style(plain(text)), columns(self.out)))}\n")

    @property
    def _shows_styles(self) -> bool:
        return self.has_colour and not self.is_plain and self.out.isatty()

    def stream(self, text: str) -> None:
        """Write a piece of an answer; where it cannot be written, the next whole one will say so.

        On a terminal it is laid into lines as it comes; `end_stream` ends it.
        """
        self.redraw([])
        # A joiner may be a piece of its own: then the one before decides if it is seen.
        shown = plain(self._joined + text)[len(self._joined) :]
        if shown:
            self._joined = shown[-1] if shown[-1] in JOINERS else ""
        if self._shows_styles:
            self._markdown = self._markdown or Markdown()
            shown = self._markdown.feed(shown)
        width = columns(self.out)
        if width is not None:
            self._flow = self._flow or Flow(width)
            shown = self._flow.feed(shown)
        with suppress(BatosError):
            self._put(paint(shown))

    def end_stream(self) -> None:
        """End what was streamed with its last word and a newline."""
        left = self._markdown.end() if self._markdown else ""
        left = self._flow.feed(left) + self._flow.end() if self._flow else left
        self._markdown, self._flow, self._joined = None, None, ""
        with suppress(BatosError):
            self._put(f"{paint(left)}\n")

    def say(self, text: str, *, dim: bool = False, warn: bool = False) -> None:
        """Tell progress, a note or a warning; silent where a program reads, on a terminal broken between words."""
        if not self.as_json:
            self._say(text, dim=dim, warn=warn)

    def _say(self, text: str, *, dim: bool = False, warn: bool = False) -> None:
        self.redraw([])
        shown, mark = lay_out(plain(text), columns(self.err)), 31 if warn else 2 if dim else 0
        self._note(f"\x1b[{mark}m{shown}\x1b[0m\n" if mark and self.has_colour else f"{shown}\n")

    @property
    def width(self) -> int:
        """Return the columns of the terminal on which progress is told, but the last: a full line would be two."""
        return (columns(self.err) or 80) - 1

    def redraw(self, lines: Sequence[str]) -> None:
        """Draw lines in the place of those of the call before, on a terminal; nothing elsewhere."""
        if self.has_colour and not self.as_json and (lines or self._standing):
            width = self.width
            up = f"\x1b[{self._standing}A" if self._standing else ""
            self._note(f"\r{up}\x1b[J" + "".join(f"{cut(plain(line), width)}\n" for line in lines))
            self._standing = len(lines)

    def _note(self, text: str) -> None:
        with suppress(OSError):  # where nobody can read notes, the work goes on without them
            pour(self.err, text)

    def error(self, error: BatosError) -> None:
        """Tell an error with its remedy: as a document to a program, on stderr where that cannot be written."""
        if self.as_json:
            self._fault(error.as_dict())
            if not self.lost:
                return
        self._say(f"error: {error.message}", warn=True)
        # The remedy belongs to what was said first, before further faults; a budget's table comes before what follows.
        rows = error.also if isinstance(error, BudgetExceeded) else ()
        for told in (*rows, error.remedy, *(() if rows else error.also)):
            for line in told.splitlines():
                self._say(f"       {line}")


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


def count_text(number: int, what: str) -> str:
    """Write a number with its noun.

    >>> count_text(1, "call"), count_text(2, "call")
    ('1 call', '2 calls')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def duration_text(seconds: float) -> str:
    """Write a time for people.

    >>> duration_text(42.4), duration_text(87), duration_text(7_500)
    ('42 s', '1 min 27 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def size(count: float | None) -> str:
    """Write a number of bytes for people.

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
