"""Reads the columns of a table: numbers in the notation that the table has, dates in one order of day and month."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from batos.gate.texts import languages
from batos.gate.values import dates, figures
from batos.reckoning import record_lists
from batos.reckoning.known_phrases import CONCEPTS, MEASURES, signs
from batos.reckoning.question_words import fold, root, tokens
from batos.reckoning.tables import Table
from batos.reckoning.written import decimal_mark

#: A year, a month and a day; 0 for what is not said.
Date = tuple[int, int, int]
_GROUPS = re.compile("[ \u00a0\u202f\u2009'’]")
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
        """Tell whether its numbers can be added up, compared or averaged."""
        return bool(self.numbers) and not self.is_key

    @property
    def is_money(self) -> bool:
        """Tell whether its numbers are amounts of a currency."""
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
    marks = _marks(each for each in amounts if each)
    native = decimal_mark(languages.guess(table.source.text) or "")
    found = []
    for place, cells in enumerate(texts):
        numbers = _numbers(amounts[place], marks, native) if amounts[place] else ()
        if numbers is None:
            return None
        found.append(_column(table.columns[place], place, cells, numbers, amounts[place]))
    return found


def _column(
    name: str,
    place: int,
    cells: tuple[str, ...],
    numbers: tuple[Decimal | None, ...],
    amounts: Sequence[record_lists.Amount | None],
) -> Column:
    words = tokens(_CAMEL.sub(" ", name))
    bracketed = {each.root for found in _BRACKETS.findall(name) for each in tokens(found)}
    roots = frozenset(each.root for each in words) - bracketed or frozenset(each.root for each in words)
    signs = {concept for word, concept in CONCEPTS.items() if word > "\u3000" and len(word) > 1 and word in name}
    concepts = frozenset(filter(None, (concept_of(each.word) for each in words)))
    days = () if numbers and not _are_years(numbers, concepts) else _days(cells)
    units = Counter(_unit(each) for each in amounts if each is not None)
    unit = next(iter(units)) if len(units) == 1 else " ".join(units)
    written = next((each.unit or each.before for each in amounts if each is not None), "")
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


def _are_years(numbers: Iterable[Decimal | None], concepts: frozenset[str]) -> bool:
    return "month" in concepts and all(each is None or 1 <= each <= 12 for each in numbers)


def _is_key(place: int, numbers: Sequence[Decimal | None]) -> bool:
    """Test if numbers name their rows: whole, in the first column, each once and rising, most by one."""
    if place or len(numbers) < 3 or any(each is None or each % 1 for each in numbers):
        return False
    whole = [int(each) for each in numbers if each is not None]
    return whole == list(range(whole[0], whole[0] + len(whole))) or (min(whole) > 999 and whole == sorted(set(whole)))


def _amounts(cells: Sequence[str]) -> list[record_lists.Amount | None]:
    """Return the numbers of cells if most of those that have a value are numbers; an empty list if not."""
    known = Counter(cells)
    filled = sum(count for cell, count in known.items() if not record_lists.is_missing(cell))
    read: dict[str, record_lists.Amount | None] = {}
    other = 0
    for cell, count in known.items():
        read[cell] = None if record_lists.is_missing(cell) else record_lists.amount_of(cell)
        other += count if read[cell] is None and not record_lists.is_missing(cell) else 0
        if other > (1 - _NUMERIC) * filled:
            return []
    return [read[cell] for cell in cells] if filled else []


def _with_mark(figure: figures.Figure, mark: str) -> Decimal | None:
    """Return the value of a number if `mark` is the decimal mark, or None if it cannot be."""
    other = "," if mark == "." else "."
    value = (
        Decimal(_GROUPS.sub("", figure.text).replace(other, "").replace(mark, "."))
        if figure.text.count(mark) < 2
        else None
    )
    return value if value in figure.readings else None


def _possible(amounts: Iterable[record_lists.Amount | None]) -> frozenset[str]:
    found = frozenset(".,")
    for each in {id(each): each for each in amounts}.values():
        if each is not None:
            found &= {mark for mark in ".," if _with_mark(each.figure, mark) is not None}
    return found


def _marks(columns: Iterable[Sequence[record_lists.Amount | None]]) -> frozenset[str]:
    """Return the decimal marks that all numbers of a table allow."""
    return _possible(each for column in columns for each in column)


def _numbers(
    amounts: Sequence[record_lists.Amount | None], marks: frozenset[str], native: str
) -> tuple[Decimal | None, ...] | None:
    """Return the values of a column in the notation of its table, else its own; None if both marks give other values.

    The language of the text tells only that `2,150` is whole in English, never that `2.150` is not.
    """
    possible = marks or _possible(amounts)
    read = {}
    distinct = {id(each): each for each in amounts}.values()  # equal cells are one object
    for mark in possible:
        known = {id(each): _read_signed(each, mark) for each in distinct if each is not None}
        read[mark] = tuple(known.get(id(each)) for each in amounts)
    values = list(read.values())
    if values and all(each == values[0] for each in values):
        return values[0]
    whole = {mark: each for mark, each in read.items() if all(not (one or 0) % 1 for one in each)}
    if len(whole) == 1 and (native in whole or _are_hundreds(distinct)):
        return next(iter(whole.values()))
    return None


def _are_hundreds(amounts: Iterable[record_lists.Amount | None]) -> bool:
    """Test if the numbers without marks all have three digits: beside them `1.204` is no fraction."""
    bare = [each.figure.text for each in amounts if each is not None and each.figure.text.isdigit()]
    return bool(bare) and all(len(each) == 3 for each in bare)


def _read_signed(amount: record_lists.Amount, mark: str) -> Decimal | None:
    value = _with_mark(amount.figure, mark)
    return -value if value is not None and amount.negative else value


def _flags(cells: Sequence[str]) -> tuple[bool | None, ...]:
    """Return cells of yes and no as truth; nothing if another word is among them."""
    folded = [fold(each).strip() for each in cells]
    if not any(each in _YES for each in folded) or any(each and each not in _YES | _NO for each in folded):
        return ()
    return tuple(True if each in _YES else False if each in _NO else None for each in folded)


def _days(cells: Sequence[str]) -> tuple[Date | None, ...]:
    """Return the dates of a column; nothing if a cell is no date, or day and month can be told apart in none."""
    known: dict[str, tuple[Date | None, Date | None] | None] = {}
    for cell in set(cells):
        readings = None if record_lists.is_missing(cell) else _readings(cell)
        if readings == ():
            return ()
        known[cell] = readings or None
    if not any(known.values()):
        return ()
    for order in (0, 1):
        if all(each is None or each[order] is not None for each in known.values()):
            other = all(each is None or each[1 - order] in (None, each[order]) for each in known.values())
            both = all(each is None or each[1 - order] is not None for each in known.values())
            if other or not both:
                return tuple(None if each is None else each[order] for each in map(known.__getitem__, cells))
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
        by_order = (
            {each for each in readings if each[1:] == (other, one)},
            {e for e in readings if e[1:] == (one, other)},
        )
        first, second = (max(each, default=None) for each in by_order)
        return first, second
    return (readings[-1],) * 2


def month_of(word: str) -> int:
    """Return the number of the month that a word names, 0 if it names none.

    >>> month_of("März"), month_of("lamp")
    (3, 0)
    """
    found = dates.find(f"1 {word.strip('.')} 2000")
    return next(iter(found[0].readings))[1] if found and found[0].end - found[0].start > len(word) else 0
