"""The ledger: adds the uses of methods that missions report to the lineages, and retires a method that does badly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from batos.image import methods, roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.lifecycle import scoring
from batos.methods.lifecycle.control_group import Rules

#: The fields of a mission's report that an entry keeps.
_KEPT: Final = ("revision", "outcome", "control", "seconds", "tokens", "calls", "gate_faults")


@dataclass(frozen=True, slots=True)
class Retirement:
    """A revision that was taken out of use, with the reason: the fields of its event."""

    receiver: str
    selector: str
    revision: int
    reason: str


def fold(root: Root, mission: str, payload: Mapping[str, Any], rules: Rules, at: str) -> Retirement | None:
    """Add one use to its lineage, and return the retirement that this causes, if any.

    `payload` is {holder, selector, revision, outcome, control, seconds, tokens, calls, gate_faults}. A slot without a
    lineage, or a revision that does not exist, is ignored. The cost is bounded: one lineage is read, and three of its
    records are written.
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
    """Retire the active revision for this reason, and return the retirement."""
    revision = methods.retire(lineage, reason, at)
    return Retirement(roots.name_of_object(root, lineage.holder), lineage.selector, revision, reason)
