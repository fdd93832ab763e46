"""Voting: answers to the same question are grouped by their content, and asking stops at a certain majority."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from batos.gate.texts import languages
from batos.gate.values import figures, numerals
from batos.memory.terms import words
from batos.minds.results import PartResult

#: Two answers whose words agree to this share (Jaccard, without small words and those of the question) say the same.
ALIKE = 0.5
#: An answer of so many words at most is a short phrase: it says the same as another one that contains it.
PHRASE = 6
#: An answer of more words, without a yes or no and without a number of its own, is a free text: no other equals it.
FREE = 24

_YES = frozenset("yes yeah ja jawohl oui si sì sí sim да 是 是的 对 はい हाँ हां जी".split())
_NO = frozenset("no nope nein non não nee нет 不 不是 否 いいえ नहीं".split())
_NOT = frozenset(
    "not no never none nicht kein keine keinen keiner nie niemals pas jamais aucun aucune nunca ningún não nem niet"
    " geen нет не никогда nessuno mai neither nor without cannot isn't aren't wasn't don't doesn't didn't won't can't"
    " नहीं".split()
)
_OPENING = re.compile(r"[^\w]*([\w']+(?:\s?的)?)\s*(?:[,.;:!。，、！–—-]|\Z)")


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """The content of an answer in the forms in which answers are compared."""

    verdict: bool | None
    numbers: tuple[frozenset[object], ...]
    words: frozenset[str]
    denies: bool
    size: int

    @property
    def is_brief(self) -> bool:
        """Test if it is a short phrase."""
        return self.size <= PHRASE

    @property
    def is_free(self) -> bool:
        """Test if it is a free text, which can be compared with no other."""
        return self.verdict is None and not self.numbers and self.size > FREE


def ballot(answer: str, question: str) -> ComparedAnswer:
    """Return an answer for comparison: yes or no at its head, numbers that the question lacks, its own words.

    >>> ballot("Yes, it is 1,200 m.", "How deep is it?").verdict
    True
    """
    opening = _OPENING.match(answer.casefold())
    head = opening[1] if opening else ""
    verdict = True if head in _YES else False if head in _NO else None
    asked = figures.read_numbers(question)
    numbers = tuple(
        frozenset[object](each.values or {each.text})
        for each in figures.find(answer)
        if not (each.values & asked.values or each.text in asked.written)
    )
    said = words(answer.replace("\u2019", "'"))
    if len(said) <= PHRASE:
        # In a few words a number may be written out; in many it is a way of speaking.
        spelled = (value for value in numerals.numbers_in_words(answer) if value > 1 and value not in asked.values)
        numbers = numbers or tuple(frozenset[object]({value}) for value in sorted(spelled))
    own = frozenset(word for word in said if word not in languages.SMALL_WORDS and not word[0].isdigit())
    return ComparedAnswer(
        verdict,
        numbers,
        own - frozenset(words(question)),
        bool(_NOT.intersection(re.findall(r"[\w']+", answer.casefold().replace("\u2019", "'")))),
        len(said),
    )


def same(one: ComparedAnswer, other: ComparedAnswer) -> bool:
    """Test if two answers say the same, by the first of these criteria that both have.

    Yes or no; one number each; the numbers; a short phrase that the other contains; the share of common words.
    """
    if one.verdict is not None and other.verdict is not None:
        return one.verdict is other.verdict
    if one.numbers and other.numbers:
        return same_numbers(one, other)
    if one.denies != other.denies:
        return False
    common, all_words = one.words & other.words, one.words | other.words
    if not all_words:
        return one.numbers == other.numbers
    if (one.is_brief and one.words and one.words <= other.words) or (
        other.is_brief and other.words and other.words <= one.words
    ):
        return True
    return len(common) >= ALIKE * len(all_words)


def same_numbers(one: ComparedAnswer, other: ComparedAnswer) -> bool:
    """Test if every number of the answer with fewer numbers is in the other; 1.200 may be 1200 or 1.2."""
    fewer, more = sorted((one.numbers, other.numbers), key=len)
    return all(any(number & another for another in more) for number in fewer)


def are_free(parts: Sequence[PartResult], question: str) -> bool:
    """Test if parts answered with free texts, on which no vote can be held."""
    return any(ballot(part.gist or part.answer, question).is_free for part in parts if not part.open)


@dataclass(frozen=True, slots=True)
class VoteCount:
    """The votes so far: groups of parts that say the same, in the order in which each was first said.

    `asked` counts the parts that were asked, `of` all that there are; a part without an answer has no vote.
    """

    groups: tuple[tuple[PartResult, ...], ...]
    asked: int
    of: int

    @property
    def votes(self) -> int:
        """Return the number of votes."""
        return sum(len(group) for group in self.groups)

    @property
    def majority(self) -> tuple[PartResult, ...] | None:
        """Return the group that has more than half of the votes, however the missing ones are cast; None if there is
        none.
        """
        possible = self.votes + self.of - self.asked
        return next((group for group in self.groups if 2 * len(group) > possible), None)


def tally(parts: Sequence[PartResult], question: str, of: int) -> VoteCount:
    """Count the votes of the parts that were asked, in order; each joins the first group whose first member says the
    same.

    The gist of each answer is compared, or the whole of it where it has none.
    """
    groups: list[tuple[ComparedAnswer, list[PartResult]]] = []
    for part in parts:
        if part.open:
            continue
        cast = ballot(part.gist or part.answer, question)
        joined = next((members for head, members in groups if same(head, cast)), None)
        if joined is None:
            groups.append((cast, [part]))
        else:
            joined.append(part)
    return VoteCount(tuple(tuple(members) for _, members in groups), len(parts), of)


def tally_when_certain(parts: Sequence[PartResult], question: str, of: int) -> VoteCount:
    """Return the count at the first part after which the majority was certain, else that of all parts.

    Parts asked at once give the same count as parts asked one after another until it is decided.
    """
    for asked in range(1, len(parts)):
        found = tally(parts[:asked], question, of)
        if found.majority:
            return found
    return tally(parts, question, of)
