"""What missions tell of the methods they used, folded into the lineages; who did badly for long enough goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from batos.image import methods, roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.lifecycle import scoring
from batos.methods.lifecycle.control_group import Rules

#: What an entry keeps of what a mission told, beside the mission.
_KEPT: Final = ("revision", "outcome", "control", "seconds", "tokens", "calls", "gate_faults")


@dataclass(frozen=True, slots=True)
class Retirement:
    """A revision that was taken out of use, as its event tells it."""

    receiver: str
    selector: str
    revision: int
    reason: str


def fold(root: Root, mission: str, payload: Mapping[str, Any], rules: Rules, at: str) -> Retirement | None:
    """One use into its ledger; what had to go for it.

    `payload` is {holder, selector, revision, outcome, control, seconds, tokens, calls, gate_faults}. What was never
    made a method, and a revision that there is not, leave no trace. Bounded: one lineage is read, three records of it
    are written.
    """
    lineage = root[roots.METHODS].get(f"{payload['holder']} {payload['selector']}")
    if lineage is None:
        return None
    methods.use(lineage, {"mission": mission, **{name: payload[name] for name in _KEPT}})
    if not lineage.active or payload["revision"] != lineage.active:
        return None
    reason = scoring.fault_of(scoring.recent(lineage), scoring.control(lineage), rules.least)
    return retire(root, lineage, reason, at) if reason else None


def retire(root: Root, lineage: Lineage, reason: str, at: str) -> Retirement:
    """Take the active revision out of use, for this reason."""
    revision = methods.retire(lineage, reason, at)
    return Retirement(roots.named(root, lineage.holder), lineage.selector, revision, reason)
