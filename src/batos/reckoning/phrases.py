"""Reads a question against a table: each word is an operation, a column, a value, a date, a filler, or unknown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from batos.gate import dates
from batos.reckoning import record_lists
from batos.reckoning.columns import Column, concept_of, month_of
from batos.reckoning.question_words import COMPOUNDS, LONGEST, Word, fold, key, lexicon, phrase, root, signs, tokens
from batos.reckoning.tables import Table

#: Letters of a word that alone may stand for a cell of several words, and of a column's short form (temp).
_PART, _SHORT = 4, 4
#: Letters of a word by which a cell is tried, and those of a cell that are looked at.
_TRIED, _LONGEST = 3, 200
_QUARTER = re.compile(r"[qt]([1-4])")
_MARKS = frozenset("%‰€$£¥₹°")


#: The keys of comparisons with one number.
COMPARISONS = ("gt", "ge", "lt", "le")


class NotComputed(Exception):
    """The question asks for no computation that is sure."""


class Unclear(NotComputed):
    """Several columns or operations fit equally; `names` has them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Keep the names, each once, in order."""
        super().__init__()
        self.names = tuple(dict.fromkeys(names))


def choose_only(found: Sequence[Column]) -> Column:
    """Return the only column of these. Raises: Unclear: there are several. NotComputed: there is none."""
    if len(found) != 1:
        raise Unclear(each.name for each in found) if found else NotComputed
    return found[0]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of a question and its meaning: the columns, values or dates that it names, or an operation's key."""

    kind: str
    text: str
    columns: frozenset[int] = frozenset()
    #: Cells that are named, as (column, cell).
    values: frozenset[tuple[int, str]] = frozenset()
    token: Word | None = None
    readings: frozenset[tuple[int, int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in words, and for each row if it holds; None where the cell does not tell."""

    said: str
    column: int
    holds: tuple[bool | None, ...]


@dataclass(slots=True)
class Index:
    """The phrases of a table: its names of columns, its cells, and the words of its heading and file name."""

    columns: Sequence[Column]
    about: frozenset[str]
    _text: str
    _values: dict[tuple[str, ...], set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))
    _parts: dict[str, set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))
    _names: dict[tuple[str, ...], set[int]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def build(cls, table: Table, columns: Sequence[Column], asked: Sequence[Word]) -> Index:
        """Return the phrases of a table with these columns, of its cells those that share a word with a question."""
        begins = {each.root[:_TRIED] for each in asked}
        said = [each.root for each in tokens(table.about)]
        self = cls(columns, frozenset(each for each in said if each.isascii() or len(each) > 1), f" {' '.join(said)} ")
        for column in columns:
            if name := key(column.name):
                self._names[name[:LONGEST]].add(column.place)
            for cell in () if column.numbers or column.days or column.flags else set(column.texts):
                folded = fold(cell[:_LONGEST])
                if not any(each in folded for each in begins):
                    continue
                words = key(folded)
                if 0 < len(words) <= LONGEST:
                    self._values[words].add((column.place, cell))
                for word in words:
                    if len(word) > 1:
                        self._parts[word].add((column.place, cell))
        return self

    def cells(self, said: Sequence[Word]) -> frozenset[tuple[int, str]]:
        """Return the cells that a phrase names: as they are written, else by their roots, with those that hold them."""
        found = self._values.get(phrase(said), set())
        if not found or (len(said) == 1 and len(said[0].raw) < 3 and not any(cell == said[0].raw for _, cell in found)):
            return frozenset()
        words = phrase(said, by_root=False)
        exact = {each for each in found if key(each[1], by_root=False) == words}
        return frozenset(exact or found | self._holding(said, {place for place, _ in found}))

    def is_about(self, said: Sequence[Word]) -> bool:
        """Test if a phrase of several words or signs stands in the heading or the name of the file."""
        return len(said) > 1 and f" {' '.join(each.root for each in said)} " in self._text

    def part(self, token: Word) -> frozenset[tuple[int, str]]:
        """Return the cells of which a word is one of several."""
        return frozenset(self._parts.get(token.root, ())) if len(token.word) >= _PART else frozenset()

    def find_columns(self, said: Sequence[Word]) -> frozenset[int]:
        """Return the columns that have a phrase for their whole name."""
        return frozenset(self._names.get(phrase(said), ()))

    def columns_of(self, token: Word) -> frozenset[int]:
        """Return the columns that a word can mean: by a word of the name, by its short form, or by what it means."""
        found = [each.place for each in self.columns if token.root in each.roots]
        if len(token.root) == 1 and not token.root.isascii():
            return frozenset(each.place for each in self.columns if each.name == token.root)
        if not found and (concept := concept_of(token.word)):
            found = [each.place for each in self.columns if concept in each.concepts]
        if not found and (record_lists.is_currency(token.word) or concept_of(token.word) in ("price", "amount")):
            found = [each.place for each in self.columns if each.is_measure and each.is_money]
        if not found:
            found = [each.place for each in self.columns if token.root in each.units]
        if not found:
            short = [(each.place, name) for each in self.columns for name in each.roots if len(name) >= _SHORT]
            found = [place for place, name in short if token.word.startswith(name) and len(token.word) > len(name) + 1]
        return frozenset(found)

    def _holding(self, said: Sequence[Word], places: set[int]) -> set[tuple[int, str]]:
        common = [self._parts.get(each.root, set()) for each in said]
        return {each for each in set.intersection(*common) if each[0] in places} if common else set()


def read(question: str, said: Sequence[Word], language: str, index: Index) -> list[Phrase]:
    """Return what each phrase of a question means for a table, the longest phrases first.

    Raises: NotComputed: a word is neither known nor in the table.
    """
    found: list[Phrase] = []
    named = {each.start: each for each in dates.find(question)}
    at = 0
    while at < len(said):
        length, mention = date_at(said, at, named) or _phrase(said, at, language, index)
        found.append(mention)
        at += length
    return found


def date_at(said: Sequence[Word], at: int, named: dict[int, dates.Day]) -> tuple[int, Phrase] | None:
    """Return the date, month, year or quarter at a place, with its length."""
    token = said[at]
    text = token.raw
    after = said[at + 1].raw if at + 1 < len(said) else ""
    if day := named.get(token.start):
        length = sum(day.start <= each.start < day.end for each in said[at : at + LONGEST])
        return length, Phrase("date", day.text, readings=day.readings)
    if token.figure is not None and after == "月" and 1 <= int(token.raw if token.raw.isdigit() else 0) <= 12:
        if at + 3 < len(said) and said[at + 2].raw.isdigit() and said[at + 3].raw in "日号":
            reading = frozenset({(0, int(text), int(said[at + 2].raw))})
            return 4, Phrase("date", "".join(each.raw for each in said[at : at + 4]), readings=reading)
        return 2, Phrase("date", f"{text}月", readings=frozenset({(0, int(text), 0)}))
    if token.figure is not None and text.isdigit() and len(text) == 4 and "1900" <= text <= "2199":
        length = 2 if after == "年" else 1
        return length, Phrase("date", text, token=token, readings=frozenset({(int(text), 0, 0)}))
    if quarter := _QUARTER.fullmatch(token.word):
        return 1, Phrase("quarter", text, readings=frozenset({(0, 3 * int(quarter[1]) - 2, 0)}))
    if ((len(text) > 2 and not text.islower()) or text in signs("lower_months")) and (month := month_of(text)):
        return 1, Phrase("date", text, readings=frozenset({(0, month, 0)}))
    return None


def _phrase(said: Sequence[Word], at: int, language: str, index: Index) -> tuple[int, Phrase]:
    """Return the longest phrase at a place: a cell goes before an operation, a column, a filler and the heading."""
    known = lexicon(language)
    for length in range(min(LONGEST, len(said) - at), 0, -1):
        part = said[at : at + length]
        text = " ".join(each.raw for each in part)
        kind = known.get(tuple(each.word for each in part), "")
        cells, columns = index.cells(part), index.find_columns(part)
        if cells and (length > 1 or kind in ("", "row")):
            return length, Phrase("value", text, columns, cells)
        if not (kind or columns) and index.is_about(part):
            return length, Phrase("about", text)
        if kind in COMPARISONS:
            return length, Phrase(kind, text)
        if kind and kind != "stop":
            return length, Phrase(kind, text, columns or (index.columns_of(part[0]) if length == 1 else columns), cells)
        if columns:
            return length, Phrase("column", text, columns, cells)
        if length == 1:
            return 1, _word(part[0], kind, index, cells)
        if kind:
            return length, Phrase("stop", text)
    raise NotComputed(said[at].raw)


def _word(token: Word, kind: str, index: Index, cells: frozenset[tuple[int, str]]) -> Phrase:
    """Return the meaning of a single word."""
    if token.figure is not None:
        return Phrase("number", token.raw, token=token)
    if columns := index.columns_of(token):
        return Phrase("column", token.raw, columns, cells)
    if kind or token.raw in _MARKS:
        return Phrase("stop", token.raw, values=cells)
    if token.root in index.about:
        return Phrase("about", token.raw)
    if part := index.part(token):
        return Phrase("value", token.raw, values=part)
    for prefix, operation in COMPOUNDS.items():
        if token.word.startswith(prefix) and len(token.word) > len(prefix) + 2:
            rest = token.word.removeprefix(prefix)
            columns = index.columns_of(Word(rest, rest, root(rest), token.start, token.end))
            if columns or rest in ("zahl", "summe", "wert", "aantal", "bedrag"):
                return Phrase(operation, token.raw, columns)
    raise NotComputed(token.raw)
