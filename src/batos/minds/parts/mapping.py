"""A request for all of a text that fits no prompt: each share of it is asked by itself, and the replies are joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from batos.gate import citations
from batos.genesis.codex.protocol_conditions import fold
from batos.memory.evidence import Evidence, Passage
from batos.memory.search.recall import recall
from batos.minds import prompt
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, Question, infer
from batos.minds.combine import combination, ruled
from batos.minds.context import MindContext
from batos.minds.lean import WHOLE
from batos.minds.parts import window
from batos.minds.question_kind import kind_of
from batos.minds.results import MindAnswer, PartResult, Synthesis
from batos.objects.message import Interpreter
from batos.protocol.event_payloads import MISSION_PARTIAL, MissionPartial

#: Kinds of questions that ask for all of a text.
ALL_OF_IT: Final = frozenset({"list", "summarise", "extract"})
#: The most calls that are made for one, by effort: a person who wants more asks for it.
MOST_CALLS: Final = {"reflex": 8, "cycle": 32, "council": 32}
#: The decision that `mission.rule` tells before the first call.
DECISION: Final = "mapping"


def is_needed(context: MindContext) -> bool:
    """Test if a question asks for all of files of which one prompt shows a part, and may cost several calls.

    A reflex that the asker named is one call.
    """
    mind, effort = context.mind, context.mission.brief.effort
    return (
        not mind.inner
        and effort != "reflex"
        and kind_of(mind.question) in ALL_OF_IT
        and bool(context.mission.passages)
        and sum(each.size for each in context.mission.passages) > _room(context)
    )


async def answer(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> MindAnswer:
    """Ask for each share of the files, one after another, and return the replies as one answer.

    The lines of lists are put together by rule, each once; summaries are joined by a last call. The worst matches are
    left out of more text than all calls together can hold, and the person is told before the first call.
    """
    joins = kind_of(context.mind.question) == "summarise"
    shares = _choose(context, synthesis, joins=joins)
    path = f"{context.mind.name}/{DECISION}#0"
    context.decide_by_rule(path, DECISION, _plan_text(synthesis, len(shares), joins=joins))
    parts = [
        await _ask(interpreter, context, synthesis, number, share, len(shares))
        for number, share in enumerate(shares, start=1)
    ]
    synthesis.combined |= {"mode": "map", "asked": len(shares)}
    standing = [part for part in parts if not part.open]
    if not standing:
        return ruled.answer(context, synthesis, path, "no share of the files had an answer")
    if joins and len(standing) > 1:
        # The last call is shown the replies alone, and that there are files behind them.
        of = len(synthesis.recalled.passages)
        synthesis.evidence = replace(synthesis.recalled, passages=(), omitted_passages=of)
        question = combination.weaving_question(context, standing)
        said = await answers.say(interpreter, context, synthesis, question)
        synthesis.evidence = synthesis.recalled
        return said
    text = "\n".join(_lines(standing)) if len(standing) > 1 else standing[0].answer.strip()
    answers.tell(context, path, text)
    return MindAnswer(text, was_cut=any(part.was_cut for part in standing))


def _choose(context: MindContext, synthesis: Synthesis, *, joins: bool) -> list[tuple[Passage, ...]]:
    """Return the shares of the files, each of a prompt's size, and make all of them the evidence of the answer."""
    room, given = _room(context), context.mission.passages
    allowed = max(1, min(MOST_CALLS[context.mind.effort], context.io.session.limits.calls) - joins)
    shares = list(_shares(given, room))
    if len(shares) > allowed:
        best = recall(given, context.mission.past, context.mind.question, room * allowed, 0).passages
        shares = list(_shares(best, room))[:allowed]
    shown = [replace(each, number=number) for number, each in enumerate(chain.from_iterable(shares), start=1)]
    omitted = len(given) - len(shown)
    synthesis.recalled = replace(synthesis.recalled, passages=tuple(shown), omitted_passages=omitted)
    synthesis.evidence = synthesis.recalled
    numbered = iter(shown)
    return [tuple(next(numbered) for _ in share) for share in shares]


def _shares(passages: Sequence[Passage], room: int) -> Iterator[tuple[Passage, ...]]:
    """Yield passages in their order, as many together as fit the room; one that fits none stands alone."""
    share: list[Passage] = []
    left = room
    for each in passages:
        if share and each.size > left:
            yield tuple(share)
            share, left = [], room
        share.append(each)
        left -= each.size
    if share:
        yield tuple(share)


async def _ask(
    interpreter: Interpreter,
    context: MindContext,
    synthesis: Synthesis,
    number: int,
    share: tuple[Passage, ...],
    of: int,
) -> PartResult:
    """Ask for one share, and tell that it answered; a reply of no use is an open part."""
    path, voice = f"{context.mind.name}/{DECISION}#{number}", context.mind.voice
    task = prompt.reflex_task(voice, context.mind.question)
    evidence = Evidence(passages=share, turns=synthesis.recalled.turns, view=synthesis.recalled.view)
    part = PartResult(number, f"{number}_{DECISION}_", f"{number}/{of}", context.mind.question, persona=voice.name)
    try:
        spoken, _ = await infer(interpreter, context, evidence, Question(path, task, is_exact=True), decisions.WHOLE)
    except WORDLESS as wordless:
        part = replace(part, failure=wordless)
    else:
        found = await answers.attribute_aside(spoken.text, context.mind.question, evidence)
        part = replace(part, answer=spoken.text, found_nothing=citations.finds_nothing(found), was_cut=spoken.was_cut)
    told = MissionPartial(mission=context.mission.id, known=not part.open, of=of, path=path, persona=voice.name)
    context.io.events.emit(MISSION_PARTIAL, told)
    return part


def _lines(parts: Sequence[PartResult]) -> Iterator[str]:
    """Yield the lines of several lists, each once, without the empty ones between them."""
    known: set[str] = set()
    for line in (line for part in parts for line in part.answer.splitlines()):
        folded = fold(line)
        if folded and folded not in known:
            known.add(folded)
            yield line.rstrip()


def _room(context: MindContext) -> int:
    """Return the bytes of passages that one prompt shows."""
    room = window.rooms(context)[0]
    return room if context.mind.voice.form == "full" else min(room, WHOLE)


def _plan_text(synthesis: Synthesis, shares: int, *, joins: bool) -> str:
    """Say how many calls it takes, and what is left out all the same."""
    left = synthesis.recalled.omitted_passages
    more = f"; {left} parts do not fit these calls and are left out" if left else ""
    return f"the files fill {shares} prompts, so it takes {shares + joins} calls{more}"
