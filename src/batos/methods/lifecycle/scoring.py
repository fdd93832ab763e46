"""Scoring: the outcome and cost of a method, compared with interpreting the same intent.

A use is bad if the method failed, or if the gate found a fault in the answer of the mission that used it. Rates are
(bad + 1) / (uses + 2), so that few uses say little. Every function is pure and takes its numbers from the ledger.
"""

from __future__ import annotations

from typing import Final

from batos.image.records import Lineage
from batos.protocol.method_documents import CountName, SavingsDocument, UseCounts, no_use
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
