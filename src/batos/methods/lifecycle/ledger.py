"""The ledger: adds the uses of methods that missions report to the lineages, and retires a method that does badly."""

from __future__ import annotations

from dataclasses import dataclass

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.lifecycle import scoring
from batos.methods.lifecycle.control_group import Rules
from batos.protocol.method_documents import UseDocument, UsePayload
from batos.records import methods

#: The fields of a mission's report that an entry keeps.


@dataclass(frozen=True, slots=True)
class Retirement:
    """A revision that was taken out of use, with the reason: the fields of its event."""

    receiver: str
    selector: str
    revision: int
    reason: str


def fold(root: Root, mission: str, payload: UsePayload, rules: Rules, at: str) -> Retirement | None:
    """Add one use to its lineage, and return the retirement that this causes, if any.

    A slot without a lineage, or a revision that does not exist, is ignored. The cost is bounded: one lineage is
    read, and three of its records are written.
    """
    lineage = root[roots.METHODS].get(f"{payload['holder']} {payload['selector']}")
    if lineage is None:
        return None
    use: UseDocument = {
        "mission": mission,
        "revision": payload["revision"],
        "outcome": payload["outcome"],
        "control": payload["control"],
        "seconds": payload["seconds"],
        "tokens": payload["tokens"],
        "calls": payload["calls"],
        "gate_faults": payload["gate_faults"],
    }
    methods.use(lineage, use)
    if not lineage.active or payload["revision"] != lineage.active:
        return None
    reason = scoring.fault_of(scoring.recent(lineage), scoring.control(lineage), rules.least)
    return retire(root, lineage, reason, at) if reason else None


def retire(root: Root, lineage: Lineage, reason: str, at: str) -> Retirement:
    """Retire the active revision for this reason, and return the retirement."""
    revision = methods.retire(lineage, reason, at)
    return Retirement(roots.name_of_object(root, lineage.holder), lineage.selector, revision, reason)
