"""Computes what a question asks of the tables and dates of the evidence, with the rows; nothing that is not sure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from batos.gate import languages as gate_languages
from batos.memory.evidence import Passage
from batos.reckoning import calculation, days, operations
from batos.reckoning.calculation import TableResult
from batos.reckoning.known_phrases import YES_OR_NO
from batos.reckoning.phrases import NotComputed, Unclear
from batos.reckoning.question_words import Word, languages, lexicon, tokens
from batos.reckoning.tables import Row, Table, Text, read_tables, texts_of

#: Characters of a question that asks for one computation.
_LONGEST = 400
_YES_OR_NO = frozenset(YES_OR_NO.split())
#: Terms of a sum, and entries, that its line shows; of more the first ones.
_SHOWN = 12
#: The signs of thousands and decimals by language; those that are not here write 1,234.5.
_COMMA = dict.fromkeys(("German", "Spanish", "Italian", "Dutch", "Portuguese"), (".", ",")) | {"French": (" ", ",")}
#: Digits before the decimal mark from which on thousands are set apart.
_GROUPED = 5


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A span of the evidence that a result was computed from."""

    name: str
    sha256: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Reckoning:
    """A result with its way: `line` is a sentence of plain data for a prompt, `rows` is what it was computed from.

    If columns, values or operations fit equally they are in `ambiguous`, and there is no result. Rows in `left_out`
    have a cell that is missing or cannot be read.
    """

    result: str
    line: str
    rows: tuple[CitedRow, ...] = ()
    column: str = ""
    ambiguous: tuple[str, ...] = ()
    left_out: tuple[CitedRow, ...] = ()


def reckon(question: str, passages: Sequence[Passage], today: date, partial: Container[str] = ()) -> Reckoning | None:
    """Return what a question asks to be computed from passages, None if it is not clearly a computation.

    The passages of a file are put together. Give all that the file has, or its digest in `partial`: then a table at the
    edge of what is there is not used. `reckon_texts` has the same for whole texts.
    """
    return reckon_texts(question, texts_of(passages, partial), today)


def reckon_texts(question: str, texts: Sequence[Text], today: date) -> Reckoning | None:
    """Return what a question asks to be computed from texts, None if it is not clearly a computation."""
    said = tokens(question) if len(question) <= _LONGEST else []
    if not said:
        return None
    tables: list[Table] | None = None
    for language in languages(said):
        if _wants_yes(said, language):
            continue
        if found := _by_dates(question, said, language, texts, today):
            return found
        if not _may_ask(said, language):
            continue
        tables = [table for text in texts for table in read_tables(text)] if tables is None else tables
        if found := _by_tables(question, said, language, tables, today):
            return found
    return None


def _wants_yes(said: Sequence[Word], language: str) -> bool:
    """Test if a question wants yes or no: by the word that it begins with, or by its last one in Chinese."""
    first = said[0].word
    return (first in _YES_OR_NO and lexicon(language).get((first,)) != "which") or said[-1].word == "吗"


def _may_ask(said: Sequence[Word], language: str) -> bool:
    """Test if a question has a word that asks for an operation, before any table is read."""
    return operations.has_operation(said, language)


def _by_dates(
    question: str, said: Sequence[Word], language: str, texts: Sequence[Text], today: date
) -> Reckoning | None:
    try:
        found = days.compute(question, said, language, texts, today)
    except Unclear as unclear:
        return _unclear(unclear, "the dates")
    except NotComputed:
        return None
    rows = tuple(_cite(each.source, each.start, each.end) for each in found.events)
    names = " and ".join(dict.fromkeys(each.name for each in rows))
    return Reckoning(found.result, f"Computed from {names or 'the calendar'}: {found.said}.", rows)


def _by_tables(
    question: str, said: Sequence[Word], language: str, tables: Sequence[Table], today: date
) -> Reckoning | None:
    """Return the result of the only table that fits; several that fit are named."""
    answers: list[tuple[Table, TableResult]] = []
    unclear: list[tuple[Table, Unclear]] = []
    for table in tables:
        try:
            answers.append((table, calculation.compute(question, said, language, table, today)))
        except Unclear as error:
            unclear.append((table, error))
        except NotComputed:
            continue
    if len(answers) == 1 and not unclear:
        return _show(*answers[0], gate_languages.guess(question) or language)
    if len(unclear) == 1 and not answers:
        return _unclear(unclear[0][1], unclear[0][0].source.name)
    fitting = [table for table, _ in (*answers, *unclear)]
    if not fitting:
        return None
    names = [f"{each.source.name}: {', '.join(filter(None, each.columns))}" for each in fitting]
    return _unclear(Unclear(names), "several tables")


def _unclear(error: Unclear, name: str) -> Reckoning:
    choice = "; ".join(error.names)
    return Reckoning("", f"Not computed from {name}: the question fits each of these: {choice}.", ambiguous=error.names)


def _show(table: Table, answer: TableResult, language: str) -> Reckoning:
    """Return an answer with its line, in the notation of a language."""
    source = table.source
    value = answer.value if answer.value is not None else Decimal(0)
    number = write_number(value, language)
    unit = f" {answer.unit}" if answer.unit and answer.unit not in answer.column else ""
    result = f"{', '.join(answer.labels)} ({number}{unit})" if answer.labels else f"{number}{unit}"
    of = f" of {answer.column}" if answer.column and answer.operation in ("sum", "average", "highest", "lowest") else ""
    where = f" where {' and '.join(answer.said)}" if answer.said else ""
    line = f"Computed from {source.name}: {answer.operation}{of}{where}: {_way(answer, number, language)}{unit}"
    entries = answer.entries or answer.labels
    line += f" ({'; '.join(entries)})" if 0 < len(entries) <= _SHOWN else ""
    used = f"{len(answer.terms) or len(answer.rows)} of {answer.of} rows"
    line += f" ({used}" + (
        f"; {len(answer.left_out)} rows left out, a cell is missing or unreadable)" if answer.left_out else ")"
    )
    return Reckoning(
        result,
        f"{line}.",
        tuple(_cite_row(source, each) for each in answer.rows),
        answer.column,
        (),
        tuple(_cite_row(source, each) for each in answer.left_out),
    )


def _way(answer: TableResult, number: str, language: str) -> str:
    """Return the terms of a sum with their result, as far as they can be shown; else the result."""
    if answer.operation != "sum" or not 1 < len(answer.terms) <= _SHOWN:
        return number
    terms = " + ".join(write_number(each, language) for each in answer.terms).replace("+ -", "- ")
    return f"{terms} = {number}"


def write_number(value: Decimal, language: str) -> str:
    """Return a number in the notation of a language.

    >>> write_number(Decimal("14421.50"), "German"), write_number(Decimal("7.10"), "English")
    ('14.421,50', '7.10')
    """
    thousands, decimal = _COMMA.get(language, (",", "."))
    plain = f"{value:,f}" if abs(value) >= 10 ** (_GROUPED - 1) else f"{value:f}"
    return plain.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def _cite_row(source: Text, row: Row) -> CitedRow:
    return _cite(source, row.start, row.end)


def _cite(source: Text, start: int, end: int) -> CitedRow:
    return CitedRow(source.name, source.sha256, start, end, source.text[start - source.start : end - source.start])
