"""Reads tables from texts: separated values, Markdown, aligned columns, and lists of records; only where it is sure."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from batos.memory.evidence import Passage
from batos.reckoning import record_lists
from batos.reckoning.question_words import signs
from batos.reckoning.record_lists import TextLine

#: Characters of a heading or a cell that may name something; longer ones are prose.
_NAME = 60
_MARK = re.compile(r"\*\*|__|`")
_SEPARATOR = re.compile(r"[\s|:-]{3,}")
_ALIGNED = re.compile(r"\s{2,}|\t+")
_HEADING = re.compile(r"#{1,6}\s+(.*)|\*\*([^*]+)\*\*:?\s*")
#: The least that a line of fields has: a mark between them, or a number.
_FIELDS = re.compile(r"[|,;\t:：、，；]|\s\s|\d")
#: Rows and columns of a table that is read; more than that takes over a second.
_MOST_ROWS, _MOST_COLUMNS = 20_000, 200
_LEVEL = re.compile(r"(#{1,6})\s+(.{1,120})")
_DATED = re.compile(r"\[?([^\]]{1,60}?)\]?(?:\s+[-–—]\s+|:\s+|\s+\()(\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{4})\)?")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+\S*", re.IGNORECASE)
#: Blanks that a file may lose at the cut between two passages.
_BLANKS = 4
_DELIMITERS = "\t;|,"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the evidence: the name of its file, its digest, and the place of the text in the file in characters.

    Without an `open_start` or `open_end` the file has nothing before or behind it.
    """

    name: str
    text: str
    sha256: str = ""
    start: int = 0
    open_start: bool = False
    open_end: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, with its (start, end) in the file."""

    cells: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a text: its columns, its rows, and the heading, caption and file name that say what it is about."""

    source: Text
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    about: str
    #: True if the form says which line has the names, or the names are units.
    is_named: bool = False


def texts_of(passages: Sequence[Passage], missing: Container[str] = ()) -> list[Text]:
    """Join the passages of each file at their places; a file of which passages are missing is open at its gaps.

    `missing` has the digests of files from which passages were left out before the first or behind the last.
    """
    found: list[Text] = []
    ordered = sorted(passages, key=lambda each: (each.name, each.sha256, each.start))
    for (name, sha256), group in groupby(ordered, key=lambda each: (each.name, each.sha256)):
        runs: list[Text] = []
        for each in group:
            last = runs[-1] if runs else None
            gap = each.start - last.start - len(last.text) if last else 0
            if last is not None and (gap <= _BLANKS or gap == len(each.lead)):
                lead = each.lead if gap == len(each.lead) else "\n" * gap
                runs[-1] = replace(last, text=last.text + lead + each.text[max(0, -gap) :])
                continue
            if last is not None:
                runs[-1] = replace(last, open_end=True)
            runs.append(Text(name, each.text, sha256, each.start, last is not None))
        if sha256 in missing:
            runs[0] = replace(runs[0], open_start=True)
            runs[-1] = replace(runs[-1], open_end=True)
        found += runs
    return found


def read_tables(source: Text) -> list[Table]:
    """Return the tables of a text that can be read with certainty."""
    lines = _lines(source.text)
    found: list[Table] = []
    at = 0
    heading = ""
    while at < len(lines):
        if named := _HEADING.fullmatch(lines[at].text.strip()):
            heading = named[1] or named[2]
        stop, table = _table_at(source, lines, at)
        if table is not None and not (source.open_end and stop >= len(lines)) and not (source.open_start and at == 0):
            about = " \n".join((_stem(source.name), heading, _caption(lines, at)))
            found.append(replace(table, about=about))
        at = max(stop, at + 1)
    headings = None if source.open_start or source.open_end else _dated_headings(source, lines)
    return [*found, headings] if headings else found


def _dated_headings(source: Text, lines: Sequence[TextLine]) -> Table | None:
    """Return the headings of one level that end with a date as a table: the releases of a changelog, the days of a
    diary.

    Nothing is returned if a heading of that level has no date.
    """
    headings = [(line, found) for line in lines if (found := _LEVEL.fullmatch(line.text))]
    dated = [(line, found[1], _DATED.fullmatch(found[2])) for line, found in headings]
    level = next((level for _, level, found in dated if found), "")
    rows = [(line, found) for line, other, found in dated if other == level]
    if len(rows) < 2 or not all(found for _, found in rows):
        return None
    start = source.start
    cells = [Row((each[1], each[2]), start + line.start, start + line.end) for line, each in rows if each]
    releases = " ".join(signs("releases")) if all(_VERSION.fullmatch(each.cells[0]) for each in cells) else ""
    above = next((found[2] for _, found in headings if len(found[1]) < len(level)), "")
    return Table(source, ("", "date"), tuple(cells), f"{_stem(source.name)} \n{above} \n{releases}", True)


def _stem(name: str) -> str:
    """Return a file's name without its folder."""
    return re.split(r"[/\\]", name)[-1]


def _lines(text: str) -> list[TextLine]:
    """Return the lines that are not blank, with their places."""
    found, start, is_apart = [], 0, False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip(" \r\n")  # a tab at the end is an empty cell
        if bare.strip():
            found.append(TextLine(bare, start, is_apart))
        is_apart = not bare.strip()
        start += len(line)
    return found


def _caption(lines: Sequence[TextLine], at: int) -> str:
    """Return the short line above a table that introduces it."""
    above = lines[at - 1].text.strip() if at else ""
    return above.strip("#*-: ") if 0 < len(above) <= 2 * _NAME and "|" not in above else ""


def _table_at(source: Text, lines: Sequence[TextLine], at: int) -> tuple[int, Table | None]:
    """Return the table that begins at a line, and the number of the line behind it."""
    if not _FIELDS.search(lines[at].text):
        return at, None
    for reader in (_read_markdown, _read_separated, _read_listed):
        stop, table = reader(source, lines, at)
        if stop > at:
            return stop, table
    return at, None


def _read_markdown(source: Text, lines: Sequence[TextLine], at: int) -> tuple[int, Table | None]:
    if at + 2 >= len(lines) or "|" not in lines[at].text or not _is_separator(lines, at + 1):
        return at, None
    stop = at + 2
    while stop < len(lines) and "|" in lines[stop].text and not _is_separator(lines, stop + 1):
        stop += 1
    taken = [lines[at], *lines[at + 2 : stop]]
    cells = [re.split(r"(?<!\\)\|", each.text.strip().removeprefix("|").removesuffix("|")) for each in taken]
    return stop, _make(source, taken, cells, True)


def _is_separator(lines: Sequence[TextLine], at: int) -> bool:
    line = lines[at].text if at < len(lines) else ""
    return "-" in line and "|" in line and _SEPARATOR.fullmatch(line) is not None


def _read_separated(source: Text, lines: Sequence[TextLine], at: int) -> tuple[int, Table | None]:
    """Read columns with a mark between them, two at least, or set apart by two blanks or more, three at least."""
    for delimiter in (*_DELIMITERS, ""):
        split = partial(_fields, delimiter=delimiter)
        head = split(lines[at].text)
        labelled = delimiter and _are_labelled(lines[at + 1 : at + 3], delimiter)
        if len(head) > (1 if delimiter else 2) and _is_head(head) and not labelled:
            stop, table = _columns(source, lines, at, split)
            if stop > at:
                return stop, table
    return at, None


def _are_labelled(lines: Sequence[TextLine], delimiter: str) -> bool:
    """Test if lines under names are items of a list, such as `Bolts: 12,400 pieces`, or stand apart from the names."""
    return any(each.is_apart for each in lines[:1]) or all(": " in each.text.partition(delimiter)[0] for each in lines)


def _columns(
    source: Text, lines: Sequence[TextLine], at: int, split: Callable[[str], list[str]]
) -> tuple[int, Table | None]:
    """Read the lines that have as many fields as the first one, two at least beside it.

    A blank line does not end them, but a line of names behind it does. A line with another number of fields among them
    makes all of it unsure.
    """
    cells = [split(lines[at].text)]
    stop = at + 1
    while stop < len(lines):
        fields = split(lines[stop].text)
        if len(fields) != len(cells[0]) or (lines[stop].is_apart and _is_head(fields)):
            break
        cells.append(fields)
        stop += 1
    if len(cells) < 3:
        return at, None
    sure = stop == len(lines) or lines[stop].is_apart or len(split(lines[stop].text)) == 1
    return stop, _make(source, lines[at:stop], cells) if sure else None


def _fields(line: str, delimiter: str) -> list[str]:
    """Split a line at a mark, or at two blanks and more if there is none."""
    if not delimiter:
        return _ALIGNED.split(line.strip())
    if delimiter not in line:
        return [line]
    if '"' not in line or line.count('"') % 2:
        return line.split(delimiter) if '"' not in line else [line]
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
    except (csv.Error, StopIteration):
        return [line]


def _is_head(fields: Sequence[str]) -> bool:
    """Test if fields can be the names of columns: each short, none a number, each another."""
    bare = [each.strip() for each in fields]
    named = all(each and len(each) <= _NAME and not each[0].isdigit() and each[-1] not in ".!?;" for each in bare)
    named = named and not any(each in "".join(bare) for each in ":=")
    return named and len({each.casefold() for each in bare}) == len(bare)


def _read_listed(source: Text, lines: Sequence[TextLine], at: int) -> tuple[int, Table | None]:
    """Read lines such as `- Kettle: 80 units, 39.50 euro`, whose columns are named by their units."""
    stop, head, cells = record_lists.read(lines, at)
    if stop <= at:
        return at, None
    return stop, _make(source, [lines[at], *lines[at:stop]], [head, *cells], True) if head else None


def _make(
    source: Text, lines: Sequence[TextLine], cells: Sequence[Sequence[str]], is_named: bool = False
) -> Table | None:
    """Return the table of lines of fields, the first of which are its names; None if a line does not fit them."""
    if len(cells) > _MOST_ROWS or len(cells[0]) > _MOST_COLUMNS:
        return None
    head, *body = ([_MARK.sub("", field).strip() for field in fields] for fields in cells)
    if any(len(each) != len(head) for each in body):
        return None
    rows = tuple(
        Row(tuple(fields), source.start + line.start, source.start + line.end)
        for line, fields in zip(lines[1:], body, strict=True)
        if fields != head
    )
    return Table(source, tuple(head), rows, "", is_named) if rows else None


def iterate_lines(source: Text) -> Iterator[tuple[str, int]]:
    """Yield the lines of a text with the place of each in its file."""
    return ((each.text, source.start + each.start) for each in _lines(source.text))
