"""A request for all of a text that fits no prompt: the bytes that are left for evidence, and each share by itself.

A mind in lean form may be shown a few sentences of the passages, which need not fit into its window for that: how many
are recalled does not follow from the window, and how many turns are does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, TypeAlias

from batos.gate import attribution
from batos.genesis.codex.declarations import fold
from batos.inference.decide import ReplyShape
from batos.memory.evidence import Evidence, Passage
from batos.memory.search.recall import recall
from batos.minds import prompt
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import WORDLESS, Question, infer, room_for_evidence
from batos.minds.combine import combination
from batos.minds.context import MindContext
from batos.minds.lean import WHOLE
from batos.minds.parts import delegate
from batos.minds.question_kind import kind_of
from batos.minds.results import MindAnswer, PartResult, Synthesis, Task
from batos.objects.prototype import Interpreter
from batos.protocol.event_payloads import MISSION_PARTIAL, MissionPartial

#: Bytes that a weave's parts are expected to take, for each: an answer and its sub-query.
PART_BYTES: Final = 700

#: Bytes of passages that are recalled where all minds have the lean form: each call chooses from these.
FOCUSED: Final = 24 * 1024

Asked: TypeAlias = tuple[Task, ReplyShape[Any]]


def rooms_in_window(context: MindContext) -> tuple[int, ...]:
    """Return the bytes for evidence, recalled once for all minds of the mission and shown to each; never negative.

    Where all of them have the lean form there are two numbers: for passages, and for turns beside them.
    """
    question, longest = context.mind.question, decisions.QUERY
    # As long as a sub-query may be, and of the question's characters, since scripts differ in bytes.
    like_a_part = (question * (1 + longest // len(question)))[:longest] if question else ""
    minds = delegate.council_minds(context, like_a_part)
    whole = [mind for mind in minds if mind.mind.voice.form == "full"]
    least = min(room_for_evidence(mind, _tasks(mind)) for mind in whole or minds)
    return (least,) if whole else rooms_in_lean(least)


def rooms_beside(context: MindContext, task: Task, decision: ReplyShape[Any]) -> tuple[int, ...]:
    """Return the same for a mind that is asked one question."""
    room = room_for_evidence(context, [(task, decision)])
    return (room,) if context.mind.voice.form == "full" else rooms_in_lean(room)


def rooms_in_lean(room: int) -> tuple[int, int]:
    """Return the bytes for passages and for turns, where so many are left in a lean prompt."""
    return FOCUSED, max(0, room // 2)


def fit_evidence(context: MindContext, evidence: Evidence) -> Evidence:
    """Return the evidence that all later calls can show, by the tokens measured since it was recalled.

    Evidence is left out once for all calls: if each call left out its own, they would share no beginning.
    """
    found = rooms_in_window(context)
    excess = prompt.evidence_size(context.mission.shared.with_evidence(evidence)) - found[0]
    return evidence.lighten(context.mission.brief.text, excess) if excess > 0 and len(found) == 1 else evidence


def _tasks(context: MindContext) -> list[Asked]:
    """Return the largest tasks of a mind: its decomposition, if it has one, and its weave, or its only call."""
    slots, question, woven = (
        delegate.slots_of(context),
        context.mind.question,
        decisions.answer_shape(inner=context.mind.inner),
    )
    if not slots:
        return [(prompt.reflex_task(context.mind.voice, question), woven)]
    expected = "x" * (PART_BYTES * len(slots))
    weave: Asked = (prompt.weave_task(context.mind.voice, question, ()).then(expected), woven)
    if context.mind.is_duet:
        return [weave]
    described = delegate.describe(context, slots)
    divided = prompt.decompose_task(context.mind.voice, question, described)
    return [weave, (divided, decisions.division_shape(context, len(slots)))]


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
        return combination.answer_by_rule(context, synthesis, path, "no share of the files had an answer")
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
        part = replace(part, answer=spoken.text, found_nothing=attribution.finds_nothing(found), was_cut=spoken.was_cut)
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
    room = rooms_in_window(context)[0]
    return room if context.mind.voice.form == "full" else min(room, WHOLE)


def _plan_text(synthesis: Synthesis, shares: int, *, joins: bool) -> str:
    """Say how many calls it takes, and what is left out all the same."""
    left = synthesis.recalled.omitted_passages
    more = f"; {left} parts do not fit these calls and are left out" if left else ""
    return f"the files fill {shares} prompts, so it takes {shares + joins} calls{more}"
