"""Computes what a question asks of one table: a count, sum, average, highest or lowest value of the rows it means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from batos.reckoning import filters, record_lists
from batos.reckoning.columns import Column, read_columns
from batos.reckoning.operations import OPERATIONS, Wish, read_wish
from batos.reckoning.phrases import Condition, Index, NotComputed, Phrase, read
from batos.reckoning.question_words import Word, fold
from batos.reckoning.tables import Row, Table

#: The share of a text that a table has to be for a question that names nothing of it.
_MOST_OF_IT = 0.6
#: Digits of an average behind those that its numbers have.
_MORE_DIGITS = 2


@dataclass(frozen=True, slots=True)
class TableResult:
    """A computed value and how it came about: the operation, its column, the conditions, and the rows.

    `terms` are the values that were added up or compared, `labels` the entries that have the highest or lowest value,
    `entries` what the rows are called.
    """

    value: Decimal
    operation: str
    said: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: tuple[Row, ...]
    of: int
    column: str = ""
    unit: str = ""
    terms: tuple[Decimal, ...] = ()
    labels: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


def compute(question: str, said: Sequence[Word], language: str, table: Table, today: date) -> TableResult:
    """Compute the answer to a question from a table.

    Raises: NotComputed: the question does not clearly ask for it. Unclear: several columns or operations fit.
    """
    keep = [at for at, row in enumerate(table.rows) if not _is_total(row, at == len(table.rows) - 1)]
    columns = read_columns(table, keep)
    if columns is None or not keep:
        raise NotComputed
    if not table.is_named and not any(each.numbers or each.days or each.flags for each in columns):
        raise NotComputed  # nothing tells the names of columns from the first row
    index = Index.build(table, columns, said)
    mentions = read(question, said, language, index)
    mentions = [each for each in mentions if each.kind not in ("stop", "alone")]
    wish = read_wish(mentions, columns, index)
    if not _names_table(mentions) and not _fills(table):
        raise NotComputed  # another part of the text may be meant
    found = filters.conditions(mentions, columns, index.about, today)
    if wish.operation == "count" and not found and not _counts_all(mentions, columns):
        raise NotComputed
    rows = [table.rows[at] for at in keep]
    return _compute_groups(wish, rows, found) if wish.grouped else _single(wish, rows, found, table.columns)


def _is_total(row: Row, is_last: bool) -> bool:
    """Test if a row adds up others: its first cell with a text says so."""
    first = next((each for each in row.cells if each.strip()), "")
    return record_lists.is_total(first) or (is_last and record_lists.is_total(first.partition(" ")[0]))


def _names_table(mentions: Sequence[Phrase]) -> bool:
    """Test if a question has a word of the table: of its heading, its columns or its cells."""
    return any(each.kind in ("about", "value") or each.columns for each in mentions)


def _fills(table: Table) -> bool:
    """Test if a text is hardly more than its table."""
    return sum(row.end - row.start for row in table.rows) > _MOST_OF_IT * len(table.source.text)


def _counts_all(mentions: Sequence[Phrase], columns: Sequence[Column]) -> bool:
    """Test if a question that counts says that it means the rows of this table."""
    return any(each.kind == "about" or 0 in each.columns for each in mentions)


def _split(rows: Sequence[Row], found: Sequence[Condition], column: Column | None) -> tuple[list[int], list[Row]]:
    """Return the numbers of the rows that all conditions hold for, and those whose cells do not tell."""
    chosen, unknown = [], []
    for at, row in enumerate(rows):
        holds = [each.holds[at] for each in found]
        if any(each is False for each in holds):
            continue
        if None in holds or (column is not None and column.numbers and column.numbers[at] is None):
            unknown.append(row)
        else:
            chosen.append(at)
    return chosen, unknown


def _single(wish: Wish, rows: Sequence[Row], found: Sequence[Condition], names: Sequence[str]) -> TableResult:
    column = wish.column
    chosen, unknown = _split(rows, found, column)
    picked = tuple(rows[at] for at in chosen)
    said, left_out = tuple(each.said for each in found), tuple(unknown)
    if wish.operation == "count":
        first = tuple(each.cells[0] for each in picked)
        entries = first if len(set(first)) == len(first) and all(first) else ()
        return TableResult(Decimal(len(chosen)), "count of rows", said, picked, left_out, len(rows), entries=entries)
    if column is None or not chosen:
        raise NotComputed
    if wish.operation == "distinct":
        different = Decimal(len({fold(column.texts[at]).strip() for at in chosen} - {""}))
        named = f"count of different entries of {column.name}"
        return TableResult(different, named, said, picked, left_out, len(rows), column.name)
    terms = tuple(value for at in chosen if (value := column.numbers[at]) is not None)
    value = _value(wish.operation, terms)
    labels: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    if wish.operation in ("max", "min"):
        chosen = [at for at in chosen if column.numbers[at] == value]
        picked = tuple(rows[at] for at in chosen)
        whole = tuple(_label(each, column, names) for each in picked)
        labels = tuple(wish.asked.texts[at] for at in chosen) if wish.asked else whole
    named, all_of_them = OPERATIONS[wish.operation], len(rows)
    return TableResult(
        value, named, said, picked, left_out, all_of_them, column.name, column.unit, terms, labels, whole
    )


def _label(row: Row, column: Column, columns: Sequence[str]) -> str:
    """Return the other cells of a row with their names."""
    cells = enumerate(zip(columns, row.cells, strict=True))
    return ", ".join(f"{name} {cell}".strip() for place, (name, cell) in cells if place != column.place and cell)


def _value(operation: str, terms: Sequence[Decimal]) -> Decimal:
    if operation == "avg":
        digits = max(-_exponent(each) for each in terms)
        mean = (sum(terms, Decimal(0)) / len(terms)).quantize(Decimal(1).scaleb(-digits - _MORE_DIGITS))
        short = mean.quantize(Decimal(1).scaleb(-digits))
        return short if short == mean else mean
    combine: dict[str, Callable[[Sequence[Decimal]], Decimal]] = {"max": max, "min": min}
    return combine[operation](terms) if operation in combine else sum(terms, Decimal(0))


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return min(exponent, 0) if isinstance(exponent, int) else 0


def _compute_groups(wish: Wish, rows: Sequence[Row], found: Sequence[Condition]) -> TableResult:
    """Return the entries of a column whose rows together have the most or the least."""
    asked = wish.asked
    chosen, unknown = _split(rows, found, wish.column)
    if asked is None or not chosen:
        raise NotComputed
    groups: dict[str, list[int]] = defaultdict(list)
    for at in chosen:
        groups[fold(asked.texts[at]).strip()].append(at)
    groups.pop("", None)
    values = {
        name: _value(wish.grouped, [wish.column.numbers[at] or Decimal(0) for at in places])
        if wish.column
        else Decimal(len(places))
        for name, places in groups.items()
    }
    best = _value(wish.operation, list(values.values()))
    winners = [name for name, value in values.items() if value == best]
    picked = [at for at in chosen if fold(asked.texts[at]).strip() in winners]
    what = f"{OPERATIONS[wish.grouped]}{f' of {wish.column.name}' if wish.column else ''} by {asked.name}"
    labels = tuple(dict.fromkeys(asked.texts[at] for at in picked))
    named, said = f"{OPERATIONS[wish.operation]} {what}", tuple(each.said for each in found)
    name, unit = (wish.column.name, wish.column.unit) if wish.column else ("", "")
    shown = tuple(rows[at] for at in picked)
    return TableResult(best, named, said, shown, tuple(unknown), len(rows), name, unit, labels=labels)
