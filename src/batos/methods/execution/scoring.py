"""Scoring: interpretation of intents, records of each use, and the outcome and cost of a method beside interpreting it.

A use is bad if the method failed, or if the gate found a fault in the answer of the mission that used it. Rates are
(bad + 1) / (uses + 2), so that few uses say little. Every function is pure and takes its numbers from the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable
from typing import Final, Literal, TypeAlias, TypeVar

from batos.image.ids import tid_text
from batos.image.records import Lineage
from batos.inference.cost import is_spent
from batos.methods.execution.resolution import CELLLESS, CONTROL, Invocation, ResolvedMessage, ToIntent, ToMethod
from batos.minds.calls import questions
from batos.minds.parts.interpret import SubQuery, interpret
from batos.minds.results import PartResult, Synthesis
from batos.minds.trace import MethodUse
from batos.objects.prototype import label, reference
from batos.protocol.errors import CellMissing, MethodFailed, ObjectError, Refused
from batos.protocol.method_documents import CountName, SavingsDocument, UseCounts, no_use
from batos.protocol.mission_documents import RanDocument
from batos.records import outcomes

#: The share of failed uses from which a method is retired without regard to its control.
FAILING: Final = 0.5
#: The difference of two rates of bad uses from which one is worse than the other.
MARGIN: Final = 0.25
#: The fewest interpreted calls before a method is compared with them. A gate judges a whole answer, and its faults are
#: counted against every method of the mission: so few controls suffice only because two methods' controls seldom meet.
CONTROLS: Final = 3
#: The factor and the addend of the cost that a method no better than its control may have.
TOKENS: Final = (1.25, 64)
SECONDS: Final = (1.5, 0.25)
#: The counts that a method costs, with these and their unit.
_PRICES: Final[tuple[tuple[CountName, tuple[float, float], str], ...]] = (
    ("tokens", TOKENS, ""),
    ("seconds", SECONDS, " s"),
)


def recent(lineage: Lineage) -> UseCounts:
    """Return the counts of the active revision's uses since it last became active."""
    now = (lineage.totals.get(lineage.active) or no_use())["method"]
    counts, before = now.copy(), lineage.since["method"]
    for name in outcomes.COUNTED:
        counts[name] -= before.get(name, 0)  # an older version did not count all
    return counts


def control(lineage: Lineage, revision: int = 0) -> UseCounts:
    """Return the counts of interpreted calls with the intent of a revision, over all its revisions.

    Revision 0 means the active one.
    """
    number = revision or lineage.active
    if number == 0:
        return no_use()["control"]
    wish = lineage.revisions[number].provenance["intent"]
    meant = [each.revision for each in lineage.revisions.values() if each.provenance["intent"] == wish]
    found = [lineage.totals[each]["control"] for each in meant if each in lineage.totals]
    return outcomes.sum_counts(found)


def rate(counts: UseCounts) -> float:
    """Estimate the probability that the next use is bad.

    >>> rate({"calls": 0, "bad": 0}), rate({"calls": 8, "bad": 1})
    (0.5, 0.2)
    """
    return float((counts["bad"] + 1) / (counts["calls"] + 2))


def contribution(method: UseCounts, beside: UseCounts) -> SavingsDocument:
    """Return the savings of a method against its control over all its uses; each value is None without a control.

    `better` is the control's rate of bad uses minus the method's. Seconds and tokens are totals.
    """
    if not method["calls"] or not beside["calls"]:
        return {"better": None, "seconds_saved": None, "tokens_saved": None}
    saved = {name: _mean(beside, name) * method["calls"] - method[name] for name in ("seconds", "tokens")}
    return {
        "better": round(rate(beside) - rate(method), 3),
        "seconds_saved": round(saved["seconds"], 3),
        "tokens_saved": round(saved["tokens"]),
    }


def fault_of(method: UseCounts, beside: UseCounts, least: int) -> str:
    """Return the reason to retire a method; "" if it may stay, or if it is too early to judge."""
    calls = method["calls"]
    if calls == 0 or calls < least:
        return ""
    if method["faults"] >= FAILING * calls:
        return f"it failed in {method['faults']} of {calls} uses"
    if beside["calls"] < CONTROLS:
        return ""
    worse = rate(method) - rate(beside)
    if worse > MARGIN:
        said = f"{method['bad']} of {calls} uses ended badly"
        return f"{said}, of its control {beside['bad']} of {beside['calls']}"
    return _dearer(method, beside) if worse > -MARGIN else ""


def _dearer(method: UseCounts, beside: UseCounts) -> str:
    """Return the reason to retire a method that is no better than its control and costs too much; "" if it does not."""
    for name, (share, more), unit in _PRICES:
        spent, usual = _mean(method, name), _mean(beside, name)
        if spent > share * usual + more:
            what = f"{spent:.3g}{unit}" if unit else f"{spent:.0f} tokens"
            instead = f"{usual:.3g}{unit}" if unit else f"{usual:.0f}"
            return f"it is no better than its control and costs {what} a use instead of {instead}"
    return ""


def _mean(counts: UseCounts, name: CountName) -> float:
    """Return the mean of a count for each use."""
    return float(counts[name] / counts["calls"])


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
