"""Combining: how the parts of a mind become one answer: woven, selected from, or voted on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from batos.gate.ground import Ground
from batos.genesis.codex.protocol_conditions import fold
from batos.memory.exchanges import NOTHING_NEAR
from batos.minds import prompt, without_memory
from batos.minds.calls import answers
from batos.minds.calls.questions import WORDLESS, Question
from batos.minds.combine import repair, ruled, selection, two_voices, voting
from batos.minds.context import MindContext
from batos.minds.prompt import ShownPart
from batos.minds.results import Enough, MindAnswer, PartResult, Synthesis
from batos.minds.task import Task
from batos.objects.message import Interpreter

Mode: TypeAlias = Literal["weave", "select", "vote"]
#: Answers a question without parts.
Alone: TypeAlias = Callable[[Interpreter, MindContext, Synthesis], Awaitable[MindAnswer]]


def mode(context: MindContext) -> Mode:
    """Return how this mind's parts become one answer; for select and vote each part gets the question itself.

    `auto` weaves, since a decomposition makes different sub-queries. A mind within another always weaves.
    """
    return "weave" if context.mind.inner or context.mind.policy.combine == "auto" else context.mind.policy.combine


def enough(context: MindContext, synthesis: Synthesis) -> Enough | None:
    """Return the test that tells when voting parts need not be asked further; None if all are asked at once.

    Parts that compete without being asked to vote are asked no further once one of them wrote a free text: another
    could not be equal to it, and so would not change the answer.
    """
    lean = context.mind.voice.form == "lean" and not context.mind.is_council
    if mode(context) != "vote" and not (lean and _compete(context, synthesis.queries.values())):
        return None
    of, question, asked = len(synthesis.queries), context.mind.question, mode(context) == "vote"
    return lambda parts: (
        voting.tally(parts, question, of).majority is not None or (not asked and voting.are_free(parts, question))
    )


async def combine(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, alone: Alone | None = None
) -> Ground:
    """Fill the synthesis with an answer and the gate's verdict; answers the ground on which it was judged.

    Without parts `alone` answers, or one call.

    An answer of which no document says anything is withheld. In a cycle a fault leads to one repair. A reflex is one
    call, of which words of the prompt are left out; the faults of a mind within another are told with its answer, which
    is judged again in what it is joined to. Two voices that are kept apart are not revised, because a revision is one
    text.
    """
    if not synthesis.parts:
        said = await (alone or reflex)(interpreter, context, synthesis)
        ground = answers.ground_of(context, synthesis)
        synthesis.drafts.append(await answers.judge(context, synthesis, said, ground))
        if not (said.is_ruled or context.mind.inner):
            await repair.leave_out(context, synthesis, ground, repair.FOREIGN)
            await repair.correct_sums(context, synthesis, ground)
            await repair.withhold(context, synthesis, ground)
        return ground
    ground = answers.ground_of(context, synthesis)
    said, question = await _combine(interpreter, context, synthesis, ground)
    synthesis.drafts.append(await answers.judge(context, synthesis, said, ground))
    final = said.is_ruled or context.mind.inner or two_voices.are_standing(synthesis)
    if not (synthesis.standing.verdict.ok or final):
        await repair.correct_sums(context, synthesis, ground)
        if not synthesis.standing.verdict.ok:
            await repair.repair(interpreter, context, synthesis, question, ground)
        await repair.withhold(context, synthesis, ground)
    return ground


async def reflex(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> MindAnswer:
    """Return the answer of one call; where it has no words of use, the answer is made by rule.

    A mission that is to be answered from memory alone, which has nothing, makes no call.
    """
    path = f"{context.mind.name}/reflex#0"
    if told := context.trace.told:
        return ruled.tell(context, synthesis, path, *told)
    if not context.mind.inner and (text := without_memory.only_text(context)):
        return ruled.tell(context, synthesis, path, NOTHING_NEAR, text)
    question = Question(path, prompt.reflex_task(context.mind.voice, context.mind.question))
    try:
        return await answers.say(interpreter, context, synthesis, question)
    except WORDLESS as wordless:
        answers.retract(context, path, wordless.message)
        return ruled.answer(context, synthesis, path, wordless.message)


def weaving_question(context: MindContext, joined: Sequence[PartResult]) -> Question:
    """Return the question that joins parts to one answer; their answers may be shortened as the last resort."""
    spoken = [ShownPart(part.number, part.name, part.query, answers.shown_answer(part)) for part in joined]

    def shorter(excess: int) -> tuple[Task, int]:
        parts, lost = prompt.shorten(spoken, excess)
        return prompt.weave_task(context.mind.voice, context.mind.question, parts), lost

    task = prompt.weave_task(context.mind.voice, context.mind.question, spoken)
    return Question(f"{context.mind.name}/synthesizing#0", task, shorter=shorter)


async def _combine(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, ground: Ground
) -> tuple[MindAnswer, Question]:
    """Return the answer that stands, and the question that a revision of it would go on from."""
    how, standing = await _way(context, synthesis, ground)
    synthesis.combined = {
        "mode": how,
        "decomposed": mode(context) == "weave" and not (context.mind.is_duet or synthesis.is_unasked),
    }
    if synthesis.undivided:
        synthesis.combined["undivided"] = synthesis.undivided
    woven = weaving_question(context, synthesis.parts)
    if not standing:
        return ruled.answer(context, synthesis, woven.path, "no part had an answer"), woven
    if how == two_voices.VOICES:
        return two_voices.keep(context, synthesis, standing, woven.path), woven
    if how == "weave":
        try:
            said = await answers.say(interpreter, context, synthesis, woven)
            lost = await two_voices.lost_voice(context, said, standing, ground)
        except WORDLESS as wordless:
            lost = wordless.message
        if not lost:
            return said, woven
        context.decide_by_rule(woven.path, "weave", lost)
        synthesis.combined["ruled"] = lost
        return await _stand_best(context, synthesis, standing, ground, lost), woven
    if how == "vote":
        standing = await _take_votes(context, synthesis, ground)
    winner = await selection.select(interpreter, context, synthesis, standing, ground)
    said_alike = len(standing) == 1 and not any(part.open for part in synthesis.parts)
    if context.mind.is_duet and how == "select" and said_alike:
        synthesis.combined |= {"candidates": len(synthesis.parts), "decided": "alike"}
    path = f"{context.mind.name}/{'voting' if how == 'vote' else 'selecting'}#0"
    return _let_win(context, synthesis, winner, path), Question(
        path, prompt.reflex_task(context.mind.voice, context.mind.question)
    )


async def _way(context: MindContext, synthesis: Synthesis, ground: Ground) -> tuple[str, tuple[PartResult, ...]]:
    """Return how the parts become one answer, and those whose answers do.

    Free texts cannot be equal, so no vote is held on them: those of personas stand each under its name. Of voices that
    say the same one stands.
    """
    how: str = _mode_of(context, synthesis)
    standing = selection.candidates(synthesis.parts)
    if how == "vote" and voting.are_free(standing, context.mind.question):
        how = two_voices.VOICES if context.mind.is_council else "select"
    if how == two_voices.VOICES or (how == "weave" and context.mind.is_duet):
        standing = await two_voices.differing(standing, ground)
        kept = how == two_voices.VOICES or two_voices.are_kept(context)
        how = "select" if len(standing) < 2 else two_voices.VOICES if kept else "weave"
    return how, standing


async def _stand_best(
    context: MindContext, synthesis: Synthesis, standing: Sequence[PartResult], ground: Ground, why: str
) -> MindAnswer:
    """Return the answer of the part with the fewest faults in place of a weave, since the parts are paid for.

    Two voices both stand where there is no document by which one of them could be the better one.
    """
    path = f"{context.mind.name}/synthesizing#0"
    answers.retract(context, path, why)
    if context.mind.is_duet and not synthesis.recalled.passages:
        return two_voices.keep(context, synthesis, standing, path)
    synthesis.combined |= {"candidates": len(standing), "decided": "rule"}
    winner = await selection.best(standing, ground)
    return _let_win(context, synthesis, winner, path)


def _let_win(context: MindContext, synthesis: Synthesis, winner: PartResult, path: str) -> MindAnswer:
    synthesis.combined["winner"] = {"number": winner.number, "slot": winner.slot, "name": winner.name}
    return answers.stand(context, synthesis, winner, path)


def _mode_of(context: MindContext, synthesis: Synthesis) -> Mode:
    """Return the mode as asked for; if every part has the same question `auto` selects, and in lean form votes.

    Two voices have the same question and are joined all the same, because each sees something else in it.
    """
    if len(synthesis.parts) < 2 or not _compete(context, [part.query for part in synthesis.parts]):
        return mode(context)
    return "vote" if context.mind.voice.form == "lean" else "select"


def _compete(context: MindContext, queries: Iterable[str]) -> bool:
    """Test if the parts answer the same question where their sub-queries were to differ."""
    auto = (context.mind.inner or context.mind.policy.combine == "auto") and not context.mind.is_duet
    return auto and len({fold(query) for query in queries}) == 1


async def _take_votes(context: MindContext, synthesis: Synthesis, ground: Ground) -> tuple[PartResult, ...]:
    """Return the best of the majority's answers; without a majority the best of each group, to be selected from."""
    tally = voting.tally_when_certain(synthesis.parts, context.mind.question, len(synthesis.queries))
    synthesis.combined |= {
        "votes": [[part.number for part in group] for group in tally.groups],
        "asked": len(synthesis.parts),
        "of": tally.of,
        "majority": tally.majority is not None,
    }
    groups = (tally.majority,) if tally.majority else tally.groups
    return tuple([await selection.best(group, ground) for group in groups])
