"""What a method contributes: its outcome and its cost, held against the same wish interpreted.

A use is bad if the method failed, or if the gate found a fault in the answer of the mission that used it. Rates are
(bad + 1) / (uses + 2): little evidence says little. Every function is pure, and all numbers are the ledger's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from batos.image import uses
from batos.image.records import Lineage

Counts: TypeAlias = Mapping[str, Any]

#: A method that fails by itself in so many of its uses goes, whatever its control does.
FAILING: Final = 0.5
#: By how much its rate of bad uses has to differ from its control's to be worse, or better.
MARGIN: Final = 0.25
#: How often the wish must have been interpreted before anything is held against it. A gate judges a whole answer, and
#: its faults are held against every method of the mission: so few controls are enough only because those of two methods
#: seldom meet.
CONTROLS: Final = 3
#: A method no better than its control may cost so much of it, and so much more, before it goes.
TOKENS: Final = (1.25, 64)
SECONDS: Final = (1.5, 0.25)


def recent(lineage: Lineage) -> Counts:
    """The active revision's own uses since it became active."""
    now = (lineage.totals.get(lineage.active) or uses.nothing())["method"]
    return {name: now[name] - lineage.since["method"][name] for name in uses.COUNTED}


def control(lineage: Lineage, revision: int = 0) -> Counts:
    """How the wish of a revision (0: of the active one) fared when it was interpreted, for any of its revisions."""
    number = revision or lineage.active
    if number == 0:
        return uses.nothing()["control"]
    wish = lineage.revisions[number].provenance["intent"]
    meant = [each.revision for each in lineage.revisions.values() if each.provenance["intent"] == wish]
    found = [lineage.totals[each]["control"] for each in meant if each in lineage.totals]
    return {name: sum(each[name] for each in found) for name in uses.COUNTED}


def rate(counts: Counts) -> float:
    """How likely the next use is a bad one.

    >>> rate({"calls": 0, "bad": 0}), rate({"calls": 8, "bad": 1})
    (0.5, 0.2)
    """
    return float((counts["bad"] + 1) / (counts["calls"] + 2))


def contribution(method: Counts, beside: Counts) -> dict[str, Any]:
    """What the method saved against its control, in all of its uses; None where there is no control to say.

    `better` is by how much its rate of bad uses is below its control's.
    """
    if not method["calls"] or not beside["calls"]:
        return {"better": None, "seconds_saved": None, "tokens_saved": None}
    saved = {name: _mean(beside, name) * method["calls"] - method[name] for name in ("seconds", "tokens")}
    return {
        "better": round(rate(beside) - rate(method), 3),
        "seconds_saved": round(saved["seconds"], 3),
        "tokens_saved": round(saved["tokens"]),
    }


def fault_of(method: Counts, beside: Counts, least: int) -> str:
    """Why a method has to go, in words; empty: it may stay, or it is too early to say."""
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


def _dearer(method: Counts, beside: Counts) -> str:
    """Of a method that is no better: what it costs too much of."""
    for name, (share, more), unit in (("tokens", TOKENS, ""), ("seconds", SECONDS, " s")):
        spent, usual = _mean(method, name), _mean(beside, name)
        if spent > share * usual + more:
            what = f"{spent:.3g}{unit}" if unit else f"{spent:.0f} tokens"
            instead = f"{usual:.3g}{unit}" if unit else f"{usual:.0f}"
            return f"it is no better than its control and costs {what} a use instead of {instead}"
    return ""


def _mean(counts: Counts, name: str) -> float:
    return float(counts[name] / counts["calls"])
