"""What an answer may rest on: passages of files, earlier turns and what is left of older ones, within a budget."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

#: Passages are cut at blank lines, and between sentences where a paragraph is longer than this (characters).
PASSAGE = 1_200
#: Passages that are picked from more than the room holds: what comes after 10 to 15 no longer helps (docs/why.md).
MOST_PASSAGES = 15
#: Passages that a prompt may show: what a citation can number.
MOST_DOCUMENTS = 99
#: Bytes that a chat template is taken to put around a message.
MARKS = 16
#: The share of the turns' room that summaries of older turns may take from the newest turns: one in so many.
VIEW_SHARE = 3

# Letters whose marks are no `\w` (Indic, Hebrew, Arabic, combining accents), so that a word is not cut at them.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0963\u0966-\u0dff"
# Scripts that write no blanks between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TERM = re.compile(f"[{_UNSPACED}]+|[^\\W{_UNSPACED}][\\w{_MARKS}]*")
_RUN = re.compile(f"[{_UNSPACED}]")
_GAP = re.compile(r"\n\s*\n")
_BLANKS = re.compile(r"\s*")
# A mark that ends a sentence with the quotes and brackets that close on it; before a small letter it is a point in an
# abbreviation, and full-width marks need no blank after them.
SENTENCE_END = re.compile(r"""[.!?…]["'”’»)\]]*(?=\s)(?!\s+[a-zß-öø-ÿа-яёα-ω])|[。！？][」』”’）]*""")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029<>\"]")


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a file: `number` is what citations name, `start` its place in the file in characters."""

    number: int
    name: str
    sha256: str
    start: int
    text: str

    def block(self) -> str:
        """The passage as a prompt shows it. It ends with a mark that its text does not hold, so none closes itself."""
        end = mark(self.text)
        name = _UNSAFE.sub("_", self.name)
        return f'<document id="{self.number}" name="{name}" digest="{end}">\n{self.text}\n</document {end}>'

    @property
    def size(self) -> int:
        """Bytes that it takes in a prompt."""
        return len(self.block().encode()) + 1


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier exchange; `trust` is the least of what its answer was made from.

    `position` counts from 1 in its conversation, and is 0 outside one.
    """

    mission: str
    question: str
    answer: str
    trust: str
    position: int = 0

    @property
    def size(self) -> int:
        """Bytes that it takes in a prompt, the template's marks counted."""
        return len(self.question.encode()) + len(self.answer.encode()) + 2 * MARKS


@dataclass(frozen=True, slots=True)
class Summary:
    """What is left of the turns `first` to `last` of a conversation: made by a model, or their first sentences.

    `trust` is the least of its turns'. It is shown as what it is, and its text is never an instruction.
    """

    first: int
    last: int
    text: str
    trust: str
    by_model: bool = True

    @property
    def turns(self) -> int:
        """How many turns it stands for."""
        return self.last - self.first + 1

    def block(self) -> str:
        """The summary as a prompt shows it; its end is marked so that no text closes it."""
        how = "Summary, made by the machine," if self.by_model else "First sentences, taken by the machine,"
        which = f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"
        end = mark(self.text)
        opening = f'<earlier turns="{self.first}-{self.last}" digest="{end}">'
        return f"{how} of {which}:\n{opening}\n{self.text}\n</earlier {end}>"

    @property
    def size(self) -> int:
        """Bytes that it takes in a prompt."""
        return len(self.block().encode()) + 1


@dataclass(frozen=True, slots=True)
class Past:
    """What was said before in a conversation of `count` turns, the last of them loaded one by one.

    `newest` gives the turns from the last down to the one after `view`, which are summaries, oldest first, of all
    turns before. `meant` is the exchange that is replied to; it may be of no conversation.
    """

    count: int = 0
    newest: Callable[[], Iterable[Turn]] = tuple
    view: tuple[Summary, ...] = ()
    meant: Turn | None = None

    @classmethod
    def of(cls, turns: Sequence[Turn], view: tuple[Summary, ...] = (), meant: Turn | None = None) -> Past:
        """These turns, oldest first, behind a view; they are numbered after it."""
        numbered = [replace(turn, position=position) for position, turn in enumerate(turns, start=_last(view) + 1)]
        return cls(_last(view) + len(numbered), lambda: reversed(numbered), view, meant)

    @property
    def covered(self) -> int:
        """The last turn that the view stands for."""
        return _last(self.view)


def _last(view: Sequence[Summary]) -> int:
    return view[-1].last if view else 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was recalled for a mission, and how many passages and turns were left out for want of room.

    `view` stands for older turns than `turns`; the exchange that is replied to is the last of these.
    """

    passages: tuple[Passage, ...] = ()
    turns: tuple[Turn, ...] = ()
    omitted_passages: int = 0
    omitted_turns: int = 0
    view: tuple[Summary, ...] = ()

    def find(self, number: int) -> Passage | None:
        """The passage that a citation names."""
        return next((each for each in self.passages if each.number == number), None)

    def joined(self, others: Iterable[Evidence]) -> Evidence:
        """With what others have beside it; their passages are numbered on behind its own."""
        passages, turns, view = list(self.passages), list(self.turns), list(self.view)
        known = {(each.sha256, each.start) for each in passages}
        for other in others:
            fresh = [each for each in other.passages if (each.sha256, each.start) not in known]
            known |= {(each.sha256, each.start) for each in fresh}
            passages += [replace(each, number=number) for number, each in enumerate(fresh, len(passages) + 1)]
            turns += [each for each in other.turns if each not in turns]
            view += [each for each in other.view if each not in view]
        return replace(self, passages=tuple(passages), turns=tuple(turns), view=tuple(view))

    def lightened(self, query: str, excess: int) -> Evidence:
        """The evidence with so many bytes less, or with nothing left.

        The weakest passages go first, then the oldest summaries, then the oldest turns.
        """
        dropped: set[int] = set()
        for passage in reversed(rank(self.passages, query)):
            if excess <= 0:
                break
            dropped.add(passage.number)
            excess -= passage.size
        view, turns, omitted = list(self.view), list(self.turns), 0
        while view and excess > 0:
            summary = view.pop(0)
            excess -= summary.size
            omitted += summary.turns
        while turns and excess > 0:
            excess -= turns.pop(0).size
            omitted += 1
        return replace(
            self,
            passages=tuple(each for each in self.passages if each.number not in dropped),
            turns=tuple(turns),
            view=tuple(view),
            omitted_passages=self.omitted_passages + len(dropped),
            omitted_turns=self.omitted_turns + omitted,
        )


def words(text: str) -> list[str]:
    """The words of a text, compatible forms unified and case folded; a run of a script without blanks is one word.

    >>> words("Ⅷ Straße")
    ['viii', 'strasse']
    """
    return _TERM.findall(unicodedata.normalize("NFKC", text).casefold())


def line_of(text: str) -> str:
    """The words of a text in one line, a blank around each: a phrase is looked for as ` whole words `."""
    return f" {' '.join(words(text))} "


def terms(text: str) -> Iterator[str]:
    """What is looked for: words, and pairs of characters where words have no blanks between them.

    >>> list(terms("灯塔的 lamp"))
    ['灯塔', '塔的', 'lamp']
    """
    for word in words(text):
        if len(word) < 3 or not _RUN.match(word):
            yield word
        else:
            yield from map("".join, pairwise(word))


def passages(files: Iterable[tuple[str, str, str]]) -> tuple[Passage, ...]:
    """The passages of files given as (name, sha256, text), numbered from 1 across all of them.

    Each is a slice of its text without blanks at its ends; together they hold everything but blanks.
    """
    found: list[Passage] = []
    for name, sha256, text in files:
        for start, end in _joined(text):
            found.append(Passage(len(found) + 1, name, sha256, start, text[start:end]))
    return tuple(found)


def _joined(text: str) -> list[tuple[int, int]]:
    """Neighbouring pieces together as long as they make no more than PASSAGE characters."""
    spans: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        if spans and end - spans[-1][0] <= PASSAGE:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs without the blanks around them, cut where they are longer than PASSAGE."""
    start = 0
    for gap in (*(found.span() for found in _GAP.finditer(text)), (len(text), len(text))):
        yield from _cut(text, start, gap[0])
        start = gap[1]


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while True:
        start = min(_blanks_end(text, start), end)
        if end - start <= PASSAGE:
            break
        cut = start + _first_cut(text[start : start + PASSAGE + 8])
        yield start, cut
        start = cut
    end = start + len(text[start:end].rstrip())
    if start < end:
        yield start, end


def _blanks_end(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def _first_cut(window: str) -> int:
    """Where to cut a window that begins a long paragraph: after a sentence, else a line, else a word, else anywhere."""
    ends = [found.end() for found in SENTENCE_END.finditer(window) if found.end() <= PASSAGE]
    if ends:
        return ends[-1]
    head = window[:PASSAGE]
    for ended in (head.rpartition("\n")[0], head.rpartition(" ")[0]):
        if ended.strip():
            return len(ended.rstrip())
    return PASSAGE


def scores(candidates: Sequence[Passage], query: str) -> list[float]:
    """How well each passage matches the query's terms: BM25 with k1 1.2 and b 0.75, 0 where none occurs."""
    wanted = set(terms(query))
    counts: list[Counter[str]] = []
    lengths: list[int] = []
    for each in candidates:
        found = list(terms(each.text))
        lengths.append(len(found))
        counts.append(Counter(term for term in found if term in wanted))
    average = sum(lengths) / max(1, len(lengths)) or 1.0
    weights = {term: _weight(len(counts), sum(1 for count in counts if term in count)) for term in sorted(wanted)}
    return [
        sum(weights[term] * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / average)) for term, n in sorted(count.items()))
        for count, length in zip(counts, lengths, strict=True)
    ]


def _weight(all_of_them: int, holding: int) -> float:
    return math.log(1 + (all_of_them - holding + 0.5) / (holding + 0.5))


def rank(candidates: Sequence[Passage], query: str) -> list[Passage]:
    """Passages by how well they match the query; ties keep their order."""
    scored = zip(scores(candidates, query), candidates, strict=True)
    return [passage for _, passage in sorted(scored, key=lambda pair: -pair[0])]


def recall(candidates: Sequence[Passage], past: Past, query: str, room: int) -> Evidence:
    """What fits into `room` bytes: what was said before in half of it at most, passages in the rest.

    All passages if they fit; else the best that match, or the first where none does. They come back in the order of
    their files, since neighbours explain each other, and are numbered anew from 1. Turns are loaded, newest first,
    until one has no room.
    """
    kept = remembered(past, room // 2 if candidates else room)
    room -= sum(turn.size for turn in kept.turns) + sum(summary.size for summary in kept.view)
    passages_ = _fitting(candidates, query, room)
    numbered = tuple(replace(each, number=number) for number, each in enumerate(passages_, start=1))
    return replace(kept, passages=numbered, omitted_passages=len(candidates) - len(numbered))


def remembered(past: Past, room: int) -> Evidence:
    """The turns and summaries that fit into `room` bytes.

    The exchange that is replied to first, then the newest turns, then the newest summaries of what is older; these
    have a share of the room that turns do not take.
    """
    meant = past.meant if past.meant is not None and past.meant.size <= room else None
    room -= meant.size if meant else 0
    reserved = min(sum(each.size for each in past.view), room // VIEW_SHARE)
    turns: list[Turn] = []
    for turn in past.newest():
        if meant is not None and turn.mission == meant.mission:
            continue
        if turn.size > room - reserved:
            break
        room -= turn.size
        turns.insert(0, turn)
    view: list[Summary] = []
    for summary in reversed(past.view):
        if summary.size > room:
            break
        room -= summary.size
        view.insert(0, summary)
    shown = (*turns, *([meant] if meant else ()))
    first = view[0].first if view else past.covered + 1
    told = sum(0 < each.position < first or each.position > past.covered for each in shown)
    return Evidence(turns=shown, view=tuple(view), omitted_turns=past.count - told - (past.covered - first + 1))


def _fitting(candidates: Sequence[Passage], query: str, room: int) -> list[Passage]:
    if len(candidates) <= MOST_DOCUMENTS and sum(each.size for each in candidates) <= room:
        return list(candidates)
    scored = [pair for pair in zip(scores(candidates, query), candidates, strict=True) if pair[0] > 0]
    best = [passage for _, passage in sorted(scored, key=lambda pair: -pair[0])] or list(candidates)
    kept: list[Passage] = []
    for passage in best[:MOST_PASSAGES]:
        if passage.size <= room:
            room -= passage.size
            kept.append(passage)
    return sorted(kept, key=lambda each: each.number)


def mark(text: str) -> str:
    """A digest that the text does not hold, so that it cannot end its own block."""
    found = _digest(text)
    while found in text:
        found = _digest(found + text)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
