"""Text on a terminal: permitted characters, their width, line breaks, tables, cards of one thing, and Markdown."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TextIO, TypeAlias

#: The signs that could move a cursor, change a colour or hide text: C0 but newline and tab, C1, controls of direction,
#: signs of no width (but the two joiners, which scripts need), tags, and selectors of variants but those of emoji.
_CONTROL: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_UNSEEN: Final = re.compile(f"[{_CONTROL}]")
#: The signs that belong to the letter before them; more than one in a row says nothing that is seen.
JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"
_JOINED: Final = re.compile(f"([{JOINERS}])[{JOINERS}]+")
#: The signs that colour the sign before them.
_TONES: Final = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
#: Least columns of a cell that is shortened, and of a line that is wrapped.
_CELL, _LINE = 12, 20
#: The beginning of a line whose further lines stand further in: a point, a number, a footnote, a kind of message.
_POINT: Final = re.compile(r"[-*+\u2022]|\d{1,3}[.)]|\[\d{1,3}\]|(error|warning):")


def plain(text: str) -> str:
    r"""Strip a text of a model or a file of what moves a cursor, changes a colour or hides something.

    >>> plain("a\x1b[31mb\u200b\r\n")
    'a[31mb\n'
    """
    return _JOINED.sub(r"\1", _UNSEEN.sub("", text))


def reveal(text: str) -> str:
    r"""Name each sign of a text that `plain` leaves out: for whoever reads what a model was sent.

    >>> reveal("pay\u200b him\r\n")
    'pay<U+200B> him\n'
    """
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text.replace("\r\n", "\n"))


def escape(document: str) -> str:
    """Write those signs of a JSON document as escapes; it still says the same."""
    shown = _UNSEEN.sub(lambda found: _escape(found[0]), document)
    return _JOINED.sub(lambda found: found[1] + "".join(map(_escape, found[0][1:])), shown)


def _escape(sign: str) -> str:
    return json.dumps(sign)[1:-1] if ord(sign) > 127 else f"\\u{ord(sign):04x}"


def columns(stream: TextIO | None) -> int | None:
    """Return the width of the terminal that a stream leads to, in columns; None where it leads to none."""
    if stream is None or not stream.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # not a number, or nothing that has a size
        return shutil.get_terminal_size().columns


def cells(text: str) -> int:
    """Count the columns that a text takes, as terminals do: two for a wide letter, none for an accent.

    >>> cells("tide"), cells("潮汐"), cells("e\u0301")
    (4, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Cut a text to at most so many columns; a sign marks the cut.

    >>> cut("harbour", 7), cut("harbour", 5)
    ('harbour', 'harb…')
    """
    if cells(text) <= width:
        return text
    kept, taken = 0, 0
    for letter in text:
        taken += _cell(letter)
        if taken >= width:
            break
        kept += 1
    return f"{text[:kept].rstrip()}…"


class Flow:
    """Text that is laid into lines as it comes, broken between words; code between fences and tables stay as they are.

    Whatever the pieces, they become the same lines. A word that is wider than the terminal is left to the terminal.
    """

    def __init__(self, width: int) -> None:
        self._width = max(_LINE, width)
        self._gap = ""
        self._word = ""
        self._column = 0
        self._hang = 0
        self._words = 0
        #: A sentence ended on this line: two spaces behind it are no columns.
        self._ended = False
        #: Between fences, and on a line that is no prose.
        self._code = False
        self._raw = False

    def feed(self, text: str) -> str:
        """Take a further piece; return what can be shown of what came so far."""
        return "".join(map(self._sign, text))

    def end(self) -> str:
        """Return what is left when nothing more comes."""
        return self._flush()

    def _sign(self, letter: str) -> str:
        if letter == "\n":
            shown = f"{self._flush()}\n"
            self._gap, self._column, self._hang, self._words = "", 0, 0, 0
            self._raw = self._ended = False
            return shown
        if letter.isspace():
            shown = self._flush()
            self._gap += letter.replace("\t", "    ")
            return shown
        shown = self._flush() if _begins(letter) and not self._word.endswith("\u200d") else ""
        self._word += letter
        return shown

    def _flush(self) -> str:
        gap, word = self._gap, self._word
        if not word:
            return ""
        self._gap = self._word = ""
        self._words += 1
        if self._words == 1:
            self._begin(len(gap), word)
        elif len(gap) > 1 and not self._ended and self._column + len(gap) <= 2 * self._width // 3:
            self._hang = self._column + len(gap)  # what stands in columns, such as a label and what it labels
        self._ended = self._ended or word[-1] in ".!?"
        taken = cells(gap) + cells(word)
        if not self._raw and self._column > self._hang and self._column + taken > self._width:
            self._column = self._hang + cells(word)
            return f"\n{' ' * self._hang}{word}"
        self._column += taken
        return gap + word

    def _begin(self, margin: int, word: str) -> None:
        """Set the kind of a line by its first word."""
        if word.startswith("```"):
            self._code, self._raw = not self._code, True
        self._raw = self._raw or self._code or word.startswith("|")
        self._hang = margin + (len(word) + 1 if _POINT.fullmatch(word) else 0)
        if self._hang > self._width // 2:
            self._hang = 0


def _begins(letter: str) -> bool:
    """Test if a line may begin with a letter whatever precedes it: wide ones need no space between them."""
    return (
        unicodedata.east_asian_width(letter) == "W" and unicodedata.category(letter)[0] in "LS" and letter not in _TONES
    )


def lay_out(text: str, width: int | None) -> str:
    """Break a text's lines between words; without a width the text stays as it is."""
    if width is None:
        return text
    flow = Flow(width)
    return flow.feed(text) + flow.end()


def table(rows: Sequence[Sequence[str]], heads: Sequence[str], whole: Collection[int] = ()) -> str:
    """Lay rows out under heads; on a terminal too narrow, drop empty columns and shorten the widest cells.

    The columns that are to stay `whole`, by number, never are shortened: what is to be copied from them.
    """
    shown = [[plain(cell).replace("\n", " ") for cell in row] for row in (heads, *rows)]
    widths = [max(cells(row[column]) for row in shown) for column in range(len(heads))]
    most = columns(sys.stdout)
    if most is not None and sum(widths) + 2 * (len(widths) - 1) > most:
        told = [column for column in range(len(heads)) if any(row[column] for row in shown[1:])]
        shown, widths = [[row[column] for column in told] for row in shown], [widths[column] for column in told]
        _fit(widths, most - 2 * (len(widths) - 1), [place for place, column in enumerate(told) if column not in whole])
        shown = [[_shorten(cell, width) for cell, width in zip(row, widths, strict=True)] for row in shown]
    return "\n".join("  ".join(map(_pad, row, widths)).rstrip() for row in shown)


def _fit(widths: list[int], room: int, yielding: Sequence[int]) -> None:
    """Take columns from the widest that yield, one by one, the last of them first; narrow ones keep theirs."""
    while sum(widths) > room and any(widths[place] > _CELL for place in yielding):
        widths[max(yielding, key=lambda place: (widths[place], place))] -= 1


def _shorten(cell: str, width: int) -> str:
    """Cut the middle of a name, because names differ at their ends, or the end of a text."""
    if cells(cell) <= width or " " in cell.strip():
        return cut(cell, width)
    tail = (width - 1) // 2
    return f"{cut(cell, width - tail)}{cell[-tail:]}" if cell.isascii() else cut(cell, width)


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - cells(cell))


def wrap(text: str, indent: str = "  ") -> str:
    """Wrap paragraphs to the terminal and indent them."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    paragraphs = plain(text).split("\n")
    return "\n".join(textwrap.fill(each, width, initial_indent=indent, subsequent_indent=indent) for each in paragraphs)


#: A column: the key of a value, or a function that makes the cell.
Column: TypeAlias = str | Callable[[Any], object]
#: Columns of a label, with the space behind it.
_LABEL: Final = 9


def listing(
    lines: Sequence[Mapping[str, object]], columns: Mapping[str, Column], empty: str = "", whole: Collection[int] = ()
) -> str:
    """Write a table of lines, a column for each head; `empty` where there is no line.

    >>> print(listing([{"name": "notes", "uses": 2}], {"grant": "name", "used": lambda each: f"{each['uses']} times"}))
    grant  used
    notes  2 times
    """
    rows = [[str(each[of] if isinstance(of, str) else of(each)) for of in columns.values()] for each in lines]
    return table(rows, tuple(columns), whole) if rows else empty


def card(rows: Iterable[tuple[str, object]]) -> str:
    r"""Write a thing, a label and a value a line; further lines of a value stand below its first one.

    >>> print(card([("dream", "m-1"), ("answer", "yes\nand no"), ("", "more")]))
    dream    m-1
    answer   yes
             and no
             more
    """
    return "\n".join(row(label, value) for label, value in rows)


def row(label: str, value: object) -> str:
    """Write a line of a card."""
    return f"{label.ljust(_LABEL - 1)} {value}".replace("\n", f"\n{' ' * _LABEL}").rstrip(" ")


#: Signs that stand for a style until lines are laid: of no width, and none that `plain` leaves in a text.
STRONG, CODE, OFF = "\ufff9", "\ufffa", "\ufffb"
_COLOURS: Final = {STRONG: "\x1b[1m", CODE: "\x1b[36m", OFF: "\x1b[0m"}
_STYLES: Final = re.compile(f"[{STRONG}{CODE}{OFF}]")
#: Beginnings of a line that may still become a heading or a fence.
_OPEN_LINE: Final = re.compile(r"#{0,6}| {0,3}`{0,2}")
_HEADING: Final = re.compile(r"#{1,6} ")
#: Strong words and code, and the beginnings that may still become them.
_STRONG_WORDS: Final = re.compile(r"\*\*([^\s*](?:[^*]*[^\s*])?)\*\*")
_CODE_WORDS: Final = re.compile(r"`[^`]+`")
_OPEN_WORDS: Final = re.compile(r"\*\*?|\*\*[^\s*][^*]*\*?|`[^`]*")
#: Characters after which a mark that nothing ends stands as it is.
_LONGEST: Final = 200


class Markdown:
    """Markdown that is styled as it comes: whatever the pieces, the result is the same.

    Between fences and in tables nothing is changed. Marks that nothing ends on their line stand as they are.
    """

    def __init__(self) -> None:
        #: The beginning of a line, or of strong words or code, that is still in doubt.
        self._held = ""
        self._last = ""
        self._is_begun = self._is_raw = self._is_heading = self._is_fenced = False

    def feed(self, text: str) -> str:
        """Take a further piece; return what can be shown of what came so far."""
        return "".join(map(self._sign, text))

    def end(self) -> str:
        """Return what is left when nothing more comes."""
        shown = "" if self._is_begun else self._begin_line()
        shown, self._held = shown + self._held, ""
        return shown + OFF if self._is_heading else shown

    def _sign(self, letter: str) -> str:
        if letter == "\n":
            shown = f"{self.end()}{letter}"
            self._is_begun = self._is_raw = self._is_heading = False
            self._last = ""
            return shown
        if self._is_begun:
            return self._inline(letter)
        self._held += letter
        return "" if _OPEN_LINE.fullmatch(self._held) else self._begin_line()

    def _begin_line(self) -> str:
        """Return the beginning of a line, of which the kind is known now."""
        line, self._held, self._is_begun = self._held, "", True
        bare = line.lstrip(" ")
        is_fence = bare.startswith("```")
        self._is_raw = is_fence or self._is_fenced or bare.startswith("|")
        self._is_fenced ^= is_fence
        if not self._is_raw and _HEADING.fullmatch(line):
            self._is_heading = True
            return STRONG
        return "".join(map(self._inline, line))

    def _inline(self, letter: str) -> str:
        opens = letter == "`" or (letter == "*" and not self._last.isalnum())
        if not self._held and (self._is_raw or not opens):
            self._last = letter
            return letter
        self._held += letter
        if found := _STRONG_WORDS.fullmatch(self._held):
            return self._settle(found[1] if self._is_heading else f"{STRONG}{found[1]}{OFF}")
        if _CODE_WORDS.fullmatch(self._held):
            return self._settle(self._held if self._is_heading else f"{CODE}{self._held}{OFF}")
        if _OPEN_WORDS.fullmatch(self._held) and len(self._held) <= _LONGEST:
            return ""
        # The last letter may begin a mark of its own.
        return self._settle(self._held[:-1]) + self._inline(letter)

    def _settle(self, shown: str) -> str:
        self._last, self._held = shown[-1:] or self._last, ""
        return shown


def style(text: str) -> str:
    """Return a whole text with its styles."""
    markdown = Markdown()
    return markdown.feed(text) + markdown.end()


def paint(text: str) -> str:
    """Write styles as the colours of a terminal."""
    return _STYLES.sub(lambda found: _COLOURS[found[0]], text)
