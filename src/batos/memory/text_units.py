"""Find the units of a document that no cut goes through: sentences, headings, rows of tables with their heads."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from batos.memory.segmentation import blanks_end, sentence_spans

#: A token is about so many characters of prose in a script with blanks; a letter of Chinese or Japanese is one.
CHARACTERS: Final = 4.3
#: In figures, tables and code it is about so many letters or blanks, so many digits, or one other mark.
LETTERS, DIGITS = 5.0, 2.0
#: A sentence of more tokens is cut at what may end one as well: a point before a small letter, a semicolon, a line.
SENTENCE: Final = 150
#: A block of code or a row of more tokens is cut at lines, then at blanks; so is a sentence without any mark to cut at.
LONGEST, UNMARKED = 1_000, 2 * SENTENCE
#: The characters of a heading that the parts below it have.
_MOST_WORDS: Final = 200
#: Stands between two headings, of which the first is above the second.
ABOVE: Final = " > "

# No part of these looks again at what it has passed: a text may be made to be slow.
_FENCE = re.compile(
    r"^[^\S\n]{0,3}(`{3,}+|~{3,}+)[^\n]*(?:\n(?:.*?\n)??[^\S\n]{0,3}\1[`~]*[^\S\n]*(?=\n|\Z)|.*\Z)",
    re.MULTILINE | re.DOTALL,
)
_ROW = re.compile(r"^[^\S\n]*\|[^\n]+", re.MULTILINE)
#: A heading of Markdown, or of a wiki: `== Keepers ==`, also with blanks between the marks.
_HEADING = re.compile(
    r"^[^\S\n]*+(?:(#{1,6})[^\S\n]++([^\n]+)|(=(?: ?=){0,5})[^\S\n]([^=\n]{1,300}?)[^\S\n]=(?: ?=){0,5}[^\S\n]*+)$",
    re.MULTILINE,
)
#: A line that is longer than those of a text that was wrapped: a paragraph.
_LONG_LINE = re.compile(r"(?<![^\n])[^\n]{160,}(?=\n)")
_WEAK_END = re.compile(r"""[.!?;]["'”’»)\]]*(?=\s)|\n""")
_FIGURES = b"0123456789"
_PLAIN = bytes(each for each in range(128) if chr(each).isalpha() or chr(each).isspace())
_WIDE = re.compile(r"[⺀-鿿가-힣豈-﫿＀-￯\U0001f000-\U0003ffff]")


class Unit(NamedTuple):
    """A span of a text that no cut goes through. `level` is that of a heading, 0 for anything else."""

    start: int
    end: int
    level: int


_NO_HEADING: Final = Unit(-1, -1, 0)


class Chunk(NamedTuple):
    """A span of a text, and the headings above it, the outermost first, joined by ABOVE."""

    start: int
    end: int
    heading: str


def tokens_of(text: str) -> float:
    """Return about how many tokens a text has.

    >>> round(tokens_of("The lamp burns."), 1), tokens_of("灯塔"), tokens_of("| 17.25 |")
    (3.8, 2.0, 5.4)
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    others = text.encode("ascii", "ignore").translate(None, _PLAIN)
    marks = len(others.translate(None, _FIGURES))
    letters, digits = len(text) - wide - len(others), len(others) - marks
    return wide + max((len(text) - wide) / CHARACTERS, letters / LETTERS + digits / DIGITS + marks)


def units_of(text: str) -> list[Unit]:
    """Return the units of a text in order, without the blanks around them; together they hold everything else."""
    fences = [found.span() for found in _FENCE.finditer(text)]
    lines = list(_outside(fences, _HEADING.finditer(text)))
    headings = [Unit(*each.span(), len(each[1] or each[3].replace(" ", ""))) for each in lines]
    # Blocks of code, headings and rows of tables: none is inside another.
    whole = sorted([*fences, *(each.span() for each in (*_outside(fences, _ROW.finditer(text)), *lines))])
    starts = [start for start, _ in whole]
    ends = {len(text)}
    for _, end in sentence_spans(text):
        at = bisect_right(starts, end - 1) - 1
        if at < 0 or end >= whole[at][1]:
            ends.add(end)
    ends.update(_more_ends(text, ends, whole))
    kept = frozenset(whole)
    found: list[Unit] = []
    start = 0
    begins = [each.start for each in headings]
    for end in sorted(ends.union(*whole)):
        at = bisect_right(begins, end - 1) - 1
        most = LONGEST if (start, end) in kept else UNMARKED
        found.extend(_units_between(text, start, end, headings[at] if at >= 0 else _NO_HEADING, most))
        start = end
    return found


def long_line_ends(text: str) -> list[int]:
    """Return the ends of the lines that are longer than those of a text that was wrapped, without blanks there."""
    return [found.start() + len(found[0].rstrip()) for found in _LONG_LINE.finditer(text)]


def _more_ends(text: str, ends: Collection[int], whole: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the ends of long lines, and in sentences that are too long for a part what may end one as well."""
    kept, starts = frozenset(whole), [start for start, _ in whole]
    long = [each for each in long_line_ends(text) if not _is_in(each - 1, whole, starts)]
    yield from long
    start = 0
    for end in sorted({*ends, *long}.union(*whole)):
        if (start, end) not in kept and tokens_of(text[start:end]) > SENTENCE:
            yield from (found.end() for found in _WEAK_END.finditer(text, start, end))
        start = end


def chunks_of(text: str, units: Sequence[Unit], cuts: Sequence[tuple[int, int]]) -> list[Chunk]:
    """Return the chunks that runs of units make, given as (first, behind the last), with the headings above each."""
    above: list[tuple[int, str]] = []
    chunks = []
    for first, behind in cuts:
        opens = True
        for at in range(first, behind):
            level = units[at].level
            if level:
                above = [each for each in above if each[0] < level]
                above.append((level, _words_of(text[units[at].start : units[at].end])))
            if opens:  # nothing but headings so far
                heading = ABOVE.join(words for _, words in above)
            opens = opens and bool(level)
        chunks.append(Chunk(units[first].start, units[behind - 1].end, heading))
    return chunks


def _units_between(text: str, start: int, end: int, heading: Unit, most: int) -> Iterator[Unit]:
    """Yield the units of a span, each of at most so many tokens, in which no heading begins but at the start.

    `heading` is the last one up to there.
    """
    bare = text[start:end]
    begin, finish = start + len(bare) - len(bare.lstrip()), start + len(bare.rstrip())
    while begin < finish:
        level = heading.level if heading.start <= begin < heading.end else 0
        room = int(most * CHARACTERS)
        if finish - begin <= room and tokens_of(text[begin:finish]) <= most:
            yield Unit(begin, finish, level)
            return
        cut = begin + _cut(text[begin : min(finish, begin + room)], most)
        yield Unit(begin, begin + len(text[begin:cut].rstrip()), level)
        begin = blanks_end(text, cut)


def _cut(window: str, most: int) -> int:
    """Return the place to cut what is too long: after a line, else after a word, else anywhere."""
    if tokens_of(window) > most:
        window = window[:most]
    for mark in ("\n", " "):
        head = window.rpartition(mark)[0]
        if head.strip():
            return len(head)
    return len(window)


def _outside(spans: Sequence[tuple[int, int]], lines: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yield the lines that begin in none of some spans."""
    starts = [start for start, _ in spans]
    return (found for found in lines if not _is_in(found.start(), spans, starts))


def _is_in(at: int, spans: Sequence[tuple[int, int]], starts: Sequence[int]) -> bool:
    before = bisect_right(starts, at) - 1
    return before >= 0 and at < spans[before][1]


def _words_of(line: str) -> str:
    found = _HEADING.match(line)
    words = (found[2] or found[4]).strip().rstrip("#").strip() if found else line.strip()
    return words[:_MOST_WORDS]


#: Characters of a head that are repeated above a part of its table.
LONGEST_HEAD: Final = 300
#: Characters of a line that can be a caption, and of one that ends with a colon.
_CAPTION, _INTRODUCTION = 120, 200
#: Characters of a column's name. A longer text is prose.
_NAME: Final = 60
#: Lines that a table has at least, unless its form says that it is one.
_LEAST: Final = 3
#: The rows by which a second line of names is told from the first row.
_LOOKED_AT: Final = 3
#: Longer lines are no rows of a table.
_LONGEST_LINE: Final = 4_000

_LINE = re.compile(r"[^\n]*\S[^\n]*")
_QUOTED = re.compile(r'"[^"\n]*"')
_SEPARATOR = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")
_APART = re.compile(r"\s*\t\s*|\s{2,}")
_HEADING_ABOVE = re.compile(r"\s*(?:#{1,6}\s|=)")
#: Signs of prose, which the name of a column has not.
_IN_PROSE = re.compile(r"^[(\[]|[:=]|[.!?]$")
_NUMBER = re.compile(r"[\d.,:%/ -]*\d[\d.,:%/ -]*")
#: The marks between fields, the surest first; no mark stands for blanks.
_MARKS: Final = ("|", "\t", ";", ",", "")


class _TableLine(NamedTuple):
    """A line that is not blank, with its place; `is_apart` where a blank line stands before it."""

    start: int
    end: int
    text: str
    is_apart: bool


class _FoundTable(NamedTuple):
    """The places of the first row of a table and of its end, and what stands above its rows."""

    rows: int
    end: int
    head: str


class TableHeads:
    """The heads of the tables of a text: Markdown, separated values, and columns set apart by blanks.

    The time is linear in the text.
    """

    def __init__(self, text: str, head: str = "") -> None:
        """Find the tables of a text, which may begin within one that has this head."""
        heading, _, rest = head.partition("\n")
        before = f"{heading}\n\n{rest}\n" if rest else f"{head}\n" if head else ""  # a caption stands alone
        self._before = len(before)
        self._tables = list(_tables(_lines(before + text)))
        self._starts = [each.rows for each in self._tables]

    def above(self, start: int) -> str:
        r"""Return the lines that give a row its meaning, for a place in it; "" outside of a table and in its head.

        >>> text = "In crowns:\n\n| village | deficit |\n|---|---|\n| Elm | 5 |\n| Ash | 7 |"
        >>> TableHeads(text).above(text.index("| Ash"))
        'In crowns:\n| village | deficit |'
        """
        place = self._before + start
        at = bisect_right(self._starts, place) - 1
        return self._tables[at].head if at >= 0 and place < self._tables[at].end else ""


def add_head(heading: str, head: str) -> str:
    """Return the heading of a part with the head of its table on lines of their own."""
    return f"{heading}\n{head}" if head else heading


def head_within(heading: str) -> str:
    """Return the head of a table that the heading of a part has, "" if there is none."""
    return heading.partition("\n")[2]


def _lines(text: str) -> list[_TableLine]:
    found: list[_TableLine] = []
    for each in _LINE.finditer(text):
        gap = text[found[-1].end : each.start()] if found else "\n"
        found.append(_TableLine(each.start(), each.end(), each[0][:_LONGEST_LINE], gap.count("\n") > 1))
    return found


def _tables(lines: Sequence[_TableLine]) -> Iterator[_FoundTable]:
    at = 0
    while at < len(lines):
        stop = at + 1
        for mark in _MARKS:
            behind = _behind(lines, at, mark)
            if behind - at < _LEAST:
                continue
            stop = behind
            if count := _head_lines(lines, at, behind, mark):
                head = "\n".join((*_caption(lines, at), *(each.text.strip() for each in lines[at : at + count])))
                first = at + count + (count < behind - at and _is_separator(lines[at + count]))
                if first < behind:
                    yield _FoundTable(lines[first].start, lines[behind - 1].end, head[-LONGEST_HEAD:])
            break
        at = stop


def _behind(lines: Sequence[_TableLine], at: int, mark: str) -> int:
    """Return the number of the line behind those that have as many fields as one, without a blank line between."""
    if (mark or "  ") not in lines[at].text or len(lines[at].text) >= _LONGEST_LINE:
        return at
    width = len(_fields(lines[at].text, mark))
    if width < (2 if mark else 3):
        return at
    stop = at + 1
    while stop < len(lines) and not lines[stop].is_apart and len(_fields(lines[stop].text, mark)) == width:
        stop += 1
    return stop


def _fields(line: str, mark: str) -> list[str]:
    bare = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), line).strip(" ")
    if not mark:
        return _APART.split(bare.strip())
    cells = bare.removeprefix("|").removesuffix("|").replace(r"\|", "  ") if mark == "|" else bare
    return [each.strip() for each in cells.split(mark)]


def _is_separator(line: _TableLine) -> bool:
    return _SEPARATOR.fullmatch(line.text) is not None


def _head_lines(lines: Sequence[_TableLine], at: int, behind: int, mark: str) -> int:
    """Return how many lines name the columns; 0 if the first cannot do that."""
    for count in (1, 2):
        if at + count < behind and _is_separator(lines[at + count]):
            return count
    cells = [_fields(each.text, mark) for each in lines[at : min(behind, at + 2 + _LOOKED_AT)]]
    if not all(map(_can_name, cells[0])) or (mark == "" and not all(cells[0])):
        return 0
    return 2 if len(cells) > 2 and _goes_on(cells) else 1


def _can_name(field: str) -> bool:
    return len(field) <= _NAME and not field[:1].isdigit() and not _IN_PROSE.search(field)


def _goes_on(cells: Sequence[Sequence[str]]) -> bool:
    """Test if a second line names the columns too: one of them has numbers below it, and none there."""
    columns = zip(*cells, strict=True)
    numbers = ([bool(_NUMBER.fullmatch(cell)) for cell in column] for column in columns)
    return not any(map(_NUMBER.fullmatch, cells[1])) and any(all(each[2:]) for each in numbers)


def _caption(lines: Sequence[_TableLine], at: int) -> Iterator[str]:
    """Yield the short line that stands alone above a table, unless it is a heading."""
    if at == 0 or not (at == 1 or lines[at - 1].is_apart or _HEADING_ABOVE.match(lines[at - 2].text)):
        return
    above = lines[at - 1].text.strip()
    if len(above) <= (_INTRODUCTION if above.endswith(":") else _CAPTION) and not _HEADING_ABOVE.match(above):
        yield above
