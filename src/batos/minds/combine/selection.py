"""Selection of one answer among answers to the same question: by the model, or by votes for their content."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from batos.gate import figures, languages, numerals
from batos.gate.ground import Ground
from batos.genesis.codex.declarations import fold
from batos.memory.segmentation import words
from batos.minds import prompt
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, Question
from batos.minds.context import MindContext
from batos.minds.prompt import ShownPart
from batos.minds.results import MindAnswer, PartResult, Synthesis, Task
from batos.objects.prototype import Interpreter

#: The reason for which a small model is not asked to choose.
NOT_ASKED: Final = "no answer has a majority, and a small model is not asked to choose"
_NO_VOTES: Final[Mapping[int, int]] = {}


@dataclass(frozen=True, slots=True)
class Merit:
    """The computed merit of a candidate if the model does not decide: more votes, then fewer faults, then more
    citations, then place.
    """

    faults: int
    citations: int
    place: int
    votes: int = 1

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Return the sort key; the least is the best."""
        return (-self.votes, self.faults, -self.citations, self.place)


def candidates(parts: Sequence[PartResult]) -> tuple[PartResult, ...]:
    """Return the parts that can win: those with an answer, each answer once."""
    found: dict[str, PartResult] = {}
    for part in parts:
        if not part.open:
            found.setdefault(fold(part.answer), part)
    return tuple(found.values())


def orders(question: str, answers: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two orders of the places 0..n-1 in which no place has the same position twice.

    The orders follow from the texts alone, so that a retry or a replay makes the same prompts and finds them in the
    journal.
    """
    seed = hashlib.sha256("\0".join((question, *answers)).encode("utf-8", "surrogatepass")).digest()
    shuffle = random.Random(seed)
    first = list(range(len(answers)))
    shuffle.shuffle(first)
    second = first
    while len(answers) > 1 and any(one == other for one, other in zip(first, second, strict=True)):
        second = shuffle.sample(first, len(first))
    return tuple(first), tuple(second)


def decide_winner(named: Sequence[int | None], merits: Sequence[Merit]) -> tuple[int, str]:
    """Return the place of the winner and the reason: `agreed`, `named`, `votes`, `faults`, `citations` or
    `place`.

    `named` has the choice of each order, None for no valid choice; if neither made one, all candidates compete.
    """
    told = {place for place in named if place is not None}
    if len(told) == 1 and None not in named:
        return told.pop(), "agreed"
    left = [merits[place] for place in sorted(told or range(len(merits)))]
    best = min(left, key=lambda merit: merit.rank)
    if len(left) == 1:
        return best.place, "named"
    for many, reason in enumerate(("votes", "faults", "citations"), start=1):
        if sum(1 for merit in left if merit.rank[:many] == best.rank[:many]) == 1:
            return best.place, reason
    return best.place, "place"


async def select(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, standing: Sequence[PartResult], ground: Ground
) -> PartResult:
    """Return the winner among at least one part; a single part needs no call.

    If a vote came to no majority, `combined` has its groups, and a candidate counts as many votes as its group. A small
    model is not asked then.
    """
    if len(standing) == 1:
        synthesis.combined |= {"candidates": 1, "decided": "alone"}
        return standing[0]
    if context.mind.voice.form == "lean" and context.mind.policy.combine != "select":
        winner, decided = decide_winner((), await _merits(standing, ground, _votes(synthesis)))
        context.decide_by_rule(f"{context.mind.name}/voting#0", "choice", NOT_ASKED)
        synthesis.combined |= {"candidates": len(standing), "decided": decided}
        return standing[winner]
    named: list[int | None] = []
    for sample, order in enumerate(orders(context.mind.question, [part.answer for part in standing])):
        shown = [standing[place] for place in order]
        chosen = await _ask_for_best(interpreter, context, synthesis, shown, sample)
        named.append(None if chosen is None else order[chosen - 1])
    merits = await _merits(standing, ground, _votes(synthesis)) if len(set(named)) > 1 or None in named else ()
    winner, decided = decide_winner(named, merits)
    if set(named) == {None}:
        context.decide_by_rule(f"{context.mind.name}/selecting#0", "choice", "no reply was a valid choice")
    synthesis.combined |= {
        "candidates": len(standing),
        "shown": [part.number for part in standing],
        "named": [None if place is None else standing[place].number for place in named],
        "decided": decided,
    }
    return standing[winner]


async def _ask_for_best(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, shown: Sequence[PartResult], sample: int
) -> int | None:
    """Return the number of the candidate that the model names, counted from 1 as shown; None if it names no
    valid one.
    """
    spoken = [ShownPart(at, "", "", answers.shown_answer(part)) for at, part in enumerate(shown, start=1)]

    def shorter(excess: int) -> tuple[Task, int]:
        parts, lost = prompt.shorten(spoken, excess)
        return prompt.select_task(context.mind.voice, context.mind.question, parts), lost

    task = prompt.select_task(context.mind.voice, context.mind.question, spoken)
    question = Question(f"{context.mind.name}/selecting#{sample}", task, shorter=shorter)
    decision = decisions.choice(len(shown))
    try:
        value, _ = await answers.infer_kept(interpreter, context, synthesis, question, decision)
    except WORDLESS:
        return None
    return int(value.model_dump()["best"])


async def best(group: Sequence[PartResult], ground: Ground) -> PartResult:
    """Return, of parts that say the same, the one with the fewest faults, then the most citations, then the first."""
    merits = await _merits(group, ground) if len(group) > 1 else [Merit(0, 0, 0)]
    return group[min(merits, key=lambda merit: merit.rank).place]


def _votes(synthesis: Synthesis) -> dict[int, int]:
    """Return the size of each voting part's group, by the part's number; empty if no vote was held."""
    return {number: len(group) for group in synthesis.combined.get("votes", ()) for number in group}


async def _merits(standing: Sequence[PartResult], ground: Ground, votes: Mapping[int, int] = _NO_VOTES) -> list[Merit]:
    found = []
    for place, part in enumerate(standing):
        judged = await answers.judge_alone(MindAnswer(part.answer.strip()), ground)
        found.append(Merit(len(judged.verdict.faults), len(part.citations), place, votes.get(part.number, 1)))
    return found


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


def same_answer(one: ComparedAnswer, other: ComparedAnswer) -> bool:
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
        joined = next((members for head, members in groups if same_answer(head, cast)), None)
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
