"""Computes what a question asks of the tables and dates of the evidence, with the rows; nothing that is not sure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import date

from batos.gate.texts import languages as gate_languages
from batos.memory.evidence import Passage
from batos.reckoning import calculation, days, operations
from batos.reckoning.calculation import TableResult
from batos.reckoning.known_phrases import signs
from batos.reckoning.phrases import NotComputed, Unclear
from batos.reckoning.question_words import Word, kinds_of, languages, lexicon, tokens
from batos.reckoning.reckonings import CitedRow, Reckoning
from batos.reckoning.tables import Table, Text, read_tables, texts_of
from batos.reckoning.written import write_lead, write_number

#: Characters of a question that asks for one computation, and those of a line.
_LONGEST, _LONGEST_LINE = 400, 600
#: Terms of a sum, and entries, that its line shows; of more the first ones.
_SHOWN = 12


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
            answers.append((table, calculation.compute(question, said, language, table, today)))
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
