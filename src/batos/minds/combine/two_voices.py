"""The answers of two voices: one of two that are alike stands alone, and where the codex asks for it both are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from batos.gate.ground import Ground
from batos.minds.calls import answers
from batos.minds.combine import selection, voting
from batos.minds.combine.changes import share
from batos.minds.context import MindContext
from batos.minds.results import MindAnswer, PartResult, Synthesis
from batos.objects.prototype import lookup

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
    first, second = voting.ballot(one, question), voting.ballot(other, question)
    if first.verdict is not second.verdict or first.denies != second.denies:
        return False
    if not voting.same_numbers(first, second):
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


def keep(context: MindContext, synthesis: Synthesis, standing: Sequence[PartResult], path: str) -> MindAnswer:
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
