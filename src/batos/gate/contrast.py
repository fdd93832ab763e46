"""Finds values that an answer gives to one of several subjects, and that the documents say of another of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from batos.gate import dates, figures
from batos.gate.ground import Draft, Spot, without_spaces
from batos.gate.occurrence import claims
from batos.gate.sums import asks_for_total

#: A word with a letter or a number behind it, which tells it from its like: Option A, Plot 3, Nord 800.
_LABELLED = re.compile(r"(?<!\w)([^\W\d_]{3,20})[ \u00a0]([A-Z]|\d{1,4}[A-Za-z]?|[IVX]{1,4})(?![\w.,]*\w)")
#: The subject of a line of an answer, or of a row of its table.
_KEYED = re.compile(
    r"(?:^[^\S\n]*(?:[-*•|]|\d+[.)])?|(?<=[.;。；]))[^\S\n]*\**(?:(?:the|der|die|das|le|la|el|il|lo|de|het) )?"
    r"([^\W_][^\n:|.*。]{1,40}?)\**[^\S\n]*[:：|]",
    re.MULTILINE | re.IGNORECASE,
)
_ROW = re.compile(r"[|;\t]|,(?=\S)")
#: Separators of a line from which on it is a row, and characters between a subject and a value that it holds fast.
_LEAST_CELLS, _FAST = 2, 4
_PARAGRAPH = re.compile(r"\n\s*\n")
_SEPARATORS = "|;\t,"
#: Values of an answer that are compared at most, and subjects that are looked for: those that are named in it first.
_MOST, _MOST_SUBJECTS = 60, 40


class _Place(NamedTuple):
    start: int
    end: int
    subject: str


class _Page:
    """A document with the places of the subjects in it; its paragraphs and values are looked for once."""

    def __init__(self, text: str, places: Sequence[_Place]) -> None:
        self.text, self.places = text, places
        self._starts = [each.start for each in places]
        gaps = [found.span() for found in _PARAGRAPH.finditer(text)]
        self._begins = [0, *(end for _, end in gaps)]
        self._ends = [*(start for start, _ in gaps), len(text)]

    @cached_property
    def days(self) -> list[dates.Day]:
        """Return the dates of the document."""
        return dates.find(self.text)

    @cached_property
    def figures(self) -> list[figures.Figure]:
        """Return the numbers of the document."""
        return figures.find(self.text)

    def _paragraph(self, place: int) -> tuple[int, int]:
        at = bisect_right(self._begins, place) - 1
        return self._begins[at], max(place, self._ends[at])

    def _within(self, first: int, last: int) -> Sequence[_Place]:
        return self.places[bisect_left(self._starts, first) : bisect_left(self._starts, last)]

    def disowns(self, subject: str, start: int, end: int, *, near: bool) -> bool | None:
        """Test if a value at a place is another subject's; None if that cannot be told.

        `near`: only a subject of its own row, column or paragraph can have it.
        """
        first, last = self._part(start, end)
        within = self._within(first, last)
        fast = [each for each in within if 0 <= start - each.end <= _FAST]
        if fast:
            return fast[-1].subject != subject
        line = self.text[first:last]
        if any(each.subject == subject for each in within):
            return False
        if _is_row(line) and not within:
            return self._in_column(subject, first, start) or self._has_row(subject, first)
        before = bisect_left(self._starts, start)
        if near:
            return True if within else None
        return self.places[before - 1].subject != subject if before else None

    def _part(self, start: int, end: int) -> tuple[int, int]:
        """Return the row or the paragraph around a place."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last
        if _is_row(self.text[first:last]):
            return first, last
        return self._paragraph(start)

    def _has_row(self, subject: str, row: int) -> bool | None:
        """Test if the table that a row stands in has a row of the subject; None if it has not."""
        for each in self._within(*self._paragraph(row)):
            if each.subject == subject:
                line = self.text[self.text.rfind("\n", 0, each.start) + 1 :].partition("\n")[0]
                if _is_row(line):
                    return True
        return None

    def _in_column(self, subject: str, row: int, start: int) -> bool | None:
        """Test if a value of a row stands in the column of another subject, where the subjects are columns."""
        begin = self._paragraph(row)[0]
        head_end = self.text.find("\n", begin)
        heads = self._within(begin, head_end)
        if len({each.subject for each in heads}) < _LEAST_CELLS or not _is_row(self.text[begin:head_end]):
            return None
        mark = max(_SEPARATORS, key=self.text[begin:head_end].count)
        column = self.text.count(mark, row, start)
        own = [each.subject for each in heads if self.text.count(mark, begin, each.start) == column]
        return subject not in own if own else None


def given_to_another(draft: Draft) -> list[Spot] | None:
    """Check that what an answer says of one of several subjects is not said of another; None if it names no two."""
    if not draft.ground.passages:
        return None
    answer = claims(draft.answer)
    subjects = _subjects(draft, answer)
    said = _mentions(answer, subjects)
    asked = {each.subject for each in _mentions(draft.ground.question, subjects)}
    # An answer that names none speaks of the one that the question names.
    only = next(iter(asked)) if len(asked) == 1 and not said else None
    pairs = list(_pairs(answer, said, only))[:_MOST] if len(subjects) > 1 else []
    if not pairs:
        return None
    pages = [_Page(text, _mentions(text, subjects)) for text in draft.ground.documents]
    found: dict[tuple[str, str], Spot] = {}
    for subject, value in pairs:
        if (subject, value) not in found and (line := _owned_by_others(subject, value, pages, near=only is not None)):
            found[subject, value] = Spot("subject", subject, (("value", value), ("near", line)))
    return list(found.values())


def _subjects(draft: Draft, answer: str) -> Mapping[str, re.Pattern[str]]:
    """Return patterns of the subjects that the question and the answer tell apart, as far as documents have them."""
    text = "\n".join(draft.ground.documents)
    keyed = {key for found in _KEYED.finditer(answer) if not asks_for_total(key := found[1].strip())}
    said = f"{draft.ground.question}\n{answer}"
    named = _find_alike(said, text) or (keyed if len(keyed) > 1 else set())
    first = sorted(named, key=lambda name: (name.casefold() not in said.casefold(), name))[:_MOST_SUBJECTS]
    patterns = {name: _pattern(name) for name in first}
    return {name: pattern for name, pattern in patterns.items() if pattern.search(text)}


def _find_alike(said: str, text: str) -> set[str]:
    """Return all that have a label alike, such as Option A and Option B, where one of them is named in what is said."""
    labels: dict[str, dict[str, str]] = {}
    # A label is written as a name at least once: `costs 66` is none.
    names = {found[1].casefold() for found in _LABELLED.finditer(text) if found[1][0].isupper()}
    for found in (*_LABELLED.finditer(text), *_LABELLED.finditer(said)):
        if found[1].casefold() in names and not dates.find(found[0]):
            labels.setdefault(found[1].casefold(), {}).setdefault(found[2], found[0])
    alike = [set(ids.values()) for ids in labels.values() if len(ids) > 1]
    return set().union(*(ids for ids in alike if any(_pattern(name).search(said) for name in ids)))


def _pattern(name: str) -> re.Pattern[str]:
    bound = not without_spaces(name)
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)" if bound else re.escape(name), re.IGNORECASE)


def _mentions(text: str, subjects: Mapping[str, re.Pattern[str]]) -> list[_Place]:
    found = [_Place(*each.span(), name) for name, pattern in subjects.items() for each in pattern.finditer(text)]
    return sorted(found)


def _pairs(answer: str, mentions: Sequence[_Place], only: str | None) -> Iterator[tuple[str, str]]:
    """Yield each value of an answer with the subject that it is said of, where there is no doubt.

    A value belongs to the last subject before it in its line; after two subjects in a row it belongs to neither. All
    belong to the `only` one, if that is given.
    """
    inside = [(each.start, each.end) for each in mentions]
    values = [each for each in _values(answer) if not any(start <= each[0] < end for start, end in inside)]
    for start, end in _lines(answer):
        own = only
        open_ = False
        events = [(each.start, each.subject, "") for each in mentions if start <= each.start < end]
        events += [(at, "", value) for at, value in values if start <= at < end]
        for _, subject, value in sorted(events):
            if subject:
                own = None if open_ and subject != own else subject
                open_ = True
            elif own is not None:
                yield own, value
            if value:
                open_ = False


def _lines(answer: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of an answer, cut at the ends of sentences."""
    at = 0
    for found in re.finditer(r"[.!?](?=\s)|[。！？\n]|\Z", answer):
        yield at, found.end()
        at = found.end()


def _values(text: str) -> list[tuple[int, str]]:
    """List the places of dates, and of numbers of two digits and more."""
    days = dates.find(text)
    taken = [(each.start, each.end) for each in days]
    numbers = (
        (each.start, each.text)
        for each in figures.find(text)
        if sum(map(str.isdigit, each.text)) > 1 and not any(start <= each.start < end for start, end in taken)
    )
    return sorted([*((each.start, each.text) for each in days), *numbers])


def _owned_by_others(subject: str, value: str, pages: Sequence[_Page], *, near: bool) -> str:
    """Return the line of a value that every document gives to another subject; "" if one does not."""
    line = ""
    for page in pages:
        for start, end in _places(value, page):
            if not page.disowns(subject, start, end, near=near):
                return ""
            first = page.text.rfind("\n", 0, start) + 1
            line = line or page.text[max(first, start - 80) : end + 40].partition("\n")[0].strip()
    return line


def _places(value: str, page: _Page) -> Iterator[tuple[int, int]]:
    """Yield the places of a value in a document, in any notation."""
    day = next(iter(dates.find(value)), None)
    if day is not None:
        wanted = {reading[1:] for reading in day.readings}
        yield from ((each.start, each.end) for each in page.days if wanted & {reading[1:] for reading in each.readings})
        return
    meant = frozenset(number for each in figures.find(value) for number in each.values)
    yield from ((each.start, each.end) for each in page.figures if each.values & meant)


def _is_row(line: str) -> bool:
    if line.lstrip()[:1] in {"{", '"'}:
        return True
    return len(_ROW.findall(line)) >= _LEAST_CELLS and not re.search(r"[.!?]\s", line)
