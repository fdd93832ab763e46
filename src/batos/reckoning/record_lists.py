"""Reads lists of records such as `- Kettle: 80 units, 39.50 euro` or `Rent: 850 EUR`, whose units name the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from batos.gate import dates, figures
from batos.reckoning.question_words import fold, root, signs

#: The name of a column of bare numbers.
NUMBER = "#"
_DIGIT = re.compile(r"\d")
_GROUPS = re.compile("[ \u00a0\u202f\u2009'’]")
_BULLET = re.compile(r"\s*(?:[-*•–·+]|\d{1,3}[.)])\s+")
_LABEL = re.compile(r"([^:：,;]{1,60}?)\s*(?:\.{3,}|[:：]|\s[–—-]\s)\s*(?=\S)")
_FIELDS = re.compile(r"[,;]\s+|\s[|/]\s|[、，；]")
_INNER = re.compile(r"([^\d:=]{1,30}?)\s*[:=]\s*(.+)")
_MARKS = re.compile(r"\*\*|__|`")
#: Characters of a line that can be a record; a longer one is prose.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a text that is not blank, with its place; `is_apart` if a blank line stands before it."""

    text: str
    start: int
    is_apart: bool = False

    @property
    def end(self) -> int:
        """Return the place behind it."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Amount:
    """A cell that is one number, with its sign, what stands before it and its unit."""

    figure: figures.Figure
    negative: bool
    before: str
    unit: str

    def value(self, mark: str) -> Decimal | None:
        """Return its value if `mark` is the decimal mark, None if it cannot be."""
        bare = _GROUPS.sub("", self.figure.text).replace("," if mark == "." else ".", "")
        value = Decimal(bare.replace(mark, ".")) if bare.count(mark) < 2 else None
        if value is None or value not in self.figure.readings:
            return None
        return -value if self.negative else value


def amount_of(cell: str) -> Amount | None:
    """Return the number of a cell that holds one number and at most a name, a currency or a unit; None of any other.

    >>> amount_of("39,50 Euro").unit, amount_of("-5").negative, amount_of("2 to 6")
    ('Euro', True, None)
    """
    found = figures.find(cell) if len(cell) <= _LONGEST and _DIGIT.search(cell) else []
    if len(found) != 1 or not found[0].readings:
        return None
    figure = found[0]
    before, after = cell[: figure.start].strip(), cell[figure.end :].strip()
    if _names_month(after) or _names_month(before):
        return None
    negative = before.endswith(("-", "−"))
    before = before.rstrip("-−+ ")
    said = before.strip("=: ")
    if not _is_unit(after) or not all(each.isalpha() or each in "€$£¥₹ ._" for each in said):
        return None
    return Amount(figure, negative, said, after.strip(". "))


@lru_cache(1024)
def _names_month(text: str) -> bool:
    """Test if a number beside a text makes a date."""
    return bool(text) and bool(dates.find(f"1 {text}") or dates.find(f"{text} 1"))


@lru_cache(1024)
def _is_unit(after: str) -> bool:
    """Test if the text behind a number can be its unit: at most three words without digits."""
    letters = all(each.isalpha() or each in "€$£¥₹%‰°/²³.µ() -" for each in after.replace("m2", "m²"))
    return letters and len(after.split()) <= 3 and len(after) <= 24


def is_currency(text: str) -> bool:
    """Test if a text names a currency."""
    return fold(text).strip(".") in signs("currencies")


def is_missing(cell: str) -> bool:
    """Test if a cell has no value, or a sign that says so."""
    return not cell.strip() or cell.strip().casefold() in signs("missing")


def is_total(cell: str) -> bool:
    """Test if a cell names a row that adds up others."""
    words = fold(cell[:_LONGEST]).replace(":", " ").split() if cell[:1].isalpha() else []
    return bool(words) and all(each in signs("totals") for each in words)


@dataclass(frozen=True, slots=True)
class _ListItem:
    style: str
    cells: tuple[str, ...]
    names: tuple[str | None, ...]

    @property
    def shape(self) -> list[str | None]:
        return [each if each is None else _shape(each) for each in self.names]


def read(lines: Sequence[TextLine], at: int) -> tuple[int, list[str], list[tuple[str, ...]]]:
    """Return the end of the list of records at a line, with names and cells; no names if it is not sure.

    All records have the same fields with the same units. Where a line of another shape stands beside them, nobody can
    tell what was meant.
    """
    found: list[_ListItem] = []
    stop = at
    while stop < len(lines):
        record = _record(lines[stop].text)
        if record is None or (found and not _alike(found[0], record)):
            break
        found.append(record)
        stop += 1
    if len(found) < 2:
        return at, [], []
    above = lines[at - 1].text if at and not lines[at].is_apart else ""
    below = lines[stop].text if stop < len(lines) and not lines[stop].is_apart else ""
    label = _LABEL.match(_MARKS.sub("", below).strip())
    if label is not None and is_total(label[1]):
        below, stop = "", stop + 1
    sure = not any(_is_item(each, found[0].style) for each in (above, below))
    width = range(len(found[0].cells))
    names = [next((each.names[place] for each in found if each.names[place]), "") for place in width]
    return stop, [each or "" for each in names] if sure else [], [each.cells for each in found]


def _is_item(line: str, style: str) -> bool:
    """Test if a line beside a list is another item of it that has other fields."""
    bullet = _BULLET.match(line)
    body = _MARKS.sub("", line[bullet.end() :] if bullet else line).strip()
    marked = _style(bullet[0].strip() if bullet else "") == style
    return marked and (bool(bullet) or _LABEL.match(body) is not None)


def _alike(one: _ListItem, other: _ListItem) -> bool:
    same = one.style == other.style and len(one.shape) == len(other.shape)
    return same and all(a == b or a is None or b is None for a, b in zip(one.shape, other.shape, strict=True))


def _record(line: str) -> _ListItem | None:
    """Return a line as a record, or None: its style, its fields, and the name of each; None names a missing field."""
    if len(line) > _LONGEST or line.lstrip().startswith(("|", "#", ">")):
        return None
    bullet = _BULLET.match(line)
    body = _MARKS.sub("", line[bullet.end() :] if bullet else line).strip().removesuffix(".")
    fields = _FIELDS.split(body)
    label = None if len(fields) > 1 and all(map(_INNER.fullmatch, fields)) else _LABEL.match(body)
    if label is None and bullet is None and not _INNER.match(body):
        return None
    fields = _FIELDS.split(body[label.end() :]) if label else fields
    if len(fields) + bool(label) < 2:
        return None
    cells, names = [], []
    for field in fields:
        name, cell = _name_field(field.strip())
        cells.append(cell)
        names.append(name)
    if label:
        cells, names = [label[1].strip(), *cells], ["", *names]
    if not any(names) and None not in names and not any(map(amount_of, cells)):
        return None
    style = _style(bullet[0].strip() if bullet else "")
    return _ListItem(style, tuple(cells), tuple(names))


@lru_cache(1024)
def _shape(name: str) -> str:
    return " ".join(root(word) for word in fold(name).split())


def _style(bullet: str) -> str:
    """Return the kind of a list's mark: the sign itself, or that it counts."""
    return "1." if bullet[:1].isdigit() else bullet


def _name_field(field: str) -> tuple[str | None, str]:
    """Return the name of a field's column and its cell: a number is named by the words before it or by its unit."""
    inner = _INNER.fullmatch(field)
    if inner:
        return inner[1], inner[2]
    if is_missing(field):
        return None, field
    amount = amount_of(field)
    if amount is None:
        return "", field
    if amount.before and not is_currency(amount.before):
        return amount.before, field[len(amount.before) :].strip()
    return amount.before or amount.unit or NUMBER, field
