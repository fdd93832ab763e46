"""Finds the conditions of a question: values, months and days, comparisons with a number, yes and no, exceptions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise

from batos.gate.values import figures
from batos.reckoning.columns import Column
from batos.reckoning.periods import date_conditions, is_plain_year
from batos.reckoning.phrases import Condition, NotComputed, Phrase, Unclear, choose_only

_COMPARE: dict[str, tuple[str, Callable[[Decimal, Decimal], bool]]] = {
    "gt": (">", Decimal.__gt__),
    "ge": (">=", Decimal.__ge__),
    "lt": ("<", Decimal.__lt__),
    "le": ("<=", Decimal.__le__),
}
#: Kinds of words for the rows of a table; before a number they name them: `positions 2 and 3`.
_ROWS = ("about", "row")
#: Kinds of small words that may stand between a `not` and what it denies.
_SMALL = ("from", "to", "within", "for", "this", "per")


def conditions(
    said: Sequence[Phrase], columns: Sequence[Column], about: frozenset[str], today: date
) -> list[Condition]:
    """Return the conditions that the mentions of a question set.

    Raises: NotComputed: a number, a date or a word such as `not` belongs to nothing.
    """
    behind = [*(each.kind for each in said[1:]), ""]
    meant = [one for one, after in zip(said, behind, strict=True) if one.kind not in _ROWS or after == "number"]
    return [
        *_value_conditions(meant, columns),
        *_flag_conditions(meant, columns),
        *_number_conditions(meant, columns),
        *date_conditions(meant, columns, about, today),
    ]


def _value_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each column of which cells are named; cells of one column are alternatives."""
    chosen: dict[tuple[int, bool], set[str]] = defaultdict(set)
    excluding = False
    for at, mention in enumerate(said):
        if mention.kind in ("except", "not"):
            denied = _find_denied(said, at)
            excluding = denied.kind == "value"
            if not excluding and not (mention.kind == "not" and _is_flag(denied, columns)):
                raise NotComputed(mention.text)
        elif mention.kind == "value":
            place, cells = _one_value(mention, said, columns)
            chosen[place, excluding] |= cells
        elif mention.kind not in ("column", *_SMALL):
            excluding = False
    return [_value_condition(columns[place], cells, out) for (place, out), cells in chosen.items()]


def _find_denied(said: Sequence[Phrase], at: int) -> Phrase:
    """Return what stands behind a `not` or `except`, small words left out.

    Raises: NotComputed: nothing does.
    """
    following = [each for each in said[at + 1 :] if each.kind not in _SMALL]
    named = [each for each in following[:2] if each.kind == "value"]
    if not following:
        raise NotComputed(said[at].text)
    return named[0] if following[0].kind == "column" and named else following[0]


def _value_condition(column: Column, cells: set[str], out: bool) -> Condition:
    names = " or ".join(sorted(cells))
    holds = tuple(None if not cell.strip() else (cell in cells) is not out for cell in column.texts)
    return Condition(f"{column.name or 'entry'} {'is not' if out else '='} {names}", column.place, holds)


def _one_value(mention: Phrase, said: Sequence[Phrase], columns: Sequence[Column]) -> tuple[int, set[str]]:
    """Return the column and the cells that a mention names, by a column that is named if several have the value.

    Raises: Unclear: several columns, or several values of one.
    """
    places = {place for place, _ in mention.values}
    if len(places) > 1:
        places &= {place for each in said if each.kind == "column" for place in each.columns}
        if len(places) != 1:
            raise Unclear(f"{columns[place].name or 'entry'} = {cell}" for place, cell in sorted(mention.values))
    place = next(iter(places))
    cells = {cell for at, cell in mention.values if at == place}
    if len({cell.casefold().strip() for cell in cells}) > 1:
        raise Unclear(f"{columns[place].name or 'entry'} = {cell}" for cell in sorted(cells))
    return place, cells


def _flag_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each column of yes and no that is named."""
    found = []
    denied = False
    for mention in said:
        if mention.kind == "not":
            denied = True
        elif mention.kind == "column" and _is_flag(mention, columns):
            column = columns[next(iter(mention.columns))]
            holds = tuple(each if each is None else each is not denied for each in column.flags)
            found.append(Condition(f"{column.name} = {'no' if denied else 'yes'}", column.place, holds))
            denied = False
        elif mention.kind not in _SMALL:
            denied = False
    return found


def _is_flag(mention: Phrase, columns: Sequence[Column]) -> bool:
    return len(mention.columns) == 1 and bool(columns[next(iter(mention.columns))].flags)


def _number_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each number: a comparison, a range, or the numbers behind the name of a column."""
    found: list[Condition] = []
    at = 0
    numbers = [place for place, each in enumerate(said) if each.kind == "number" or is_plain_year(said, place)]
    while at < len(numbers):
        place = numbers[at]
        before = said[place - 1] if place else None
        after = next((each for each in said[place + 1 : place + 3] if each.kind in _COMPARE), None)
        if before is not None and before.kind == "between" and at + 1 < len(numbers):
            low, high = _value(said[place]), _value(said[numbers[at + 1]])
            column = _find_compared(said, numbers[at + 1], columns)
            holds = tuple(None if each is None else low <= each <= high for each in column.numbers)
            found.append(Condition(f"{column.name} from {low} to {high}", column.place, holds))
            at += 1
        elif before is not None and before.kind in _COMPARE:
            found.append(_comparison(before.kind, said, place, columns))
        elif after is not None and said[place + 1] in (after, said[place + 1]) and _is_behind(said, place):
            found.append(_comparison(after.kind, said, place, columns))
        elif before is not None and before.kind in ("column", "number", *_ROWS):
            found = _equal(found, said, place, columns)
        else:
            raise NotComputed
        at += 1
    if sum(each.kind in (*_COMPARE, "between") for each in said) > len(found) + _count_dates(said):
        raise NotComputed
    return found


def _count_dates(said: Sequence[Phrase]) -> int:
    return sum(one.kind == "between" and other.kind in ("date", "quarter") for one, other in pairwise(said))


def _is_behind(said: Sequence[Phrase], place: int) -> bool:
    """Test if a comparison stands behind its number, as in Chinese and Japanese."""
    return not said[place + 1].text.isascii()


def _value(mention: Phrase) -> Decimal:
    """Return the value of a number of the question.

    Raises: NotComputed: it can be read in two ways.
    """
    readings = figures.readings(mention.text)
    if len(readings) != 1:
        raise NotComputed
    return next(iter(readings))


def _comparison(kind: str, said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> Condition:
    sign, compare = _COMPARE[kind]
    column, limit = _find_compared(said, place, columns), _value(said[place])
    holds = tuple(None if each is None else compare(each, limit) for each in column.numbers)
    return Condition(f"{column.name} {sign} {limit}", column.place, holds)


def _find_compared(said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> Column:
    """Return the column of numbers that a comparison is about: named beside the number, else before it, else the only
    one.

    Raises: Unclear: several can be meant. NotComputed: its numbers have several units.
    """
    after = next((each for each in said[place + 1 :] if each.kind not in _SMALL), None)
    near = [after] if after else []
    near += [each for each in reversed(said[:place]) if each.columns]
    named = ([columns[at] for at in sorted(each.columns) if columns[at].is_measure] for each in near)
    column = choose_only(next(filter(None, named), [each for each in columns if each.is_measure]))
    if column.is_mixed:
        raise NotComputed(column.unit)
    return column


def _equal(found: list[Condition], said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> list[Condition]:
    """Add the rows whose named column has a number: `positions 2, 3 and 4`."""
    named = next((each for each in reversed(said[:place]) if each.kind != "number"), None)
    places = sorted(named.columns) if named is not None and named.kind == "column" else []
    if named is not None and named.kind in _ROWS:
        places = [each.place for each in columns if each.place == 0 and each.is_key]
    places = [each for each in places if columns[each].numbers and not columns[each].is_money]
    if len(places) != 1:
        raise NotComputed
    column, value = columns[places[0]], _value(said[place])
    if value not in column.numbers:
        raise NotComputed
    same = [each for each in found if each.column == column.place and "=" in each.said]
    others = [each for each in found if each not in same]
    known = same[0].holds if same else (False,) * len(column.numbers)
    holds = tuple(old or number == value for old, number in zip(known, column.numbers, strict=True))
    return [
        *others,
        Condition(f"{same[0].said} or {value}" if same else f"{column.name} = {value}", column.place, holds),
    ]
