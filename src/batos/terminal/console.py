"""The console: text without control characters on a terminal, JSON for scripts, times and ids for people."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Final, TextIO

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


#: Characters of an id that are shown at least: its kind and the millisecond of its beginning.
_LEAST: Final = 12


def local_time(at: str, now: datetime | None = None) -> str:
    """Write a moment as it is seen from `now`, in local time; a text that is no moment is returned as it stands.

    >>> now = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> [local_time(f"2026-01-02T{time}Z", now) for time in ("11:55:00", "11:59:30", "12:05:00")]
    ['5 min ago', 'just now', 'in 5 min']
    """
    now = datetime.now(UTC) if now is None else now
    try:
        moment, here = datetime.fromisoformat(at).astimezone(), now.astimezone()
    except (ValueError, OverflowError):
        return at
    seconds = (here - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now" if seconds >= 0 else "in a moment"
    if abs(seconds) < 3_600:
        minutes = f"{abs(seconds) // 60:.0f} min"
        return f"{minutes} ago" if seconds > 0 else f"in {minutes}"
    days = {timedelta(): "today", timedelta(1): "yesterday", timedelta(-1): "tomorrow"}
    day = days.get(here.date() - moment.date())
    if day is not None:
        return f"{day} {moment:%H:%M}"
    return f"{moment:%d %b %H:%M}" if moment.year == here.year else f"{moment:%Y-%m-%d}"


def moment_text(at: str, now: datetime | None = None) -> str:
    """Write a moment to the second, in local time; a near one also as it is seen from `now`."""
    try:
        told = f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return at
    seen = local_time(at, now)
    return told if seen[-1].isdigit() else f"{told} ({seen})"


def short(names: Sequence[str]) -> dict[str, str]:
    """Return each id's shortest beginning that none of the others has; a verb takes that in its place."""
    ordered = sorted(set(names))
    found = {}
    for place, name in enumerate(ordered):
        beside = [*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2]]
        length = max([_LEAST, *(_count_shared(name, other) + 1 for other in beside)])
        found[name] = name[:length]
    return found


def title_with_path(title: str, source: str) -> str:
    """Return a title with the path of its file behind it, as a person here would write that.

    >>> title_with_path("Heating", ""), title_with_path("Heating", "/srv/house/heating.md")
    ('Heating', 'Heating, /srv/house/heating.md')
    >>> title_with_path("lamp.md", "/srv/lamp.md")
    '/srv/lamp.md'
    """
    if not source.startswith("/"):
        return title
    path, (where, within) = PurePath(source), _here()
    if where is not None and path.is_relative_to(where):
        shown = path.relative_to(where)
    elif within is not None and path.is_relative_to(within):
        shown = "~" / path.relative_to(within)
    else:
        shown = path
    return str(shown) if title in (path.name, path.stem) else f"{title}, {shown}"


def _here() -> tuple[Path | None, Path | None]:
    """Return the working folder and the person's own one; None for one that is gone."""
    found: list[Path | None] = []
    for folder in (Path.cwd, Path.home):
        try:
            found.append(folder())
        except (OSError, RuntimeError):  # the folder was deleted, or the account has none: paths stay whole
            found.append(None)
    return found[0], found[1]


def _count_shared(one: str, other: str) -> int:
    """Count the characters that two ids have in common at their start."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
