"""A person's yes to calls: of a plan as a whole, or of one call that would send private words or change something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from batos.agency.payloads import payload_of
from batos.agency.plans import MissionPlan, PlannedCall, PlannedPart, mark, read_plan
from batos.agency.records import effect_records
from batos.image import roots
from batos.image.ownership import is_guest
from batos.image.records import Approval
from batos.image.roots import Root
from batos.protocol.errors import ObjectError, Refused
from batos.records.call_questions import CALL, PLAN, list_asked

#: The most words that a refusal names.
_NAMED: Final = 5
#: The reason to ask where words would leave the machine.
LEAVES: Final = "the look-up would send words that are not of your question"


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A call of a tool that needs a person's yes, and why; `words` of its arguments are those that ask.

    `remedy` is what else a person may do.
    """

    tool: str
    arguments: Mapping[str, Any]
    why: str
    words: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def reason(self) -> str:
        """Return why it asks, with the words."""
        named = ", ".join(word[:40] for word in self.words[:_NAMED])
        return f"{self.why}: {named}" if named else self.why

    @property
    def text(self) -> str:
        """Return the question as a person is shown it: the reason, the marked words, and the exact call."""
        shown = [f"{name}: {mark(str(value), self.words)}" for name, value in self.arguments.items()]
        remarks = [f"It asks since {self.reason}.", *(shown if self.words else ())]
        return MissionPlan((PlannedPart("", "", (PlannedCall(self.tool, self.arguments),)),)).as_text(remarks)

    def refusal(self) -> Refused:
        """Return the error where nobody may be asked."""
        if self.words:
            return Refused(self.reason, field="query", remedy=self.remedy)
        what = f"{self.tool} was not called: it needs a yes, since {self.why}, and nobody can be asked"
        return Refused(what, remedy=self.remedy)


#: Returns if a person said yes to exactly this call. Raises: ApprovalNeeded: nobody has answered. Refused: a no.
AsksPerson: TypeAlias = Callable[[CallQuestion], Awaitable[None]]


async def refuse(question: CallQuestion) -> None:
    """Refuse a call, where there is nobody to ask. Raises: Refused: always."""
    raise question.refusal()


def plan_in(asked: Approval) -> MissionPlan:
    """Return the plan that a question has: of one call it is a plan without parts."""
    frame = asked.candidate.get("frame") or {}
    if asked.candidate["selector"] == PLAN:
        return read_plan(asked.candidate["source"], frame)
    return MissionPlan((PlannedPart("", "", (PlannedCall(frame["tool"], frame["arguments"]),)),))


def approved_plan(root: Root, mission: str) -> MissionPlan | None:
    """Return the plan of a mission to which a person said yes; None: there is none."""
    return next((plan_in(each) for each in list_asked(root, mission, PLAN) if each.word == "approved"), None)


def find_answer(root: Root, mission: str, question: CallQuestion) -> Approval | None:
    """Return the approved question about exactly this call, or plan that has it; else the newest, or None."""
    tool, given = question.tool, question.arguments
    found = [each for each in list_asked(root, mission, CALL, PLAN) if plan_in(each).has_call(tool, given)]
    return next((each for each in found if each.word == "approved"), next(iter(found), None))


def is_planned(root: Root, effect: Mapping[str, Any]) -> bool:
    """Test if an approved plan has exactly this effect: then it asks no second time. A guest's plan allows nothing."""
    record = roots.find_record(root, effect["mission"])
    if record is None or not record.brief.value.get("plan") or is_guest(record.brief.value["user"]):
        return False
    plan = approved_plan(root, effect["mission"])
    name = f"{effect['grant']}.{effect['operation'].rpartition('.')[2]}_"
    for each in plan.effects if plan is not None else ():
        with suppress(ObjectError):  # an argument that is left out, or is none
            given = [each.arguments[argument] for argument in sorted(each.arguments)]  # path before text
            payload = payload_of(effect["operation"], given)
            same = effect_records.fingerprint_of(effect["oid"], effect["operation"], payload) == effect["fingerprint"]
            if each.name == name and same:
                return True
    return False
