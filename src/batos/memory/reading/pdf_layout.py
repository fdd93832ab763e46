"""Lays the words of a printed page into the order in which a person reads them: columns, boxes, tables, notes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median
from typing import Final, NamedTuple, TypeAlias

from batos.memory.reading.pdf_painting import NOTE, PageWord, is_raised, join_words, note_marks

#: A gap wider than so many heights of a line parts columns; a narrower one may part two words that were justified.
WIDE: Final = 0.9
#: A line that reaches into a gutter leaves so many heights of it free at least.
_NARROW: Final = 0.25
#: Blocks of lines are so many times as far apart as the lines next to the gap.
_FREE: Final = 1.8
#: Lines of each side beside each other without which there is no gutter.
_LEAST: Final = 3
#: Lines further apart than so many heights are of two paragraphs.
_NEAR: Final = 0.8
#: Beginnings of words that are tried as a gutter's end, and bands within bands.
_TRIED: Final = 60
_DEEP: Final = 200
#: A rule stands between so many lines of a table at most.
_RULED: Final = 8
#: A table has fewer columns.
_MOST_COLUMNS: Final = 60
#: Runs of words that are looked at for a gutter in all.
_WORK: Final = 20_000
#: Signs before the items of a list, and numbers of lines.
_ITEM: Final = re.compile(r"\W|[\[(]?(?:\w{1,3}|[\d.]+)[.)\]]?")
#: A stroke within a cell.
_BAR: Final = r"\|"
_BROKEN: Final = re.compile(r"[^\W\d_]-\Z")


@dataclass(slots=True)
class _Run:
    """Words that follow each other on a line without a wide gap, the run of this number; as high as the largest is."""

    at: int
    x0: float
    y0: float
    x1: float
    y1: float
    words: list[PageWord]

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def chars(self) -> int:
        return sum(len(word.text) + 1 for word in self.words) - 1


_Runs: TypeAlias = Sequence[_Run]
#: Lines that are drawn on a page: their heights, and from where to where they go.
Rules: TypeAlias = Sequence[tuple[float, float, float]]
#: The cells of a line, one where it is of no table.
_Line: TypeAlias = list[list[PageWord]]


class PageLines(NamedTuple):
    """The lines of a page and where they stand; none where the words are read as they were given."""

    lines: list[str]
    heights: list[tuple[float, float]]
    is_uncertain: bool


def arrange(words: Sequence[PageWord], as_given: bool = False, rules: Rules = ()) -> PageLines:
    """Return the lines of a page. Nothing need be laid out anew where `as_given` and the words are in order."""
    page = _Ordering(rules)
    lines = page.order(_runs(words)) + page.notes
    told = [word for line in lines for cell in line for word in cell]
    found = PageLines([], [], page.uncertain)
    plain = as_given and told == list(words) and all(len(line) == 1 for line in lines)
    if plain and not any(is_raised(a, b) or is_raised(b, a) for a, b in pairwise(words)):
        return found
    marks = note_marks(told)
    for line in lines:
        cells, first = [join_words(cell, marks) for cell in line], next(word for cell in line for word in cell)
        said = cells[0] if len(cells) == 1 else f"| {' | '.join(each.replace('|', _BAR) for each in cells)} |"
        if found.lines and _BROKEN.search(found.lines[-1]) and said[:1].islower():
            found.lines[-1] = found.lines[-1][:-1] + said
        else:
            found.lines.append(said)
            found.heights.append((first.y0, first.y1))
    return found


def _runs(words: Sequence[PageWord]) -> list[_Run]:
    found: list[_Run] = []
    for word in words:
        run = _Run(len(found), word.x0, word.y0, word.x1, word.y1, [word])
        last = found[-1] if found else run
        most = max(last.height, run.height)
        if not found or not _share_line(last, run) or not -0.5 * most <= run.x0 - last.x1 <= WIDE * most:
            found.append(run)
            continue
        last.words.append(word)
        last.x1 = max(last.x1, run.x1)
        if run.height > last.height:
            last.y0, last.y1 = run.y0, run.y1
    return found


def _share_line(a: _Run, b: _Run) -> bool:
    return min(a.y1, b.y1) - max(a.y0, b.y0) >= 0.5 * min(a.height, b.height)


def _rows(runs: _Runs) -> list[list[_Run]]:
    """Return runs by line, from the top, each from the left."""
    rows: list[list[_Run]] = []
    for run in sorted(runs, key=lambda each: (-each.y1 - each.y0, each.x0)):
        for row in rows[-3:]:
            tallest = max(row, key=lambda each: each.height)
            if _share_line(tallest, run):
                row.append(run)
                break
        else:
            rows.append([run])
    for row in rows:
        row.sort(key=lambda each: each.x0)
    return rows


def _band(runs: _Runs) -> tuple[list[_Run], list[_Run], list[_Run], list[_Run]] | None:
    """Return what is above the longest part with a gutter (the widest of those), its sides, and what is below it."""
    if len(runs) < 2 * _LEAST:
        return None
    from_top = sorted(runs, key=lambda each: -each.y1)
    starts = Counter(round(run.x0 / 3) for run in runs)
    firsts = [min(run.x0 for run in runs if round(run.x0 / 3) == near) for near, _ in starts.most_common(_TRIED)]
    blocks = _blocks(from_top)
    found = [(_worth(*sides), sides) for place in firsts for sides in _sides(from_top, blocks, place)]
    most, (left, right) = max(found, key=lambda each: each[0])
    if not most[0]:
        return None
    left, right = _near(left, right), _near(right, left)
    taken = {id(run) for run in (*left, *right)}
    middle = median((run.y0 + run.y1) / 2 for run in (*left, *right))
    rest = [run for run in from_top if id(run) not in taken]
    above, below = ([run for run in rest if (run.y0 + run.y1 > 2 * middle) == up] for up in (True, False))
    return above, left, right, below


def _blocks(from_top: _Runs) -> list[int]:
    """Return the number of the block of each run: one ends where more is free than above and below, and than a line."""
    steps: list[tuple[int, float]] = []
    foot = from_top[0].y0
    for at, run in enumerate(from_top):
        if run.y1 < foot:
            steps.append((at, foot - run.y1))
        foot = min(foot, run.y0)
    around = [0.0, *(step for _, step in steps), 0.0]
    ends = {
        at
        for (at, step), above, below in zip(steps, around, around[2:], strict=False)
        if step > max(_FREE * above, _FREE * below, WIDE * from_top[at].height)
    }
    return list(accumulate(at in ends for at in range(len(from_top))))


def _sides(from_top: _Runs, blocks: Sequence[int], place: float) -> Iterator[tuple[list[_Run], list[_Run]]]:
    """Yield the runs on both sides of a place, anew after each that goes across it, and in each block."""
    left: list[_Run] = []
    right: list[_Run] = []
    block = 0
    for run, number in zip(from_top, blocks, strict=True):
        crosses = run.x0 < place - 1 and run.x1 > place - _NARROW * run.height
        if crosses or number != block:
            yield left, right
            left, right, block = [], [], number
        if not crosses:
            (right if run.x0 >= place - 1 else left).append(run)
    yield left, right


def _worth(left: _Runs, right: _Runs) -> tuple[int, int, float]:
    """Return how many lines stand beside each other, and in all, and the width between; zeros where it is no gutter."""
    sides = _beside(left, right) if left and right else [[], []]
    lines = [len({round(run.y0) for run in side}) for side in sides]
    if min(lines) < _LEAST or all(_ITEM.fullmatch(" ".join(word.text for word in run.words)) for run in sides[0]):
        return 0, 0, 0.0
    reach = sorted(run.x1 for run in sides[0])[int(0.9 * (len(sides[0]) - 1))]
    width = min(run.x0 for run in sides[1]) - reach
    height = median(run.height for run in (*sides[0], *sides[1]))
    return (min(lines), sum(lines), width) if width >= WIDE * height else (0, 0, 0.0)


def _core(left: _Runs, right: _Runs) -> tuple[float, float]:
    top = min(max(run.y1 for run in left), max(run.y1 for run in right))
    return top, max(min(run.y0 for run in left), min(run.y0 for run in right))


def _beside(left: _Runs, right: _Runs) -> list[list[_Run]]:
    """Return the runs of each side that have some of the other one beside them."""
    top, bottom = _core(left, right)
    return [[run for run in side if bottom < run.y1 and run.y0 < top] for side in (left, right)]


def _near(side: _Runs, other: _Runs) -> list[_Run]:
    """Return the runs of a side that stand beside the other one, or follow on these without a gap."""
    top, bottom = _core(side, other)
    found = []
    for run in sorted(side, key=lambda each: -each.y1):  # downward
        if run.y1 >= bottom - _NEAR * run.height:
            found.append(run)
            bottom = min(bottom, run.y0)
    for run in reversed(found):  # upward
        if run.y0 <= top + _NEAR * run.height:
            top = max(top, run.y1)
    return [run for run in found if run.y1 <= top]


@dataclass(slots=True)
class _Ordering:
    """Orders a page; its notes come last, and its work has an end."""

    rules: Rules
    notes: list[_Line] = field(default_factory=list)
    uncertain: bool = False
    work: int = _WORK

    def order(self, runs: _Runs, depth: int = 0) -> list[_Line]:
        """Return the lines of a part of the page, in order."""
        self.work -= len(runs)
        self.uncertain = self.uncertain or self.work < 0
        band = _band(runs) if depth < _DEEP and self.work > 0 else None
        if band is None:
            return [[_words(row)] for row in _rows(runs)]
        above, left, right, below = band
        first = self.order(above, depth + 1)
        rules = self._rules(left, right)
        is_ruled = len(rules) > 1 and max(len(left), len(right)) <= _RULED * len(rules)
        if is_ruled or self._is_table(left, right):
            return [*first, *_table([*left, *right], rules), *self.order(below, depth + 1)]
        main, box = sorted((left, right), key=_width, reverse=True)
        if _width(box) < 0.8 * _width(main) and (_goes_on(above, main) or _goes_on(main, below)):
            flow, below = _flow(main, below)
            parts = [[*main, *flow], box, below]
        else:
            parts = [self._without_notes(left), self._without_notes(right), below]
        return first + [line for part in parts for line in self.order(part, depth + 1)]

    def _rules(self, left: _Runs, right: _Runs) -> list[float]:
        """Return the heights of lines that go across a gutter, from the foot: they part the rows of a table."""
        top, bottom = _core(left, right)
        ends = median(run.x1 for run in left), min(run.x0 for run in right)
        heights: dict[int, list[tuple[float, float, float]]] = {}
        for rule in self.rules:
            if bottom < rule[0] < top:
                heights.setdefault(round(rule[0]), []).append(rule)
        across = (same for same in heights.values() if min(each[1] for each in same) < ends[0])
        return sorted(same[0][0] for same in across if max(each[2] for each in same) > ends[1])

    def _is_table(self, left: _Runs, right: _Runs) -> bool:
        """Test if lines beside each other belong together; two columns of prose do not."""
        one, other = _beside(left, right)
        if max(_alignment(one, other), _alignment(other, one)) < 0.75:
            return False
        places = _columns([*left, *right])
        columns = _by_column([*left, *right], places) if len(places) < _MOST_COLUMNS else []
        prose = [each for each in columns if _is_prose(each)]
        is_table = bool(columns) and len(prose) < max(2, len(columns) / 2)
        long = [each for each in columns if median(run.chars for run in each) >= 25]
        if is_table and len(long) > 1 and _turns(left, right) <= 2:
            return False
        self.uncertain = self.uncertain or (is_table and len(long) > 1)
        return is_table

    def _without_notes(self, column: list[_Run]) -> list[_Run]:
        """Take the notes from the foot of a column, and keep them for the end of the page."""
        usual = median(run.height for run in column)
        rows = _rows(column)
        first = len(rows)
        while first > 1 and max(run.height for run in rows[first - 1]) <= 0.92 * usual:
            first -= 1
        while first < len(rows) and not NOTE.match(rows[first][0].words[0].text):
            first += 1
        self.notes += [[_words(row)] for row in rows[first:]]
        return [run for row in rows[:first] for run in row]


def _turns(left: _Runs, right: _Runs) -> int:
    """Return how often a painter went from one side to the other one."""
    sides = [side for _, side in sorted([*((run.at, 0) for run in left), *((run.at, 1) for run in right)])]
    return sum(a != b for a, b in pairwise(sides))


def _width(side: _Runs) -> float:
    return max(run.x1 for run in side) - min(run.x0 for run in side)


def _goes_on(above: _Runs, below: _Runs) -> bool:
    """Test if the text of one part goes on in the one below it, without a gap."""
    if not above or not below:
        return False
    last, first = min(above, key=lambda each: each.y0), max(below, key=lambda each: each.y1)
    same = abs(last.height - first.height) <= 0.1 * first.height
    return same and last.y0 - first.y1 <= _NEAR * first.height and last.x0 < first.x1 and first.x0 < last.x1


def _flow(main: _Runs, below: list[_Run]) -> tuple[list[_Run], list[_Run]]:
    """Return the rest of a paragraph that begins beside a box, and what comes after it."""
    rows = _rows(below)
    at = 0
    while at < len(rows) and _goes_on(rows[at - 1] if at else main, rows[at]):
        at += 1
    return [run for row in rows[:at] for run in row], [run for row in rows[at:] for run in row]


def _alignment(side: _Runs, other: _Runs) -> float:
    """Return the share of one side's lines that stand exactly beside one of the other."""
    feet = [-9e9, *sorted(run.y0 for run in other), 9e9]
    places = [(run, bisect_left(feet, run.y0)) for run in side]
    exact = (min(feet[at] - run.y0, run.y0 - feet[at - 1]) <= 0.2 * run.height for run, at in places)
    return sum(exact) / max(1, len(side))


def _columns(runs: _Runs) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for run in sorted(runs, key=lambda each: each.x0):
        if found and run.x0 < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], run.x1)
        else:
            found.append((run.x0, run.x1))
    return found


def _by_column(runs: _Runs, columns: Sequence[tuple[float, float]]) -> list[list[_Run]]:
    starts = [x0 for x0, _ in columns]
    places = [bisect_right(starts, run.x0) - 1 for run in runs]
    return [[run for run, place in zip(runs, places, strict=True) if place == at] for at in range(len(columns))]


def _is_prose(column: _Runs) -> bool:
    """Test if lines are of a text that was broken where the column ends: they fill it and begin within sentences."""
    if len(column) < _LEAST or median(run.chars for run in column) < 10:
        return False
    filled = median(run.x1 - run.x0 for run in column) / max(1.0, _width(column))
    begins = [run.words[0].text[0] for run in column]
    cased = [each for each in begins if each.lower() != each.upper()]
    if len(cased) < len(begins) / 2:
        return filled >= 0.8 and not any(each.isdigit() for each in begins)
    return filled >= 0.55 and sum(each.islower() for each in cased) >= 0.3 * len(cased)


def _table(runs: _Runs, rules: Sequence[float]) -> list[_Line]:
    """Return the rows of a table; lines that go on within a cell belong to the row above, as do those above a rule."""
    columns = _columns(runs)
    lines: list[_Line] = []
    above: list[list[_Run]] = [[] for _ in columns]
    last = -1
    for row in _rows(runs):
        cells = _by_column(row, columns)
        field_of = bisect_left(rules, row[0].y0)
        goes_on = not cells[0] and all(_is_rest(*each) for each in zip(above, cells, columns, strict=True))
        begins = "".join(cell[0].words[0].text[0] for cell in cells if cell)
        is_new = any(map(str.isdigit, begins)) or 2 * sum(map(str.islower, begins)) < len(begins)
        is_row = bool(cells[0]) and len(begins) > 1 and not begins[0].islower() and is_new
        if lines and (field_of == last and not is_row if rules else goes_on):
            lines[-1] = [[*before, *_words(more)] for before, more in zip(lines[-1], cells, strict=True)]
        else:
            lines.append([_words(cell) for cell in cells])
        above, last = cells, field_of
    filled = sum(bool(cell) for line in lines for cell in line)
    labels = [line[0][-1].text.endswith(":") for line in lines if line[0]]
    if (len(columns) == 2 and sum(labels) * 2 >= len(lines)) or filled < 0.8 * len(columns) * len(lines):
        return [[[word for cell in line for word in cell]] for line in lines]
    return lines


def _is_rest(above: _Runs, cell: _Runs, column: tuple[float, float]) -> bool:
    """Test if a cell goes on in the line below: it begins there within a sentence, or had no place above."""
    if not cell or not above or above[0].y0 - cell[0].y1 > 0.4 * cell[0].height:
        return not cell
    begins = cell[0].words[0].text[0]
    return begins.islower() or (begins.isalpha() and above[-1].x1 - column[0] >= 0.8 * (column[1] - column[0]))


def _words(row: _Runs) -> list[PageWord]:
    return [word for run in row for word in run.words]
