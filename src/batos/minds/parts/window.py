"""The bytes left for evidence beside the largest prompt that any mind of a mission will need.

A mind in lean form may be shown a few sentences of the passages, which need not fit into its window for that: how many
are recalled does not follow from the window, and how many turns are does.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from batos.inference.decisions.free_text import ReplyShape
from batos.memory.evidence import Evidence
from batos.minds import prompt
from batos.minds.calls import decisions, division
from batos.minds.calls.questions import room_for_evidence
from batos.minds.context import MindContext
from batos.minds.parts import council, delegate
from batos.minds.task import Task

#: Bytes that a weave's parts are expected to take, for each: an answer and its sub-query.
PART_BYTES: Final = 700

#: Bytes of passages that are recalled where all minds have the lean form: each call chooses from these.
FOCUSED: Final = 24 * 1024

Asked: TypeAlias = tuple[Task, ReplyShape[Any]]


def rooms(context: MindContext) -> tuple[int, ...]:
    """Return the bytes for evidence, recalled once for all minds of the mission and shown to each; never negative.

    Where all of them have the lean form there are two numbers: for passages, and for turns beside them.
    """
    question, longest = context.mind.question, decisions.QUERY
    # As long as a sub-query may be, and of the question's characters, since scripts differ in bytes.
    like_a_part = (question * (1 + longest // len(question)))[:longest] if question else ""
    minds = council.minds(context, like_a_part)
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


def fit(context: MindContext, evidence: Evidence) -> Evidence:
    """Return the evidence that all later calls can show, by the tokens measured since it was recalled.

    Evidence is left out once for all calls: if each call left out its own, they would share no beginning.
    """
    found = rooms(context)
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
    return [weave, (divided, division.shape(context, len(slots)))]
