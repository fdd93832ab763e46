"""Finds what stands above the rows of a table and gives them their meaning: its caption and its columns' names."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

#: Characters of a head that are repeated above a part of its table.
LONGEST_HEAD: Final = 300
#: Characters of a line that can be a caption, and of one that ends with a colon.
_CAPTION, _INTRODUCTION = 120, 200
#: Characters of a column's name. A longer text is prose.
_NAME: Final = 60
#: Lines that a table has at least, unless its form says that it is one.
_LEAST: Final = 3
#: The rows by which a second line of names is told from the first row.
_LOOKED_AT: Final = 3
#: Longer lines are no rows of a table.
_LONGEST_LINE: Final = 4_000

_LINE = re.compile(r"[^\n]*\S[^\n]*")
_QUOTED = re.compile(r'"[^"\n]*"')
_SEPARATOR = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")
_APART = re.compile(r"\s*\t\s*|\s{2,}")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|=)")
#: Signs of prose, which the name of a column has not.
_IN_PROSE = re.compile(r"^[(\[]|[:=]|[.!?]$")
_NUMBER = re.compile(r"[\d.,:%/ -]*\d[\d.,:%/ -]*")
#: The marks between fields, the surest first; no mark stands for blanks.
_MARKS: Final = ("|", "\t", ";", ",", "")


class _TableLine(NamedTuple):
    """A line that is not blank, with its place; `is_apart` where a blank line stands before it."""

    start: int
    end: int
    text: str
    is_apart: bool


class _FoundTable(NamedTuple):
    """The places of the first row of a table and of its end, and what stands above its rows."""

    rows: int
    end: int
    head: str


class TableHeads:
    """The heads of the tables of a text: Markdown, separated values, and columns set apart by blanks.

    The time is linear in the text.
    """

    def __init__(self, text: str, head: str = "") -> None:
        """Find the tables of a text, which may begin within one that has this head."""
        heading, _, rest = head.partition("\n")
        before = f"{heading}\n\n{rest}\n" if rest else f"{head}\n" if head else ""  # a caption stands alone
        self._before = len(before)
        self._tables = list(_tables(_lines(before + text)))
        self._starts = [each.rows for each in self._tables]

    def above(self, start: int) -> str:
        r"""Return the lines that give a row its meaning, for a place in it; "" outside of a table and in its head.

        >>> text = "In crowns:\n\n| village | deficit |\n|---|---|\n| Elm | 5 |\n| Ash | 7 |"
        >>> TableHeads(text).above(text.index("| Ash"))
        'In crowns:\n| village | deficit |'
        """
        place = self._before + start
        at = bisect_right(self._starts, place) - 1
        return self._tables[at].head if at >= 0 and place < self._tables[at].end else ""


def add_head(heading: str, head: str) -> str:
    """Return the heading of a part with the head of its table on lines of their own."""
    return f"{heading}\n{head}" if head else heading


def head_within(heading: str) -> str:
    """Return the head of a table that the heading of a part has, "" if there is none."""
    return heading.partition("\n")[2]


def _lines(text: str) -> list[_TableLine]:
    found: list[_TableLine] = []
    for each in _LINE.finditer(text):
        gap = text[found[-1].end : each.start()] if found else "\n"
        found.append(_TableLine(each.start(), each.end(), each[0][:_LONGEST_LINE], gap.count("\n") > 1))
    return found


def _tables(lines: Sequence[_TableLine]) -> Iterator[_FoundTable]:
    at = 0
    while at < len(lines):
        stop = at + 1
        for mark in _MARKS:
            behind = _behind(lines, at, mark)
            if behind - at < _LEAST:
                continue
            stop = behind
            if count := _head_lines(lines, at, behind, mark):
                head = "\n".join((*_caption(lines, at), *(each.text.strip() for each in lines[at : at + count])))
                first = at + count + (count < behind - at and _is_separator(lines[at + count]))
                if first < behind:
                    yield _FoundTable(lines[first].start, lines[behind - 1].end, head[-LONGEST_HEAD:])
            break
        at = stop


def _behind(lines: Sequence[_TableLine], at: int, mark: str) -> int:
    """Return the number of the line behind those that have as many fields as one, without a blank line between."""
    if (mark or "  ") not in lines[at].text or len(lines[at].text) >= _LONGEST_LINE:
        return at
    width = len(_fields(lines[at].text, mark))
    if width < (2 if mark else 3):
        return at
    stop = at + 1
    while stop < len(lines) and not lines[stop].is_apart and len(_fields(lines[stop].text, mark)) == width:
        stop += 1
    return stop


def _fields(line: str, mark: str) -> list[str]:
    bare = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), line).strip(" ")
    if not mark:
        return _APART.split(bare.strip())
    cells = bare.removeprefix("|").removesuffix("|").replace(r"\|", "  ") if mark == "|" else bare
    return [each.strip() for each in cells.split(mark)]


def _is_separator(line: _TableLine) -> bool:
    return _SEPARATOR.fullmatch(line.text) is not None


def _head_lines(lines: Sequence[_TableLine], at: int, behind: int, mark: str) -> int:
    """Return how many lines name the columns; 0 if the first cannot do that."""
    for count in (1, 2):
        if at + count < behind and _is_separator(lines[at + count]):
            return count
    cells = [_fields(each.text, mark) for each in lines[at : min(behind, at + 2 + _LOOKED_AT)]]
    if not all(map(_can_name, cells[0])) or (mark == "" and not all(cells[0])):
        return 0
    return 2 if len(cells) > 2 and _goes_on(cells) else 1


def _can_name(field: str) -> bool:
    return len(field) <= _NAME and not field[:1].isdigit() and not _IN_PROSE.search(field)


def _goes_on(cells: Sequence[Sequence[str]]) -> bool:
    """Test if a second line names the columns too: one of them has numbers below it, and none there."""
    columns = zip(*cells, strict=True)
    numbers = ([bool(_NUMBER.fullmatch(cell)) for cell in column] for column in columns)
    return not any(map(_NUMBER.fullmatch, cells[1])) and any(all(each[2:]) for each in numbers)


def _caption(lines: Sequence[_TableLine], at: int) -> Iterator[str]:
    """Yield the short line that stands alone above a table, unless it is a heading."""
    if at == 0 or not (at == 1 or lines[at - 1].is_apart or _HEADING.match(lines[at - 2].text)):
        return
    above = lines[at - 1].text.strip()
    if len(above) <= (_INTRODUCTION if above.endswith(":") else _CAPTION) and not _HEADING.match(above):
        yield above
