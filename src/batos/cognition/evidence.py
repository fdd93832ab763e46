"""What an answer may rest on: passages of the attached files and earlier turns, chosen within a budget."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

#: Passages are cut at blank lines, and at sentence ends where a paragraph is longer than this (characters).
PASSAGE = 1_200

_WORD = re.compile(r"\w+")
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)]*\s+")  # noqa: RUF001 - full-width marks end sentences too


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a file: `number` is what citations name, `start` its place in the file in characters."""

    number: int
    name: str
    sha256: str
    start: int
    text: str

    def block(self) -> str:
        """The passage as a prompt shows it. Its end carries a digest, so no text can close its own block."""
        mark = hashlib.sha256(self.text.encode()).hexdigest()[:8]
        name = self.name.replace('"', "'").replace("\n", " ")
        return f'<document id="{self.number}" name="{name}" digest="{mark}">\n{self.text}\n</document {mark}>'


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier exchange of the conversation."""

    mission: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was recalled for a mission, and how many passages and turns were left out for want of room."""

    passages: tuple[Passage, ...] = ()
    turns: tuple[Turn, ...] = ()
    omitted_passages: int = 0
    omitted_turns: int = 0

    def find(self, number: int) -> Passage | None:
        """The passage that a citation names."""
        return next((each for each in self.passages if each.number == number), None)

    @property
    def text(self) -> str:
        """Everything in it, for checks of what occurs."""
        turns = (f"{turn.question}\n{turn.answer}" for turn in self.turns)
        return "\n".join((*(each.text for each in self.passages), *turns))


def words(text: str) -> list[str]:
    """The words of a text, compatible forms unified and case folded.

    >>> words("Ⅷ Straße")
    ['viii', 'strasse']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def passages(files: Iterable[tuple[str, str, str]]) -> tuple[Passage, ...]:
    """The passages of files given as (name, sha256, text), numbered from 1 across all of them."""
    found: list[Passage] = []
    for name, sha256, text in files:
        for start, span in _spans(text):
            found.append(Passage(len(found) + 1, name, sha256, start, span))
    return tuple(found)


def _spans(text: str) -> list[tuple[int, str]]:
    """Paragraphs joined up to PASSAGE characters, longer ones cut between sentences, each with its place."""
    spans: list[tuple[int, str]] = []
    for start, end in _pieces(text):
        if spans and end - spans[-1][0] <= PASSAGE:
            begin = spans[-1][0]
            spans[-1] = (begin, text[begin:end])
        else:
            spans.append((start, text[start:end]))
    return spans


def _pieces(text: str) -> list[tuple[int, int]]:
    bounds: list[tuple[int, int]] = []
    position = 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end = gap.start() if gap else len(text)
        bounds.extend(_sentences(text, position, end))
        position = gap.end() if gap else end
    return [(start, end) for start, end in bounds if text[start:end].strip()]


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A paragraph whole, or cut at sentence ends; a sentence longer than PASSAGE is cut at a blank."""
    pieces: list[tuple[int, int]] = []
    while end - start > PASSAGE:
        window = text[start : start + PASSAGE]
        ends = [found.end() for found in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else (window.rfind(" ") + 1 or PASSAGE)
        pieces.append((start, start + cut))
        start += cut
    return [*pieces, (start, end)]


def rank(candidates: Sequence[Passage], query: str) -> list[Passage]:
    """Passages by how well they match the query's words (BM25, k1 1.2, b 0.75); ties keep their order."""
    counted = [Counter(words(each.text)) for each in candidates]
    average = sum(sum(count.values()) for count in counted) / max(1, len(counted)) or 1.0
    scores = [0.0] * len(counted)
    for word in set(words(query)):
        holding = sum(1 for count in counted if word in count)
        if not holding:
            continue
        weight = math.log(1 + (len(counted) - holding + 0.5) / (holding + 0.5))
        for index, count in enumerate(counted):
            frequency = count[word]
            length = 0.25 + 0.75 * sum(count.values()) / average
            scores[index] += weight * frequency * 2.2 / (frequency + 1.2 * length)
    order = sorted(range(len(candidates)), key=lambda index: (-scores[index], index))
    return [candidates[index] for index in order]


def recall(candidates: Sequence[Passage], turns: Sequence[Turn], query: str, room: int) -> Evidence:
    """What fits into `room` bytes: the newest turns in half of it at most, the best passages in the rest.

    Passages come back in the order of their files, since neighbours explain each other.
    """
    kept_turns: list[Turn] = []
    turn_room = room // 2 if candidates else room
    for turn in reversed(turns):
        size = len(turn.question.encode()) + len(turn.answer.encode()) + 64
        if size > turn_room:
            break
        turn_room -= size
        room -= size
        kept_turns.insert(0, turn)
    kept: list[Passage] = []
    for passage in rank(candidates, query):
        size = len(passage.block().encode()) + 1
        if size <= room:
            room -= size
            kept.append(passage)
    kept.sort(key=lambda each: each.number)
    return Evidence(tuple(kept), tuple(kept_turns), len(candidates) - len(kept), len(turns) - len(kept_turns))


def without_weakest(evidence: Evidence, query: str) -> Evidence:
    """One step of compaction: first recall, then the oldest turn. Unchanged when nothing is left to give."""
    if evidence.passages:
        weakest = rank(evidence.passages, query)[-1]
        kept = tuple(each for each in evidence.passages if each is not weakest)
        return replace(evidence, passages=kept, omitted_passages=evidence.omitted_passages + 1)
    if evidence.turns:
        return replace(evidence, turns=evidence.turns[1:], omitted_turns=evidence.omitted_turns + 1)
    return evidence
