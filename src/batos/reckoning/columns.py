"""Reads the columns of a table: numbers in the notation that the table has, dates in one order of day and month."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from batos.gate import dates, languages
from batos.memory.words_by_language import CAPITALISED, MONTH
from batos.reckoning import record_lists
from batos.reckoning.question_words import CONCEPTS, MEASURES, fold, root, signs, tokens
from batos.reckoning.reckonings import decimal_mark
from batos.reckoning.tables import Table

#: A year, a month and a day; 0 for what is not said.
Date = tuple[int, int, int]
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BRACKETS = re.compile(r"[(\[（](.*?)[)\]）]")
_YEAR_MONTH = re.compile(r"(\d{4})-(\d\d)")
_SLASHED = re.compile(r"(\d{1,2})/\s?(\d{1,2})/\s?(\d{2,4})")
_MONTH = re.compile(r"[^\W\d_]{3,12}\.?")
_BESIDE_DATE = re.compile(r"(?:[^\W\d_]{0,12}[.,]?\s*)?(?:[T,]?\s*\d{1,2}:\d\d(?::\d\d)?Z?)?(?:\s*Uhr)?")
_YES, _NO, _KEYS = (
    frozenset(map(fold, signs("yes"))),
    frozenset(map(fold, signs("no"))),
    frozenset(map(root, signs("keys"))),
)
_CONCEPT_ROOT = {root(word): concept for word, concept in CONCEPTS.items()}
#: The share of the cells with a value that must be numbers, so that the others are told as unreadable.
_NUMERIC = Decimal("0.6")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table by its name and place; `numbers`, `days` or `flags` have a value or None for each row."""

    name: str
    place: int
    texts: tuple[str, ...]
    roots: frozenset[str]
    concepts: frozenset[str]
    #: The roots of its unit's words, in its cells or in brackets behind its name.
    units: frozenset[str] = frozenset()
    numbers: tuple[Decimal | None, ...] = ()
    days: tuple[Date | None, ...] = ()
    flags: tuple[bool | None, ...] = ()
    unit: str = ""
    #: True if its numbers have several units.
    is_mixed: bool = False
    #: True if its numbers only name their rows: 1, 2, 3 and so on.
    is_key: bool = False

    @property
    def is_measure(self) -> bool:
        """Test if its numbers can be added up, compared or averaged."""
        return bool(self.numbers) and not self.is_key

    @property
    def is_money(self) -> bool:
        """Test if its numbers are amounts of a currency."""
        named = any(record_lists.is_currency(each.word) for each in tokens(self.name))
        return record_lists.is_currency(self.unit) or named or bool(self.concepts & {"price", "amount", "revenue"})


def concept_of(word: str) -> str | None:
    """Return the concept that a folded word names, or None.

    >>> concept_of("preis"), concept_of("prices"), concept_of("lamp")
    ('price', 'price', None)
    """
    return CONCEPTS.get(word) or _CONCEPT_ROOT.get(root(word))


def read_columns(table: Table, keep: Sequence[int]) -> list[Column] | None:
    """Return the columns of a table for the rows that are kept; None if the notation of its numbers is not clear."""
    texts = [tuple(table.rows[row].cells[place] for row in keep) for place in range(len(table.columns))]
    amounts = [_amounts(each) for each in texts]
    marks = _possible(amount for each in amounts for amount in each.values())
    native = decimal_mark(languages.guess(table.source.text) or "")
    found = []
    for place, cells in enumerate(texts):
        values = _values(amounts[place], marks, native)
        if values is None:
            return None
        numbers = tuple(map(values.get, cells)) if values else ()
        found.append(_column(table.columns[place], place, cells, numbers, amounts[place].values()))
    return found


def _column(
    name: str,
    place: int,
    cells: tuple[str, ...],
    numbers: tuple[Decimal | None, ...],
    amounts: Collection[record_lists.Amount],
) -> Column:
    words = tokens(_CAMEL.sub(" ", name))
    bracketed = {each.root for found in _BRACKETS.findall(name) for each in tokens(found)}
    roots = frozenset(each.root for each in words) - bracketed or frozenset(each.root for each in words)
    signs = {concept for word, concept in CONCEPTS.items() if word > "\u3000" and len(word) > 1 and word in name}
    concepts = frozenset(filter(None, (concept_of(each.word) for each in words)))
    are_months = "month" in concepts and all(each is None or 1 <= each <= 12 for each in numbers)
    days = () if numbers and not are_months else _days(cells)
    units = dict.fromkeys(map(_unit, amounts))
    unit = " ".join(units)
    written = next((each.unit or each.before for each in amounts), "")
    measured = {*fold(unit).split(), *fold(name).split(), *map(fold, _BRACKETS.findall(name))}
    concepts |= {MEASURES[each] for each in measured if each in MEASURES} | signs
    concepts -= {"quantity"} if "price" in concepts else set()  # a unit price counts no units
    return Column(
        name or (record_lists.NUMBER if numbers else ""),
        place,
        cells,
        roots - {record_lists.NUMBER},
        concepts,
        frozenset(each.root for each in tokens(unit)) | bracketed,
        () if days else numbers,
        days,
        () if numbers else _flags(cells),
        written,
        len(set(units) - {""}) > 1,
        bool(numbers) and (bool(roots & _KEYS) or _is_key(place, numbers)),
    )


def _unit(amount: record_lists.Amount) -> str:
    """Return the unit of a number, one name for the euro."""
    unit = " ".join(map(root, fold(amount.unit or amount.before).split()))
    return "euro" if unit in ("€", "eur", "euro", "euros") else unit


def _is_key(place: int, numbers: Sequence[Decimal | None]) -> bool:
    """Test if numbers name their rows: whole, in the first column, each once and rising, most by one."""
    if place or len(numbers) < 3 or any(each is None or each % 1 for each in numbers):
        return False
    whole = [int(each) for each in numbers if each is not None]
    return whole == list(range(whole[0], whole[0] + len(whole))) or (min(whole) > 999 and whole == sorted(set(whole)))


def _amounts(cells: Sequence[str]) -> dict[str, record_lists.Amount]:
    """Return the numbers of cells by their texts if most of those that have a value are numbers; none if not."""
    known = {cell: count for cell, count in Counter(cells).items() if not record_lists.is_missing(cell)}
    read: dict[str, record_lists.Amount] = {}
    room = (1 - _NUMERIC) * sum(known.values())
    for cell, count in known.items():
        if amount := record_lists.amount_of(cell):
            read[cell] = amount
        else:
            room -= count
        if room < 0:
            return {}
    return read


def _possible(amounts: Iterable[record_lists.Amount]) -> frozenset[str]:
    """Return the decimal marks that numbers allow."""
    found = frozenset(".,")
    for each in amounts:
        found &= {mark for mark in found if each.value(mark) is not None}
    return found


def _values(
    amounts: Mapping[str, record_lists.Amount], marks: frozenset[str], native: str
) -> dict[str, Decimal | None] | None:
    """Return the values of cells in the notation of their table, else their own; None if both marks give other values.

    The language of the text tells only that `2,150` is whole in English, never that `2.150` is not.
    """
    possible = marks or _possible(amounts.values())
    read = {mark: {cell: each.value(mark) for cell, each in amounts.items()} for mark in possible}
    values = list(read.values())
    if values and all(each == values[0] for each in values):
        return values[0]
    whole = {mark: each for mark, each in read.items() if all(not (one or 0) % 1 for one in each.values())}
    if len(whole) == 1 and (native in whole or _are_hundreds(amounts.values())):
        return next(iter(whole.values()))
    return None


def _are_hundreds(amounts: Iterable[record_lists.Amount]) -> bool:
    """Test if the numbers without marks all have three digits: beside them `1.204` is no fraction."""
    bare = [each.figure.text for each in amounts if each.figure.text.isdigit()]
    return bool(bare) and all(len(each) == 3 for each in bare)


def _flags(cells: Sequence[str]) -> tuple[bool | None, ...]:
    """Return cells of yes and no as truth; nothing if another word is among them."""
    folded = [fold(each).strip() for each in cells]
    if not any(each in _YES for each in folded) or any(each and each not in _YES | _NO for each in folded):
        return ()
    return tuple(True if each in _YES else False if each in _NO else None for each in folded)


def _days(cells: Sequence[str]) -> tuple[Date | None, ...]:
    """Return the dates of a column; nothing if a cell is no date, or day and month can be told apart in none."""
    known = {cell: _readings(cell) for cell in set(cells) if not record_lists.is_missing(cell)}
    first, second = ({cell: each[order] for cell, each in known.items() if each} for order in (0, 1))
    if not known or len(first) < len(known):
        return ()
    for days, others in ((first, second), (second, first)):
        if None not in days.values() and (None in others.values() or days == others):
            return tuple(map(days.get, cells))
    return ()


def _readings(cell: str) -> tuple[Date | None, Date | None] | tuple[()]:
    """Return the date of a cell with the day first and with the month first, or nothing if it is no date."""
    cell = cell.strip()
    if month := _YEAR_MONTH.fullmatch(cell):
        return ((int(month[1]), int(month[2]), 0),) * 2 if 1 <= int(month[2]) <= 12 else ()
    if _MONTH.fullmatch(cell):
        number = month_of(cell)
        return ((0, number, 0),) * 2 if number else ()
    found = dates.find(cell) if len(cell) < 60 else []
    if len(found) != 1 or not _BESIDE_DATE.fullmatch(f"{cell[: found[0].start]}{cell[found[0].end :]}".strip()):
        return ()
    readings = sorted(found[0].readings)
    if slashed := _SLASHED.search(found[0].text):
        one, other = int(slashed[1]), int(slashed[2])
        first, second = ([each for each in readings if each[1:] == order] for order in ((other, one), (one, other)))
        return max(first, default=None), max(second, default=None)
    return (readings[-1],) * 2


def month_of(word: str) -> int:
    """Return the number of the month that a word names, 0 if it names none.

    >>> month_of("März"), month_of("lamp")
    (3, 0)
    """
    bare = word.strip(".")
    return 0 if bare in CAPITALISED else MONTH.get(bare.casefold(), 0)
