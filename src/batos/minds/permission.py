"""Ask the person of a mission about one call, and know which words are that person's own."""

from __future__ import annotations

from itertools import islice
from typing import Final

from batos.agency import permissions
from batos.agency.permissions import CallQuestion
from batos.agency.plans import MissionPlan
from batos.approvals.documents import approval_error
from batos.image.ids import iso
from batos.image.ownership import DOOR, is_guest
from batos.minds.context import MindContext
from batos.protocol.brief import FOREIGN_DOORS
from batos.protocol.errors import Refused
from batos.records import call_questions

#: The earlier questions of a conversation whose words count as the person's own.
_MOST_BEFORE: Final = 20


async def ask_person(context: MindContext, question: CallQuestion) -> None:
    """Return if the person said yes to exactly this call, or its result can only be one that is recorded.

    Raises: ApprovalNeeded: nobody has answered yet, and the mission waits. Refused: the person said no, or may not be
    asked, as a guest.
    """
    mission, desk, at = context.mission, context.io.methods.desk, iso(context.io.session.clock())
    if not context.io.outside.reaches_out:
        return
    if is_guest(mission.brief.user) or desk is None:
        raise question.refusal()
    answer = permissions.find_answer(mission.root, mission.id, question)
    word = "" if answer is None else answer.word_at(at)
    if word == "approved":
        return
    if answer is not None and word != "asked":
        raise Refused(f"{question.tool} was not called: {reason_of_no(answer.by, answer.why)}", remedy=question.remedy)
    frame = {"tool": question.tool, "arguments": dict(question.arguments)}
    asked = call_questions.candidate_of(mission.id, call_questions.CALL, question.text, frame, at)
    raise approval_error([await desk.ask(asked, mission.id)], f"the call of {question.tool}")


def standing_plan(context: MindContext) -> MissionPlan | None:
    """Return the plan to which a person said yes; a copy of the mind follows that of the mission it repeats."""
    mission = context.mission
    if not mission.brief.plan or context.mind.inner:
        return None
    repeated = None if context.io.outside.reaches_out else mission.brief.ancestor
    plans = (permissions.approved_plan(mission.root, each) for each in (mission.id, repeated) if each)
    return next(filter(None, plans), None)


def reason_of_no(by: str | None, why: str | None) -> str:
    """Return why there is no yes, in words."""
    return f"{by} said no: {why}" if by else why or "nobody answered in time"


def list_earlier_questions(context: MindContext) -> tuple[str, ...]:
    """Return the person's own earlier questions of the conversation, the newest first; a program's are nobody's."""
    mission = context.mission
    if mission.brief.origin.door in (DOOR, *FOREIGN_DOORS):
        return ()
    past = mission.past
    turns = [*([past.meant] if past.meant is not None else ()), *islice(past.newest(), _MOST_BEFORE)]
    return tuple(each.question for each in turns)
