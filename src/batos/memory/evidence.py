"""Hold what an answer may rest on: passages of files, earlier turns and summaries of older ones."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from batos.memory.segmentation import terms

#: Passages that a prompt may show: what a citation can number.
MOST_DOCUMENTS = 99
#: Bytes that a chat template is taken to put around a message.
MARKS = 16
#: Bytes that a prompt puts around a passage: the marks of its document, and a note of what is left out before it.
FRAME = 150
#: The reason for which a pinned passage is shown, and that of one that is perhaps about something else.
PINNED, PERHAPS = "pinned", "perhaps"


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a file: `number` is what citations name, `start` its place in the file in characters.

    `trust` is the class of its text. A remembered one has the name of its `document`, the number of its `chunk`, the
    `mission` that it came of, the reasons `why` it was found, and a `weight`: how well it matches beside the best one.
    A `standing` such as `[superseded since 2026-11-26]` says that it does not simply hold, and stands before its text.
    `lead` are the blanks that stand before it in its file, `head` the heading above it or the names of its columns,
    `day` the date of its file or of its saying (ISO 8601), `speaker` who said it, and `source` the path of its file.
    `left_out` has a phrase for each part of its file that could not be read, `pages` the places where its pages end.
    """

    number: int
    name: str
    sha256: str
    start: int
    text: str
    trust: str = "external"
    document: str = ""
    chunk: int = 0
    why: str = ""
    mission: str = ""
    weight: float = 1.0
    standing: str = ""
    lead: str = "\n\n"
    head: str = ""
    day: str = ""
    speaker: str = ""
    source: str = ""
    left_out: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()

    def page_at(self, place: int) -> int:
        """Return the number of the page that a place of the file is on; 0 where it has no pages."""
        return bisect_left(self.pages, place) + 1 if self.pages else 0

    @property
    def file(self) -> tuple[str, str]:
        """Return the name and the digest of the file, or of the remembered document, that it is of."""
        return self.document or self.name, self.sha256

    @property
    def is_perhaps(self) -> bool:
        """Test if it is shown because nothing nearer was found."""
        return self.why.startswith(PERHAPS)

    @property
    def is_pinned(self) -> bool:
        """Test if a person wants it shown whatever is asked."""
        return self.why == PINNED

    def with_mark(self, text: str) -> str:
        """Return a text of it behind the mark that says that it does not simply hold; as it is where there is none."""
        return f"{self.standing} {text}" if self.standing else text

    @property
    def size(self) -> int:
        """Return the bytes of the passage in a prompt, at most: as a document of its own, behind a note."""
        beside = "".join((self.name, self.head, self.day, self.speaker))
        return len(self.with_mark(self.text).encode()) + len(beside.encode()) + FRAME


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier exchange; `trust` is the least of what its answer was made from.

    `position` counts from 1 in its conversation, and is 0 outside one. `day` is that on which it was asked.
    """

    mission: str
    question: str
    answer: str
    trust: str
    position: int = 0
    day: str = ""

    @property
    def size(self) -> int:
        """Return the bytes of the turn in a prompt, with the template's marks."""
        return len(self.question.encode()) + len(self.answer.encode()) + 2 * MARKS


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the turns `first` to `last` of a conversation, written by a model or made of their first sentences.

    `trust` is the least of its turns'. A prompt shows it as a summary, and its text is never an instruction.
    """

    first: int
    last: int
    text: str
    trust: str
    by_model: bool = True

    def block(self) -> str:
        """Return the summary as a prompt shows it, ended by a mark that its text does not hold."""
        how = "Summary, made by the machine," if self.by_model else "First sentences, taken by the machine,"
        which = f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"
        end = mark(self.text)
        opening = f'<earlier turns="{self.first}-{self.last}" digest="{end}">'
        return f"{how} of {which}:\n{opening}\n{self.text}\n</earlier {end}>"

    @property
    def size(self) -> int:
        """Return the bytes of the summary in a prompt."""
        return len(self.block().encode()) + 1


@dataclass(frozen=True, slots=True)
class Past:
    """The earlier part of a conversation, up to the position `count`; its newest turns are loaded one by one.

    `newest` yields the turns from the last down to the one after `view`. `view` holds summaries, oldest first, of all
    turns before. `meant` is the exchange that is replied to, which may be outside any conversation. The positions in
    `undone` are those of undone turns.
    """

    count: int = 0
    newest: Callable[[], Iterable[Turn]] = tuple
    view: tuple[Summary, ...] = ()
    meant: Turn | None = None
    undone: tuple[int, ...] = ()

    @property
    def last_summarised_turn(self) -> int:
        """Return the last turn that the view stands for."""
        return self.view[-1].last if self.view else 0


def count_standing(first: int, last: int, undone: Iterable[int]) -> int:
    """Return how many turns there are from one position to another, if those at some positions are undone."""
    return last - first + 1 - sum(first <= each <= last for each in undone)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence recalled for a mission, and the number of passages and turns left out for lack of space.

    `view` stands for turns older than `turns`; the exchange that is replied to is the last of `turns`. The positions
    in `undone` are those of undone turns, which are not left out.
    """

    passages: tuple[Passage, ...] = ()
    turns: tuple[Turn, ...] = ()
    omitted_passages: int = 0
    omitted_turns: int = 0
    view: tuple[Summary, ...] = ()
    undone: tuple[int, ...] = ()

    def find(self, number: int) -> Passage | None:
        """Return the passage that a citation names, or None."""
        return next((each for each in self.passages if each.number == number), None)

    def merge(self, others: Iterable[Evidence]) -> Evidence:
        """Return this evidence with what others have beside it; their passages are numbered on behind its own."""
        passages, turns, view = list(self.passages), list(self.turns), list(self.view)
        known = {(each.sha256, each.start) for each in passages}
        for other in others:
            fresh = [each for each in other.passages if (each.sha256, each.start) not in known]
            known |= {(each.sha256, each.start) for each in fresh}
            passages += [replace(each, number=number) for number, each in enumerate(fresh, len(passages) + 1)]
            turns += [each for each in other.turns if each not in turns]
            view += [each for each in other.view if each not in view]
        return replace(self, passages=tuple(passages), turns=tuple(turns), view=tuple(view))

    def lighten(self, query: str, excess: int) -> Evidence:
        """Return the evidence with at least `excess` bytes less, or with nothing left.

        The weakest passages go first, then the oldest summaries, then the oldest turns.
        """
        dropped: set[int] = set()
        weakest_first = [*reversed(rank(self.passages, query))]
        for passage in sorted(weakest_first, key=lambda each: each.is_pinned):
            if excess <= 0:
                break
            dropped.add(passage.number)
            excess -= len(passage.text.encode())
        passages = tuple(each for each in self.passages if each.number not in dropped)
        lighter = replace(self, passages=passages, omitted_passages=self.omitted_passages + len(dropped))
        return lighter.without_turns(excess)

    def without_turns(self, excess: int) -> Evidence:
        """Return the evidence with at least `excess` bytes of turns less, or with none: summaries first, then turns.

        The oldest go first.
        """
        view, turns, omitted = list(self.view), list(self.turns), 0
        while view and excess > 0:
            summary = view.pop(0)
            excess -= summary.size
            omitted += count_standing(summary.first, summary.last, self.undone)
        while turns and excess > 0:
            excess -= turns.pop(0).size
            omitted += 1
        return replace(self, turns=tuple(turns), view=tuple(view), omitted_turns=self.omitted_turns + omitted)


def mark(text: str) -> str:
    """Return a digest of 8 hex digits that the text does not hold, so that the text cannot end its own block."""
    found = _digest(text)
    while found in text:
        found = _digest(found + text)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def by_file(passages: Iterable[Passage]) -> list[list[Passage]]:
    """Return the passages of each file by their places in it; the files come in the order of their first passages."""
    found: dict[tuple[str, str], list[Passage]] = {}
    for each in passages:
        found.setdefault(each.file, []).append(each)
    return [sorted(several, key=lambda each: each.start) for several in found.values()]


# -- ranks passages by the words that they share with a question (BM25)


def scores(candidates: Sequence[Passage], query: str) -> list[float]:
    """Return how well each text matches a query's terms: BM25 with k1 1.2 and b 0.75, 0 where none occurs."""
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
    """Return texts by how well they match a query, the best first; ties keep their order."""
    scored = zip(scores(candidates, query), candidates, strict=True)
    return [each for _, each in sorted(scored, key=lambda pair: -pair[0])]
