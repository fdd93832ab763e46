"""Computes what a question asks of the tables and dates of the evidence, with the rows; nothing that is not sure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from batos.gate import figures
from batos.gate import languages as gate_languages
from batos.memory.evidence import Passage
from batos.reckoning import days, filters, operations, record_lists
from batos.reckoning.columns import Column, read_columns
from batos.reckoning.operations import Wish
from batos.reckoning.phrases import Condition, Index, NotComputed, Unclear, read
from batos.reckoning.question_words import Word, fold, kinds_of, languages, lexicon, signs, tokens
from batos.reckoning.reckonings import CitedRow, Reckoning, write_lead, write_number
from batos.reckoning.tables import Row, Table, Text, read_tables, texts_of

#: Characters of a question that asks for one computation, and those of a line.
_LONGEST, _LONGEST_LINE = 400, 600
#: Terms of a sum, and entries, that its line shows; of more the first ones.
_SHOWN = 12
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


def may_ask(question: str) -> bool:
    """Test if a question has a word that asks for a computation, before any text is read."""
    said = _words(question)
    return any(operations.has_operation(said, each) or days.has_date_wish(said, each) for each in languages(said))


def reckon(question: str, passages: Sequence[Passage], today: date, partial: Container[str] = ()) -> Reckoning | None:
    """Return what a question asks to be computed from passages, None if it is not clearly a computation.

    The passages of a file are put together. Give all that the file has, or its digest in `partial`: then a table at the
    edge of what is there is not used. `reckon_texts` has the same for whole texts.
    """
    return reckon_texts(question, texts_of(passages, partial), today)


def reckon_texts(question: str, texts: Sequence[Text], today: date) -> Reckoning | None:
    """Return what a question asks to be computed from texts, None if it is not clearly a computation."""
    said = _words(question)
    tables: list[Table] | None = None
    for language in languages(said):
        wants_yes = _wants_yes(said, language)
        if found := _by_dates(question, said, language, texts, today, wants_yes=wants_yes):
            return found
        if wants_yes or not operations.has_operation(said, language):
            continue
        tables = [table for text in texts for table in read_tables(text)] if tables is None else tables
        if found := _by_tables(question, said, language, tables, today):
            return found
    return None


def _words(question: str) -> list[Word]:
    return tokens(question) if len(question) <= _LONGEST else []


def _wants_yes(said: Sequence[Word], language: str) -> bool:
    """Test if a question wants yes or no: by the word that it begins with, or by its last one in Chinese."""
    first = said[0].word
    return (first in signs("yes_or_no") and lexicon(language).get((first,)) != "which") or said[-1].word == "吗"


def _by_dates(
    question: str, said: Sequence[Word], language: str, texts: Sequence[Text], today: date, *, wants_yes: bool
) -> Reckoning | None:
    try:
        return days.compute(question, said, language, texts, today, wants_yes=wants_yes)
    except Unclear as unclear:
        return _unclear(unclear, "the dates")
    except NotComputed:
        return None


def _by_tables(
    question: str, said: Sequence[Word], language: str, tables: Sequence[Table], today: date
) -> Reckoning | None:
    """Return the result of the only table that fits; several that fit are named."""
    answers: list[tuple[Table, TableResult]] = []
    unclear: list[tuple[Table, Unclear]] = []
    for table in tables:
        try:
            answers.append((table, _compute(question, said, language, table, today)))
        except Unclear as error:
            unclear.append((table, error))
        except NotComputed:
            continue
    if len(answers) == 1 and not unclear:
        alone = "alone" in kinds_of(said, language)
        return _show(*answers[0], gate_languages.guess(question) or language, alone=alone)
    if len(unclear) == 1 and not answers:
        return _unclear(unclear[0][1], unclear[0][0].source.name)
    fitting = [table for table, _ in (*answers, *unclear)]
    if not fitting:
        return None
    names = [f"{each.source.name}: {', '.join(filter(None, each.columns))}" for each in fitting]
    return _unclear(Unclear(names), "several tables")


def _compute(question: str, said: Sequence[Word], language: str, table: Table, today: date) -> TableResult:
    """Compute the answer to a question from a table."""
    keep = [at for at, row in enumerate(table.rows) if not _is_total(row, at == len(table.rows) - 1)]
    columns = read_columns(table, keep)
    if columns is None or not keep:
        raise NotComputed
    if not table.is_named and not any(each.numbers or each.days or each.flags for each in columns):
        raise NotComputed  # nothing tells the names of columns from the first row
    index = Index.build(table, columns, said)
    mentions = [each for each in read(question, said, language, index) if each.kind not in ("stop", "alone")]
    wish = operations.read_wish(mentions, columns, index)
    names_it = any(each.kind in ("about", "value") or each.columns for each in mentions)
    if not names_it and sum(row.end - row.start for row in table.rows) <= _MOST_OF_IT * len(table.source.text):
        raise NotComputed  # another part of the text may be meant
    found = filters.conditions(mentions, columns, index.about, today)
    means_rows = any(each.kind == "about" or 0 in each.columns for each in mentions)
    if wish.operation == "count" and not found and not means_rows:
        raise NotComputed
    rows = [table.rows[at] for at in keep]
    chosen, left_out = _split(rows, found, wish.column)
    picked, holds = tuple(rows[at] for at in chosen), tuple(each.said for each in found)
    result = TableResult(Decimal(len(chosen)), "count of rows", holds, picked, left_out, len(rows))
    if wish.operation == "count":
        first = tuple(each.cells[0] for each in picked)
        return replace(result, entries=first if len(set(first)) == len(first) and all(first) else ())
    if not chosen:
        raise NotComputed
    return _group(wish, result, chosen) if wish.grouped else _measure(wish, result, chosen, table.columns)


def _is_total(row: Row, is_last: bool) -> bool:
    """Test if a row adds up others: its first cell with a text says so."""
    first = next((each for each in row.cells if each.strip()), "")
    return record_lists.is_total(first) or (is_last and record_lists.is_total(first.partition(" ")[0]))


def _split(rows: Sequence[Row], found: Sequence[Condition], column: Column | None) -> tuple[list[int], tuple[Row, ...]]:
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
    return chosen, tuple(unknown)


def _measure(wish: Wish, result: TableResult, chosen: Sequence[int], names: Sequence[str]) -> TableResult:
    """Return what the numbers or the entries of a column come to, with the rows that have it."""
    column = wish.column
    if column is None:
        raise NotComputed
    if wish.operation == "distinct":
        different = Decimal(len({fold(column.texts[at]).strip() for at in chosen} - {""}))
        named = f"count of different entries of {column.name}"
        return replace(result, value=different, operation=named, column=column.name)
    terms = tuple(value for at in chosen if (value := column.numbers[at]) is not None)
    value, named = _value(wish.operation, terms), operations.OPERATIONS[wish.operation]
    result = replace(result, value=value, operation=named, column=column.name, unit=column.unit, terms=terms)
    if wish.operation not in ("max", "min"):
        return result
    best = {at: row for at, row in zip(chosen, result.rows, strict=True) if column.numbers[at] == value}
    entries = tuple(_label(each, column, names) for each in best.values())
    labels = tuple(wish.asked.texts[at] for at in best) if wish.asked else entries
    return replace(result, rows=tuple(best.values()), labels=labels, entries=entries)


def _group(wish: Wish, result: TableResult, chosen: Sequence[int]) -> TableResult:
    """Return the entries of a column whose rows together have the most or the least."""
    asked, column = wish.asked, wish.column
    if asked is None:
        raise NotComputed
    entries = {at: entry for at in chosen if (entry := fold(asked.texts[at]).strip())}
    groups: dict[str, list[Decimal]] = defaultdict(list)
    for at, entry in entries.items():
        groups[entry].append((column.numbers[at] or Decimal(0)) if column else Decimal(1))
    values = {entry: _value(wish.grouped, terms) for entry, terms in groups.items()}
    best = _value(wish.operation, list(values.values()))
    picked = {at: row for at, row in zip(chosen, result.rows, strict=True) if values.get(entries.get(at, "")) == best}
    of = f" of {column.name}" if column else ""
    return replace(
        result,
        value=best,
        operation=f"{operations.OPERATIONS[wish.operation]} {operations.OPERATIONS[wish.grouped]}{of} by {asked.name}",
        rows=tuple(picked.values()),
        column=column.name if column else "",
        unit=column.unit if column else "",
        labels=tuple(dict.fromkeys(asked.texts[at] for at in picked)),
    )


def _label(row: Row, column: Column, columns: Sequence[str]) -> str:
    """Return the other cells of a row with their names."""
    cells = enumerate(zip(columns, row.cells, strict=True))
    return ", ".join(f"{name} {cell}".strip() for place, (name, cell) in cells if place != column.place and cell)


def _value(operation: str, terms: Sequence[Decimal]) -> Decimal:
    if operation in ("max", "min"):
        return max(terms) if operation == "max" else min(terms)
    total = sum(terms, Decimal(0))
    if operation != "avg":
        return total
    digits = max(0, *(-figures.exponent(each) for each in terms))
    mean = (total / len(terms)).quantize(Decimal(1).scaleb(-digits - _MORE_DIGITS))
    short = mean.quantize(Decimal(1).scaleb(-digits))
    return short if short == mean else mean


def _unclear(error: Unclear, name: str) -> Reckoning:
    choice = "; ".join(error.names)[:_LONGEST_LINE]
    return Reckoning("", f"Not computed from {name}: the question fits each of these: {choice}.", ambiguous=error.names)


def _show(table: Table, answer: TableResult, language: str, *, alone: bool) -> Reckoning:
    """Return an answer with its line, in the notation of a language."""
    source = table.source
    number = write_number(answer.value, language)
    unit = f" {answer.unit}" if answer.unit and answer.unit not in answer.column else ""
    result = f"{', '.join(answer.labels)} ({number}{unit})" if answer.labels else f"{number}{unit}"
    of = f" of {answer.column}" if answer.column and answer.operation in ("sum", "average", "highest", "lowest") else ""
    where = f" where {' and '.join(answer.said)}" if answer.said else ""
    entries = answer.entries or answer.labels
    how = f"{_way(answer, number, language)}{unit}" + (f" ({'; '.join(entries)})" if 0 < len(entries) <= _SHOWN else "")
    used = f"{len(answer.terms) or len(answer.rows)} of {answer.of} rows"
    if answer.left_out:
        used += f"; {len(answer.left_out)} rows left out, a cell is missing or unreadable"
    line = f"Computed from {source.name}: {answer.operation}{of}{where}: {how}"
    return Reckoning(
        result,
        f"{line[:_LONGEST_LINE]} ({used}).",
        write_lead(source.name, how[:_LONGEST_LINE], language),
        tuple(CitedRow.from_text(source, each.start, each.end) for each in answer.rows),
        answer.column,
        (),
        tuple(CitedRow.from_text(source, each.start, each.end) for each in answer.left_out),
        frozenset({answer.value}),
        labels=answer.labels,
        is_alone=alone,
    )


def _way(answer: TableResult, number: str, language: str) -> str:
    """Return the terms of a sum with their result, as far as they can be shown; else the result."""
    if answer.operation != "sum" or not 1 < len(answer.terms) <= _SHOWN:
        return number
    terms = " + ".join(write_number(each, language) for each in answer.terms).replace("+ -", "- ")
    return f"{terms} = {number}"
