"""Watches a text while it is written for repetition without end: the same words, counted rows, and stale ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Rows of words so many, of as many letters as a sentence has fewer, of nothing but numbers more. Rows of a table that
#: somebody asked for are fewer, or have something of their own.
COUNTED_WORDS, COUNTED_SENTENCES, COUNTED_NUMBERS = 128, 64, 512
#: Characters that are looked at first.
COUNTED_CHARS = 32_768

_SENTENCE_LETTERS = 40
_ROW_NUMBERS = 4  # the most numbers in a row
#: Three rows of the longest that are looked for stand in so many characters.
GLANCE = 3 * COUNTED_CHARS // COUNTED_SENTENCES
_NUMBER = re.compile(r"([0-9]{1,15})")


def find_likely(text: str) -> bool:
    """Look at the last rows only, which is quick: False if `counted_rows` finds none in a text with this end."""
    return bool(_likely(text))


def _likely(text: str) -> list[int]:
    """Return how many numbers a row may have, as two rows at the end of a text are alike by that."""
    texts = _NUMBER.split(text[-GLANCE:])[-3:0:-2]
    return [many for many in range(1, _ROW_NUMBERS + 1) if texts[:many] == texts[many : 2 * many] != []]


def counted_rows(text: str, chars: int = COUNTED_CHARS) -> tuple[int, int] | None:
    """Return where the second and the third row begin if a text ends in rows that only count on, else None."""
    likely = _likely(text)
    if not likely:
        return None
    begin = max(0, len(text) - chars)
    parts = _NUMBER.split(text[begin:])[:-2]  # the last number may be only the beginning of one
    texts, numbers = parts[-1::-2], [int(number) for number in parts[-2::-2]]
    for many in likely:
        rows = _rows(texts, numbers, many)
        if rows and begin:
            return counted_rows(text, len(text))  # they may begin before what was looked at
        if rows:
            begins = [len("".join(parts[: len(parts) - 2 * many * back])) for back in (rows - 1, rows - 2)]
            return begin + begins[0], begin + begins[1]
    return None


def _rows(texts: Sequence[str], numbers: Sequence[int], many: int) -> int:
    """Count the rows of so many numbers that count on, 0 if they are too few; the newest text and number come first."""
    letters = sum(map(str.isalpha, "".join(texts[:many])))
    least = COUNTED_NUMBERS if not letters else COUNTED_WORDS if letters < _SENTENCE_LETTERS else COUNTED_SENTENCES
    whole = least * many
    if len(numbers) < whole or texts[: whole - many] != texts[many:whole]:
        return 0
    steps = [one - before for one, before in zip(numbers, numbers[many:], strict=False)]
    if not any(steps[: whole - many]):
        return 0
    found = many
    while found < len(steps) and steps[found] == steps[found - many] and texts[found] == texts[found - many]:
        found += 1
    rows = found // many + 1
    return rows if rows >= least else 0


#: The longest unit in characters that is looked for, and how often it stands in a row before the text is a loop.
LONGEST_UNIT, TIMES = 200, 4
#: Tokens by which a loop has to go on behind its last repetition: a refrain of four lines ends there, a loop does not.
LOOP_TOKENS = 8
#: The daemon's own limit for rendered models: the 31st equal token in a row is no answer any more.
SAME_TOKEN_LIMIT = 30
#: Tokens of blanks in a row, and characters of them. The grammar of a schema allows at most two newlines and twenty
#: blanks between two parts, so 64 in a row are never structure. In free text an indented table may need more.
BLANK_TOKENS, SCHEMA_BLANK_LIMIT, TEXT_BLANK_LIMIT = 40, 64, 256
#: Characters in a row that an answer may have in common with its instructions.
COPIED_CHARS = 160

# Units are looked for in ranges of lengths: shortest and longest.
_RANGES = ((2, 12), (13, LONGEST_UNIT))
# Characters that are kept to compare with, and how many more may gather before the oldest are dropped.
_KEPT, _GATHERED = max(GLANCE, TIMES * LONGEST_UNIT), 4_096
# A unit of a text without borders may be one token up to here.
_LONGEST_TOKEN = 16
# A copy is known by its last characters first.
_SEED = 32
# Rows that only count on are looked for after so many tokens.
_ROWS_EVERY = 256


@dataclass(frozen=True, slots=True)
class Repetition:
    """A loop in a text: nothing that begins at `until` or behind it is new; `most` is where the second round ends."""

    kind: str
    until: int
    most: int


class RepetitionWatch:
    """Hears a text token by token; `structured` if a schema constrains it, `instructions` are not to be copied."""

    __slots__ = (
        "_blank_chars",
        "_blank_limit",
        "_blanks",
        "_copied",
        "_copied_to",
        "_equal",
        "_instructions",
        "_last",
        "_loops",
        "_tail",
        "length",
        "pieces",
    )

    def __init__(self, *, structured: bool = False, instructions: str = "") -> None:
        self._blank_limit = SCHEMA_BLANK_LIMIT if structured else TEXT_BLANK_LIMIT
        self._blanks = self._blank_chars = 0  # tokens of blanks in a row, and their characters
        self._last, self._equal = "", 0  # the last token, and how often it came in a row
        self._tail = ""
        self._loops: dict[int, int] = {}  # units of the loops that the text ends in, and the tokens behind the fourth
        self._instructions = instructions.replace("\n", " ")
        self._copied, self._copied_to = 0, -1  # characters copied in a row, and the place behind the last of them
        self.pieces: list[str] = []
        self.length = 0

    @property
    def text(self) -> str:
        """Return all that was heard."""
        return "".join(self.pieces)

    def add(self, piece: str) -> Repetition | None:
        """Add a token; return the repetition that the text ends in, if it goes on for too long."""
        if not piece:
            return None
        self.pieces.append(piece)
        self.length += len(piece)
        self._tail += piece
        if piece == self._last:
            self._equal += 1
        else:
            self._last, self._equal = piece, 1
        if piece.isspace():
            self._blanks += 1
            self._blank_chars += len(piece)
        else:
            self._blanks = self._blank_chars = 0
        self._follow_loops(len(piece))
        found = self._judge()
        if found is None and self._instructions:
            found = self._follow_copy(piece)
        if len(self._tail) > _GATHERED:
            self._tail = self._tail[-_KEPT:]
        return found

    def _follow_loops(self, size: int) -> None:
        """Count the tokens of the loops that go on, and add those whose fourth repetition is complete."""
        tail, loops = self._tail, self._loops
        for unit in tuple(loops):
            if tail[-size:] == tail[-size - unit : -unit]:
                loops[unit] += 1
            else:
                del loops[unit]
        for unit in units_of(tail):
            whole = tail[-TIMES * unit :]
            if not any(unit % known == 0 and whole[known:] == whole[:-known] for known in loops):
                loops[unit] = 0

    def _judge(self) -> Repetition | None:
        """Return the repetition that has gone on for too long."""
        same = self._equal > SAME_TOKEN_LIMIT
        if self._blanks > BLANK_TOKENS or self._blank_chars > self._blank_limit or (same and self._blanks):
            start = self.length - self._blank_chars
            return Repetition("blanks", start, start)
        if same:
            return self._loop("one token", len(self._last))
        for unit, since in self._loops.items():
            if since >= LOOP_TOKENS and not self._is_run(unit, since):
                return self._loop("the same words", unit)
        if not len(self.pieces) % _ROWS_EVERY:
            rows = counted_rows(self.text) if find_likely(self._tail) else None
            if rows:
                return Repetition("a row with the next number", *rows)
        return None

    def _is_run(self, unit: int, since: int) -> bool:
        """Test if a loop is a run of one token or of blanks, which are counted apart."""
        return (unit <= len(self._last) and self._equal >= since) or self._blank_chars >= unit * TIMES

    def _loop(self, kind: str, unit: int) -> Repetition:
        """Return the loop of so many characters in which the text ends, from where it begins."""
        text = self.text
        start = len(text) - unit
        while start and text[start - 1] == text[start - 1 + unit]:
            start -= 1
        return Repetition(kind, start + unit, start + 2 * unit)

    def _follow_copy(self, piece: str) -> Repetition | None:
        piece = piece.replace("\n", " ")
        source = self._instructions
        if self._copied_to >= 0 and source.startswith(piece, self._copied_to):
            self._copied += len(piece)
            self._copied_to += len(piece)
        else:
            seed = self._tail[-_SEED:].replace("\n", " ")
            at = source.find(seed) if len(seed) == _SEED else -1
            self._copied, self._copied_to = (_SEED, at + _SEED) if at >= 0 else (0, -1)
        if self._copied < COPIED_CHARS:
            return None
        start = self.length - self._copied
        return Repetition("its instructions", start, start)


def units_of(text: str) -> list[int]:
    """Return the length of each unit that stands four times in a row at the end of a text."""
    size = len(text)
    found = [1] if size >= TIMES and text[-TIMES:] == text[-1] * TIMES else []
    for shortest, longest in _RANGES:
        if size < TIMES * shortest:
            break
        # The end of three units stands a unit further left once more, and hardly ever anywhere else.
        first = size - 3 * shortest
        end = text[first:]
        lowest, at = max(0, first - longest), first
        while (at := text.rfind(end, lowest, size - first + at - 1)) >= 0:
            unit = first - at
            if unit >= shortest and text[-TIMES * unit : -unit] == text[(1 - TIMES) * unit :]:
                found.append(unit)
    return found


def blanks_beyond(text: str, limit: int) -> bool:
    """Test if more than `limit` blanks follow each other. A megabyte of any text takes about 5 ms."""
    size = (limit + 2) // 2  # a longer run covers one such block whole, wherever it begins
    for at in range(0, len(text), size):
        block = text[at : at + size]
        if block.strip():
            continue
        before, after = text[max(0, at - limit) : at], text[at + size : at + size + limit]
        if len(before) - len(before.rstrip()) + len(block) + len(after) - len(after.lstrip()) > limit:
            return True
    return False


def repetition_in(text: str, *, structured: bool, ended: bool) -> str:
    """Return a word for an endless repetition in a whole text, "" if there is none.

    Looks for blanks anywhere, and for a loop at the end of a text that did not end by itself. The borders of tokens are
    not known there, so a unit counts if it stands so often that its tokens are surely too many.
    """
    if blanks_beyond(text, SCHEMA_BLANK_LIMIT if structured else TEXT_BLANK_LIMIT):
        return "blanks"
    if ended:
        return ""
    for unit in units_of(text):
        if text.endswith(text[-unit:] * (SAME_TOKEN_LIMIT + 1)):
            return "blanks" if text[-unit:].isspace() else "one token"
        if unit > _LONGEST_TOKEN and text.endswith(text[-unit:] * (TIMES + LOOP_TOKENS)):
            return "the same words"
    return "a row with the next number" if counted_rows(text) else ""


#: Rows in a row without anything new.
STALE_ROWS = 8

# A row with fewer letters is a cell, a mark or a blank line, and says nothing about its neighbours.
_LEAST_LETTERS = 4
_ROW_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ROW_END = re.compile(r"\n+|(?<=[.!?;])\s+|(?<=[。！？])")


def numbers_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of some texts, as they are written there."""
    return frozenset(number for text in texts for number in _ROW_NUMBER.findall(text))


class StaleRows:
    """Hears an answer that follows from a text, and counts the rows at its end that bring nothing new.

    A row is a line or a sentence. A stale one stood in the answer before, or differs from one there only in its numbers
    and has a number that is not among those that were `shown`: a small model that cannot compute goes on like this. A
    row that differs only in numbers of the text counts against them, since it may be read from there.
    """

    __slots__ = ("_begin", "_first", "_forms", "_rest", "_rows", "_run", "_shown")

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._rows: set[str] = set()
        self._forms: set[str] = set()
        self._rest, self._begin = "", 0  # the row that has not ended, and where it begins
        self._run, self._first = 0, (0, 0)  # stale rows since the last new one, and the place of the first of them

    def add(self, piece: str) -> tuple[int, int] | None:
        """Add a piece; return where the first of the stale rows begins and ends as soon as they are too many."""
        self._rest += piece
        while end := _ROW_END.search(self._rest):
            self._note(self._rest[: end.start()].strip(), self._begin + end.start())
            self._begin += end.end()
            self._rest = self._rest[end.end() :]
        return self._first if self._run >= STALE_ROWS else None

    def _note(self, row: str, end: int) -> None:
        if sum(map(str.isalpha, row)) < _LEAST_LETTERS:
            return
        form = _ROW_NUMBER.sub("0", row)
        if form not in self._forms:
            self._run = 0
        elif row in self._rows or not self._shown.issuperset(_ROW_NUMBER.findall(row)):
            self._first = self._first if self._run else (self._begin, end)
            self._run += 1
        else:  # read from the text, or a number that counts past one of the text's
            self._run = max(0, self._run - 1)
        self._rows.add(row)
        self._forms.add(form)
