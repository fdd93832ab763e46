"""Finds answers with another number of lines or words than asked for, or with an entry in a total's place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

from batos.gate import figures, numerals, sums
from batos.gate.ground import Draft, Spot
from batos.gate.occurrence import claims
from batos.gate.sums import asks_for_total
from batos.gate.uncheckable import declines
from batos.memory.segmentation import sentence_spans, words

Unit: TypeAlias = Literal["lines", "sentences", "bullets", "words"]

_UNITS: Final[tuple[Unit, ...]] = ("lines", "sentences", "bullets", "words")
_NUMBER: Final = r"\d{1,3}|[^\W\d_]{1,14}(?:-[^\W\d_]{2,9})?"
_ITEM: Final = re.compile(r"^\s*(?:[-*•–・]|\(?\d{1,3}[.)、])\s*\S", re.MULTILINE)
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@lru_cache
def _table() -> Mapping[str, Any]:
    text = files(__package__).joinpath("counts.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _any_of(name: str) -> str:
    return f"(?:{'|'.join(_table()[name])})"


@lru_cache
def _asking(unit: Unit) -> re.Pattern[str]:
    """Return the pattern of a count of a unit: `in at most three lines`, `two to four words`."""
    bound = f"(?:(?P<{{0}}most>{_any_of('most')})|(?P<{{0}}least>{_any_of('least')})|{_any_of('exactly')})\\s+"
    into = rf"{_any_of('into')}\s+"
    before = rf"(?:{bound.format('')}(?:{into})?|{into})(?:{bound.format('inner_')})?"
    number = rf"(?P<number>{_NUMBER})(?:(?:\s+{_any_of('range')}\s+|\s?[-–~]\s?)(?P<upper>{_NUMBER}))?"
    units = "|".join(_table()["units"][unit])
    each = rf"(?!(?:\s[^\W\d_]+)?\s+{_any_of('each')}\b)"
    after = rf"(?:,?\s+(?P<after>{_any_of('most_after')})(?![^\W\d_]))?"
    return re.compile(
        rf"(?<!\w){before}{number}(?:\s+{_any_of('sole')})?\s+(?:{units})(?![^\W\d_]){each}{after}", re.IGNORECASE
    )


@lru_cache
def _asking_wide(unit: Unit) -> re.Pattern[str]:
    """Return the same for languages without blanks: `用三句话`, `50字以内`."""
    number = r"(?P<number>\d{1,3}|[一二两三四五六七八九十百]{1,4})"
    before = rf"(?:(?P<most>{_any_of('wide_most')})|(?P<exact>{_any_of('wide_before')}))?"
    after = rf"(?:(?P<after>{_any_of('wide_most_after')})|(?P<by>{_any_of('wide_after')}))?"
    return re.compile(rf"{before}{number}(?:{'|'.join(_table()['wide_units'][unit])}){after}")


@dataclass(frozen=True, slots=True)
class AskedCount:
    """A count that a question asks for, and the words that ask; a bound is None where there is none."""

    unit: Unit
    least: int | None
    most: int | None
    said: str


def asked_counts(question: str) -> Iterator[AskedCount]:
    """Yield the counts of lines, sentences, bullets and words that a question asks its answer to have.

    >>> [(each.unit, each.least, each.most) for each in asked_counts("Say it in exactly two sentences.")]
    [('sentences', 2, 2)]
    >>> list(asked_counts("What do the last two lines of the poem say?"))
    []
    """
    for unit in _UNITS:
        for found in _asking(unit).finditer(question):
            number, upper = _value(found["number"]), _value(found["upper"] or found["number"])
            if number and upper:
                is_most = found["most"] or found["inner_most"] or found["after"]
                is_least = found["least"] or found["inner_least"]
                yield AskedCount(unit, None if is_most else number, None if is_least else upper, found[0])
        for found in _asking_wide(unit).finditer(question):
            number, is_most = _value(found["number"]), found["most"] or found["after"]
            if number and (is_most or found["exact"] or found["by"]):
                yield AskedCount(unit, None if is_most else number, number, found[0])


def _value(number: str) -> int | None:
    if number.isdecimal():
        return int(number)
    if re.fullmatch(_any_of("one"), number, re.IGNORECASE):
        return 1
    values = [each for each in numerals.numbers_in_words(number) if each == int(each)]
    return int(values[0]) if len(values) == 1 else None


def count_of(unit: Unit, text: str) -> int:
    """Return how many of a unit a text has: lines that are not blank, items of lists, sentences, or words.

    A letter of Chinese or Japanese is a word.
    """
    if unit == "lines":
        return sum(bool(line.strip()) for line in text.splitlines())
    if unit == "bullets":
        return len(_ITEM.findall(text))
    if unit == "sentences":
        return len(sentence_spans(text))
    return len(_UNSPACED.findall(text)) + len(words(_UNSPACED.sub(" ", text)))


def other_counts(draft: Draft) -> list[Spot] | None:
    """Check that an answer has the count of lines, sentences, bullets or words that the question asks for.

    Whoever says that the documents do not say it need not say so in four bullets.
    """
    asked = list(asked_counts(draft.ground.question))
    if not asked or declines(draft.answer):
        return None
    counted = ((each, count_of(each.unit, draft.answer)) for each in asked)
    return [
        Spot("count", "", (("asked", each.said.strip()), ("count", str(found))))
        for each, found in counted
        if (each.least is not None and found < each.least) or (each.most is not None and found > each.most)
    ]


#: Separators of a row, and rows of a table at least.
_CELLS, _ROWS = 2, 3
_MARKS = (r"[|;\t]", r"\s{2,}", r",(?=\S)")


def single_entries(draft: Draft) -> list[Spot] | None:
    """Check that a total which was asked for is none of the entries of a table alone; None if none was."""
    ground = draft.ground
    if not ground.passages or not asks_for_total(ground.question):
        return None
    text = claims(draft.answer)
    found = figures.find(text)
    asked, worked = figures.read_numbers(ground.question).values, figures.read_numbers(ground.computed).values
    stated = [each for each in found if each.values and not each.values & asked]
    if not stated or sums.calculate_sums(text, found).results:
        return None
    if any(each.values & worked for each in stated) or not all(_is_entry(each, ground.documents) for each in stated):
        return []
    return [Spot("total", stated[0].text)]


def _is_entry(figure: figures.Figure, documents: tuple[str, ...]) -> bool:
    """Test if a number stands in rows of tables alone, none of which is a total itself."""
    places = 0
    for text in documents:
        lines = text.splitlines()
        rows = [_is_row(line) for line in lines]
        if sum(rows) < _ROWS and figure.values & figures.read_numbers(text).values:
            return False
        for line, is_row in zip(lines, rows, strict=True):
            if any(char.isdigit() for char in line) and _has(figure, line, is_row=is_row):
                if not is_row or asks_for_total(line):
                    return False
                places += 1
    return places > 0


def _has(figure: figures.Figure, line: str, *, is_row: bool) -> bool:
    cells = _cells(line) if is_row else [line]
    return any(figure.values & each.values for cell in cells for each in figures.find(cell))


def _is_row(line: str) -> bool:
    return len(_cells(line)) > _CELLS


def _cells(line: str) -> list[str]:
    """Return the cells of a row; a comma parts them only where no other mark does, since numbers have it too."""
    parted = (re.split(mark, line.strip()) for mark in _MARKS)
    return next((cells for cells in parted if len(cells) > _CELLS), [line])
