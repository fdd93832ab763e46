"""Combining: how the parts of a mind become one answer: woven, selected, of two voices, or by rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from batos.gate import languages
from batos.gate.ground import Ground
from batos.genesis.codex.declarations import fold
from batos.inference.decide import AskedSchema
from batos.memory.exchanges import NOTHING_NEAR
from batos.memory.search.recall import focus
from batos.minds import answers_by_rule, prompt
from batos.minds.calls import answers
from batos.minds.calls.questions import WORDLESS, Question
from batos.minds.combine import selection
from batos.minds.combine.changes import share
from batos.minds.context import MindContext
from batos.minds.prompt import ShownPart
from batos.minds.results import Enough, MindAnswer, PartResult, Synthesis, Task
from batos.objects.prototype import Interpreter, lookup

#: The mode of an answer that keeps each voice under its name.
VOICES: Final = "voices"
#: The share of the words of the answer with fewer of them from which another says the same.
SAME: Final = 0.7
#: The share of the better answer's words that an answer which a small model made of two has left.
LEAST_KEPT: Final = 0.7


async def differing(standing: Sequence[PartResult], ground: Ground) -> tuple[PartResult, ...]:
    """Return the answers that say something of their own: of several that say the same the best one alone."""
    groups: list[list[PartResult]] = []
    for part in standing:
        same = next((group for group in groups if say_the_same(group[0].answer, part.answer, ground.question)), None)
        if same is None:
            groups.append([part])
        else:
            same.append(part)
    return tuple([await selection.best(group, ground) for group in groups])


def say_the_same(one: str, other: str, question: str) -> bool:
    """Test if of two answers the one with fewer words of its own adds nothing: the other has most of them.

    Another number, or a yes where the other has a no, is something of its own.
    """
    first, second = selection.ballot(one, question), selection.ballot(other, question)
    if first.verdict is not second.verdict or first.denies != second.denies:
        return False
    if not selection.same_numbers(first, second):
        return False
    fewer = min(len(first.words), len(second.words))
    return len(first.words & second.words) >= SAME * fewer


async def lost_voice(context: MindContext, joined: MindAnswer, standing: Sequence[PartResult], ground: Ground) -> str:
    """Return the reason why the answer that a small model made of two is of no use; "" if it is of use.

    A small model that joins two answers writes one of them down, or a third that says less: of the words that the
    better answer adds to the question, few are left.
    """
    if not context.mind.is_duet or context.mind.voice.form != "lean":
        return ""
    better = await selection.best(standing, ground)
    kept, brought = share(better.answer, joined.answer, context.mind.question)
    return (
        "" if kept >= LEAST_KEPT * brought else f"the joined answer has {kept} of the {brought} words of {better.name}"
    )


def are_kept(context: MindContext) -> bool:
    """Test if both texts of this mind's two voices stay, each under its name: the codex asks for it, and the asker for
    nothing else.
    """
    found = lookup(context.mind.persona, "answer_form")
    asked = found is not None and found.value == "two_voices" and context.mind.policy.combine == "auto"
    return context.mind.is_duet and asked


def keep_voices(context: MindContext, synthesis: Synthesis, standing: Sequence[PartResult], path: str) -> MindAnswer:
    """Return both texts, each under its name, word for word: no call joins them, and nothing changes them later."""
    synthesis.combined["mode"] = VOICES
    text = "\n\n".join(f"{part.name}:\n\n{part.answer.strip()}" for part in standing)
    answers.tell(context, path, text)
    cited = (each for part in standing for each in part.citations)
    answers.tell_citations(context, path, cited, answers.ground_of(context, synthesis).evidence)
    return MindAnswer(text, was_cut=any(part.was_cut for part in standing))


def are_standing(synthesis: Synthesis) -> bool:
    """Test if the answer that stands is that of two voices, each under its name."""
    return synthesis.combined.get("mode") == VOICES


#: The statement that nothing was found, by the language of the question.
_NOTHING: Final = {
    "German": "Dazu wurde nichts gefunden.",
    "French": "Aucune réponse n'a été trouvée.",
    "Spanish": "No se encontró ninguna información.",
    "Italian": "Nessuna informazione è stata trovata.",
    "Portuguese": "Não se encontrou nenhuma informação.",
    "Dutch": "Er is geen antwoord gevonden.",
}
_NOTHING_ENGLISH: Final = "Nothing was found."


def answer_by_rule(context: MindContext, synthesis: Synthesis, path: str, why: str) -> MindAnswer:
    """Return the sentences of the evidence that bear most on the question, each quoted with its document's number.

    Without such a sentence the first part's statement that nothing was found is used, or one by rule. A mind within
    another has no answer then, since that one combines what others answered.
    """
    if context.mind.inner:
        return give_rule_text(context, synthesis, path, why, "")
    found = focus(synthesis.recalled.passages, context.mind.question, context.mission.shared.focus)
    text = "\n\n".join(f"> {' '.join(each.text.split())} [{each.number}]" for each in found)
    said = next((part.answer for part in synthesis.parts if part.answer.strip()), "")
    language = languages.guess(context.mind.question) or ""
    text = text or said or _NOTHING.get(language, _NOTHING_ENGLISH)
    return give_rule_text(context, synthesis, path, why, text)


def give_rule_text(context: MindContext, synthesis: Synthesis, path: str, why: str, text: str) -> MindAnswer:
    """Return a text as the answer by rule, for a reason, and tell it."""
    context.decide_by_rule(path, "answer", why)
    synthesis.combined["ruled"] = why
    if not context.trace.wanted:  # that text is of calls, which nobody reads as an answer
        answers.tell(context, path, text)
    return MindAnswer(text, is_ruled=True)


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
    if context.mission.steps.word("DELEGATING", "delegate", "stop") == "never":
        return None
    lean = context.mind.voice.form == "lean" and not context.mind.is_council
    if mode(context) != "vote" and not (lean and _compete(context, synthesis.queries.values())):
        return None
    of, question, asked = len(synthesis.queries), context.mind.question, mode(context) == "vote"
    return lambda parts: (
        selection.tally(parts, question, of).majority is not None or (not asked and selection.are_free(parts, question))
    )


@dataclass(frozen=True, slots=True)
class CombinedAnswer:
    """The ground on which the answer in the synthesis was judged, and what may still be done to it.

    An answer that is final stays as it is. `question` is what a revision goes on from, None for the answer of one call.
    """

    ground: Ground
    question: Question | None
    is_final: bool


async def combine(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, alone: Alone | None = None
) -> CombinedAnswer:
    """Fill the synthesis with an answer and the gate's verdict.

    Without parts `alone` answers, or one call.

    In a cycle an answer without a fault is final. The faults of a mind within another are told with its answer, which
    is judged again in what it is joined to. Two voices that are kept apart are not revised, because a revision is one
    text.
    """
    question: Question | None = None
    if synthesis.parts:
        ground = answers.ground_of(context, synthesis)
        said, question = await _combine(interpreter, context, synthesis, ground)
    else:
        said = await (alone or reflex)(interpreter, context, synthesis)
        ground = answers.ground_of(context, synthesis)
    judged = await answers.judge(context, synthesis, said, ground)
    synthesis.drafts.append(judged)
    is_done = judged.verdict.ok or are_standing(synthesis) if synthesis.parts else said.is_structured
    return CombinedAnswer(ground, question, said.is_ruled or context.mind.inner or is_done)


async def reflex(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> MindAnswer:
    """Return the answer of one call; where it has no words of use, the answer is made by rule.

    A mission that is to be answered from memory alone, which has nothing, makes no call.
    """
    path = f"{context.mind.name}/reflex#0"
    if told := context.trace.told:
        return give_rule_text(context, synthesis, path, *told)
    if not context.mind.inner and (text := answers_by_rule.only_text(context)):
        return give_rule_text(context, synthesis, path, NOTHING_NEAR, text)
    question = Question(path, prompt.reflex_task(context.mind.voice, context.mind.question))
    try:
        return await answers.say(interpreter, context, synthesis, question)
    except WORDLESS as wordless:
        answers.retract(context, path, wordless.message)
        return answer_by_rule(context, synthesis, path, wordless.message)


async def answer_by_schema(interpreter: Interpreter, context: MindContext, synthesis: Synthesis) -> MindAnswer:
    """Return the answer of one call that has the brief's schema; a reply without it is asked for once more.

    Raises: DecisionInvalid: the second reply does not have it either, and no rule can write one that does.
    """
    path, schema = f"{context.mind.name}/reflex#0", AskedSchema(context.mission.brief.answer_schema or {})
    question = Question(path, prompt.reflex_task(context.mind.voice, context.mind.question), is_exact=True)
    spoken, _ = await answers.infer_kept(interpreter, context, synthesis, question, schema)
    answers.tell(context, path, spoken.text)
    return MindAnswer(spoken.text, is_structured=True)


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
        return answer_by_rule(context, synthesis, woven.path, "no part had an answer"), woven
    if how == VOICES:
        return keep_voices(context, synthesis, standing, woven.path), woven
    if how == "weave":
        try:
            said = await answers.say(interpreter, context, synthesis, woven)
            lost = await lost_voice(context, said, standing, ground)
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
    if how == "vote" and selection.are_free(standing, context.mind.question):
        how = VOICES if context.mind.is_council else "select"
    if how == VOICES or (how == "weave" and context.mind.is_duet):
        standing = await differing(standing, ground)
        kept = how == VOICES or are_kept(context)
        how = "select" if len(standing) < 2 else VOICES if kept else "weave"
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
        return keep_voices(context, synthesis, standing, path)
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
    tally = selection.tally_when_certain(synthesis.parts, context.mind.question, len(synthesis.queries))
    synthesis.combined |= {
        "votes": [[part.number for part in group] for group in tally.groups],
        "asked": len(synthesis.parts),
        "of": tally.of,
        "majority": tally.majority is not None,
    }
    groups = (tally.majority,) if tally.majority else tally.groups
    return tuple([await selection.best(group, ground) for group in groups])
