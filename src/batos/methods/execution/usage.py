"""Interpretation of intents, and records of each use of an intent or method: in the provenance and in the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from typing import Final, Literal, TypeAlias, TypeVar

from batos.image.ids import tid_text
from batos.inference.cost import is_spent
from batos.methods.execution.resolution import CELLLESS, CONTROL, Invocation, ResolvedMessage, ToIntent, ToMethod
from batos.minds.calls import questions
from batos.minds.parts.interpret import SubQuery, interpret
from batos.minds.results import PartResult, Synthesis
from batos.minds.trace import MethodUse
from batos.objects.prototype import label, reference
from batos.protocol.errors import CellMissing, MethodFailed, ObjectError, Refused
from batos.protocol.mission_documents import RanDocument

T = TypeVar("T")
#: A use with more answers than this, and a quarter of its mission's calls, is at fault for a spent budget.
MANY: Final = 8
Outcome: TypeAlias = Literal["ok", "fault"]


async def record_method(invocation: Invocation[ToMethod], work: Awaitable[T]) -> T:
    """Run a method through `work`, and record its revision and the digest of its source."""
    message, context = invocation.message, invocation.context
    method = message.method
    made = (reference(message.holder), message.selector) in context.trace.generated
    told = _slot_fields(message)
    told |= {
        "revision": str(method.revision),
        "digest": hashlib.sha256(method.source.encode("utf-8", "surrogatepass")).hexdigest(),
        "as": "method, made in this mission" if made else "method",
        "path": invocation.path,
    }
    context.trace.behaviour.append(told)
    return await _record_use(invocation, work, method.revision, control=False)


async def interpret_intent(invocation: Invocation[ToIntent], synthesis: Synthesis | None = None) -> PartResult:
    """Return the persona's answer to the text of a message, the one place where an intent answers, and record the use.

    `synthesis` is that of the mind that asks: a protocol's reply is streamed to the user, and the call has the place of
    the intent's kind. Without it a method asks: nothing is streamed, and the call stands at the method's place.
    The commit that wrote the intent and the reason for interpreting it are recorded. The use goes to the ledger only
    for an intent that may become a method, or as a control; never for want of a cell.
    """
    message, context = invocation.message, invocation.context
    path = questions.call_path(invocation.path, 0) if synthesis is None else ""
    asked = SubQuery(message.selector, message.intent, message.text, message.number, path)
    told = _slot_fields(message)
    told |= {"revision": tid_text(message.intent._p_serial), "as": message.because}
    context.trace.behaviour.append(told)
    work = interpret(invocation.interpreter, context, invocation.evidence, asked, synthesis)
    control = message.because == CONTROL
    if message.because == CELLLESS or not (control or message.intent.may_learn):
        return await work
    return await _record_use(invocation, work, message.revision, control=control)


def _slot_fields(message: ResolvedMessage) -> RanDocument:
    """Return the fields of a record that name the slot."""
    return {"selector": message.selector, "holder": label(message.holder), "oid": reference(message.holder)}


async def _record_use(
    invocation: Invocation[ToMethod] | Invocation[ToIntent], work: Awaitable[T], revision: int, *, control: bool
) -> T:
    """Return the result of `work`, and record the use of a slot with its outcome and what it spent.

    The tokens, answers and seconds are its own, without waiting and repeated runs. An error that is not the slot's
    fault, such as a missing cell, is not recorded.
    """
    message, context, limits = invocation.message, invocation.context, invocation.limits
    session = context.io.session
    before, own = session.spending_at(invocation.path), limits.seconds

    def record(outcome: Outcome) -> None:
        spent = session.spending_at(invocation.path) - before
        seconds = spent.seconds + limits.seconds - own
        slot = (reference(message.holder), message.selector)
        context.trace.uses.append(MethodUse(*slot, revision, outcome, control, seconds, spent.tokens, spent.answers))

    try:
        found = await work
    except CellMissing:
        raise
    except (MethodFailed, ObjectError):
        record("fault")
        raise
    except Refused as error:
        # The mission fails of this: the use that spent most is counted, or its method would fail every mission.
        spent = (session.spending_at(invocation.path) - before).answers
        if is_spent(error) and spent > MANY and 4 * spent >= session.cost.calls:
            record("fault")
        raise
    record("ok")
    return found
