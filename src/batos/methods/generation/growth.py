"""The growth of a wish: a mission of the mind's own that makes the method which another did without, state by state.

The states of the machine do this for a wish: IDLE finds it, DECOMPOSING specifies the method, DELEGATING has the coder
draft it until a draft passes guardian and rehearsal, SYNTHESIZING audits that draft and installs it, COMPLETE records
what came of it. A wish that cannot be fulfilled is FAILED. docs/generation.md describes the whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from batos.agency.lookup import by_name
from batos.concurrency.threads import finish_despite_cancel
from batos.gate.checks import GateVerdict
from batos.image import roots
from batos.image.ownership import DOOR
from batos.image.roots import Root
from batos.inference.cost import cost_of
from batos.memory.exchanges import MEMORABLE
from batos.methods.generation import generation_limits
from batos.methods.generation.generations import GenerationRequest
from batos.methods.generation.generator import MethodGenerator
from batos.minds import states
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.results import JudgedAnswer, MindAnswer, Synthesis
from batos.minds.states import STATES, WORK_SLOT, StateWork
from batos.objects.method import Method
from batos.objects.prototype import UvmObject
from batos.protocol.brief import NO_MEMORY, MissionBrief
from batos.protocol.errors import BatosError, InternalError, MethodFailed, Refused
from batos.protocol.mission_documents import LearntDocument, WishDocument
from batos.records import tools
from batos.records.approval_subjects import Candidate


@dataclass(slots=True)
class WishWork(Synthesis):
    """The work on one wish so far: the account of it, the request for its method, and what the coder drafted."""

    wish: WishDocument | None = None
    told: LearntDocument | None = None
    request: GenerationRequest | None = None
    draft: Candidate | Method | None = None


def is_wish(brief: MissionBrief) -> bool:
    """Test if a brief is that of a mission which fulfils a wish."""
    return bool(tools.sender_of(brief.origin.door, brief.origin.client))


def brief_of(root: Root, wish: WishDocument, ancestor: str = "") -> dict[str, object]:
    """Return the brief of the mission that fulfils a wish: the same each time, so that a killed process is followed.

    `ancestor` is the mission that tried it before and ended.
    """
    sender, holder = wish["mission"], by_name(root, wish["holder"])
    name, asked = roots.name_of_object(root, holder) if holder else wish["holder"], roots.find_record(root, sender)
    brief: dict[str, object] = {
        "text": f"Make the method {wish['selector']} of {name}.",
        "priority": -9,
        "policy": {"memory": NO_MEMORY},
        "message": {"receiver": wish["holder"], "selector": wish["selector"]},
        "origin": {"door": DOOR, "client": tools.client_of(sender)},
    }
    if asked is not None:
        brief["user"] = asked.brief.value["user"]
    if ancestor:
        brief["ancestor"] = ancestor
    told = json.dumps([brief, wish["intent"]], sort_keys=True)
    return {**brief, "idempotency_key": f"{DOOR} {hashlib.sha256(told.encode()).hexdigest()}"}


# -- the work of the states


async def _begin(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Find the wish that the brief names (IDLE); another may have taken its place."""
    brief = context.mission.brief
    sender = tools.sender_of(brief.origin.door, brief.origin.client)
    meant = None if brief.message is None else (sender, brief.message.receiver, brief.message.selector)
    wishes = tools.list_wishes(context.mission.root)
    found = next((each for each in wishes if (each["mission"], each["holder"], each["selector"]) == meant), None)
    setattr(cycle, WORK_SLOT, WishWork(wish=found))
    return "DECOMPOSING"


async def _specify(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Make the specification of the method from the newest image (DECOMPOSING)."""
    growth, install = _work_of(cycle), context.mind.policy.install
    if install == "never":
        raise Refused("policy lets no method be made", field="install", remedy="Set `install` to auto in batos.toml.")
    if growth.wish is not None:
        installs = install != "ask" and not growth.wish.get("asks")
        growth.told = LearntDocument(
            receiver=roots.TOOLS, selector=growth.wish["selector"], outcome="", calls=0, tokens=0
        )
        try:
            growth.told, found = await _generator(context).specify(growth.wish, context.mission.id, installs=installs)
        except Refused as error:
            await _record_failure(context, growth, error)
            raise
        if isinstance(found, GenerationRequest):
            growth.request = found
        else:
            growth.draft = found
            _charge(context, growth.told)
        context.trace.learned[:] = [growth.told]
    return "DELEGATING"


async def _draft(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Ask the coder for drafts, until one passes guardian and rehearsal (DELEGATING)."""
    growth, generator = _work_of(cycle), _generator(context)
    request = growth.request
    if request is not None:
        await generation_limits.record_wait(generator.deps.journal, context.mission.id, request.log)
        try:
            growth.draft = await generator.generations.draft(request)
        except asyncio.CancelledError:
            await finish_despite_cancel(asyncio.ensure_future(generator.generations.leave(request)))
            raise
        except BatosError as error:
            await _record_failure(context, growth, error)
            raise
        finally:
            _charge(context, request.told)
            generation_limits.record_learnt(generator.deps.journal, context.mission.id, request.told)
    return "SYNTHESIZING"


async def _audit(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Audit the draft that passed, and install it or put it before a person (SYNTHESIZING)."""
    growth, made = _work_of(cycle), None
    if growth.request is not None and isinstance(growth.draft, Candidate):
        try:
            made = await _generator(context).generations.settle(growth.request, growth.draft)
        except BatosError as error:
            await _record_failure(context, growth, error)
            raise
    elif isinstance(growth.draft, Method):
        made = growth.draft
    text = _result_text(growth, made)
    growth.drafts.append(JudgedAnswer(MindAnswer(text), GateVerdict((), ())))
    return "COMPLETE"


async def _complete(context: MindContext, interpreter: MindInterpreter, cycle: UvmObject, args: tuple[Any, ...]) -> str:
    """Write the answer, what the audit found, and that the wish is settled (COMPLETE)."""
    growth, thought = _work_of(cycle), context.mission.thought
    after = await states.complete(context, interpreter, cycle, args)
    settled: list[tuple[str, Any]] = [(MEMORABLE, {})]
    if growth.wish is not None and growth.told is not None:
        await _tell_sender(context, growth.told)
        settled.append((tools.SETTLED_KIND, (growth.wish, growth.told["outcome"])))
    await _generator(context).deps.journal.flush(context.mission.id)  # its states too: no call of its own brings them
    thought.contributions = [*thought.contributions, *settled]
    return after


#: The work of each state where the mission fulfils a wish.
GROWING: Final[Mapping[str, StateWork]] = {
    **STATES,
    "psm.idle": _begin,
    "psm.decomposing": _specify,
    "psm.delegating": _draft,
    "psm.synthesizing": _audit,
    "psm.complete": _complete,
}


def _work_of(cycle: UvmObject) -> WishWork:
    found = states.synthesis_of(cycle)
    if not isinstance(found, WishWork):
        raise InternalError(f"the cycle of a wish holds a {type(found).__name__}")
    return found


def _generator(context: MindContext) -> MethodGenerator:
    found = context.io.methods.generator
    if not isinstance(found, MethodGenerator):
        raise InternalError("there is nothing to make a method with")
    return found


def _charge(context: MindContext, told: LearntDocument) -> None:
    """Count the calls of the generation as the mission's own: all since it was accepted, also of a killed process."""
    journal, mission = _generator(context).deps.journal, context.mission.id
    if told.get("began"):
        since = roots.mission_record(context.mission.root, mission).brief.accepted_at
        paid = journal.sound([told["generation"]])
        if not context.io.session.cost.calls:  # a second attempt has them
            cost_of((each for each in paid if each.started >= since), context.io.session.cost)
    told.update({"calls": 0, "tokens": 0, "outcome": told["outcome"] or "left"})


async def _record_failure(context: MindContext, growth: WishWork, error: BatosError) -> None:
    """Note why nothing came of a wish; the mission that wished is told if it is not tried again."""
    if growth.told is not None and isinstance(error, MethodFailed | Refused):
        growth.told.update({"outcome": growth.told["outcome"] or "failed", "failure": error.as_dict()})
        if growth.told["outcome"] != "budget" and not error.retry:
            await _tell_sender(context, growth.told)


async def _tell_sender(context: MindContext, told: LearntDocument) -> None:
    """Note with the mission that wished which one made its method, and what came of it; durable at the return."""
    origin, journal = context.mission.brief.origin, _generator(context).deps.journal
    sender, shown = tools.sender_of(origin.door, origin.client), told.copy()
    shown.pop("began", None)  # its calls are the maker's
    shown.update({"calls": 0, "tokens": 0, "after": True, "mission": context.mission.id})
    generation_limits.record_learnt(journal, sender, shown)
    await journal.flush(sender)


def _result_text(growth: WishWork, made: Method | None) -> str:
    if growth.told is None or growth.told["outcome"] == "gone":
        return "There is nothing to make any more: the method is there, or its intent is another."
    name = f"{growth.told['receiver']}.{growth.told['selector']}"
    if made is not None:
        return f"{name} is made: revision {made.revision} acts from the next mission on."
    return f"{name} is made, and waits for a person as {growth.told.get('approval', 'an approval')}."
