"""Selection of one answer among answers to the same question: by the model, asked in two orders, or by the gate."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from batos.gate.ground import Ground
from batos.genesis.codex.protocol_conditions import fold
from batos.minds import prompt
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, Question
from batos.minds.context import MindContext
from batos.minds.prompt import ShownPart
from batos.minds.results import MindAnswer, PartResult, Synthesis
from batos.minds.task import Task
from batos.objects.message import Interpreter

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
