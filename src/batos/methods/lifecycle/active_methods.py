"""The active method of a slot: installed, rolled back, left out for a control, or retired for what its uses say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.lifecycle import scoring
from batos.objects.method import Method
from batos.protocol.errors import InternalError, Refused
from batos.protocol.event_payloads import MethodRetired
from batos.protocol.method_documents import UseDocument, UsePayload
from batos.records import methods
from batos.records.candidates import Candidate

#: The defaults of the settings.
EVERY: Final = 10
ACTIVE: Final = 16
LEAST: Final = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings `method_control`, `method_active` and `method_uses`.

    Of each `every` calls one is interpreted as the control (0: none), a receiver has at most `active` active methods,
    and no method is judged before it was used `least` times.
    """

    every: int = EVERY
    active: int = ACTIVE
    least: int = LEAST


def is_control(mission: str, selector: str, every: int) -> bool:
    """Test if this mission interprets the method's intent as a control.

    The answer depends on nothing but the arguments.

        >>> [is_control("m-1", f"slot{number}_", 3) for number in range(6)].count(True)
        2
    """
    if every == 0:
        return False
    digest = hashlib.sha256(f"{mission} {selector}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % every == 0


def install(root: Root, candidate: Candidate, rules: Rules, at: str) -> tuple[Method, bool, list[MethodRetired]]:
    """Install a candidate. Return its method, True if the revision is new, and the methods retired to keep the limit.

    Raises: Refused, NotFound: as `methods.install`.
    """
    holder = methods.find_holder(root, candidate.holder)
    before = methods.lineage_of(root, holder, candidate.selector)
    revisions = 0 if before is None else len(before.revisions)
    method = methods.install(root, candidate, at)
    lineage = methods.lineage_of(root, holder, candidate.selector)
    if lineage is None:
        raise InternalError(f"{candidate.selector!r} was installed and has no lineage")
    return method, method.revision > revisions, enforce_limit(root, lineage, rules, at)


def roll_back(root: Root, lineage: Lineage, revision: int, rules: Rules, at: str, by: str) -> list[MethodRetired]:
    """Make a former revision active again (0: the intent), and return the methods that were retired for it.

    Raises: NotFound, Refused: as `methods.restore`.
    """
    former = lineage.active
    methods.restore(root, lineage, revision, at, by)
    if revision == 0:
        return [_retirement(root, lineage, former, f"{by} put the intent back")]
    return enforce_limit(root, lineage, rules, at)


def previous_revision(root: Root, lineage: Lineage) -> int:
    """Return the revision to roll back to if none is named.

    This is the newest older revision that was not retired, otherwise the newest older one; if none is active, the last
    active one.

    Raises: Refused: there is no such revision.
    """
    older = range(lineage.active - 1, 0, -1)
    if older:
        return next((number for number in older if number not in lineage.retired), older[0])
    former = [entry["former"] for entry in lineage.history.values() if entry["former"]]
    if lineage.active or not former:
        raise Refused(
            f"{methods.name_of(root, lineage)} has no revision before this one",
            field="revision",
            remedy="`--revision 0` puts the intent back, and it is interpreted again.",
        )
    return int(former[-1])


def enforce_limit(root: Root, newest: Lineage, rules: Rules, at: str) -> list[MethodRetired]:
    """Retire the receiver's worst methods until at most `rules.active` are active; return the retirements.

    The newest method is never retired here.
    """
    active = [each for each in methods.lineages_of(root, newest.holder) if each.active]
    gone: list[MethodRetired] = []
    while len(active) > rules.active and len(active) > 1:
        lineage = worst(each for each in active if each is not newest)
        counts = scoring.recent(lineage)
        did = f"{counts['bad']} of its {counts['calls']} uses ended badly" if counts["calls"] else "it was never used"
        reason = f"the receiver may have at most {rules.active} active methods; the worst was this: {did}"
        gone.append(_retire(root, lineage, reason, at))
        active.remove(lineage)
    return gone


def worst(lineages: Iterable[Lineage]) -> Lineage:
    """Return the lineage with the highest rate of bad uses; of equal ones the least used, then the first by selector.

    A method that was never used counts as failing half of the time, so a method that fails more often than that goes
    first.
    """

    def rank(lineage: Lineage) -> tuple[float, int, str]:
        counts = scoring.recent(lineage)
        return -scoring.rate(counts), int(counts["calls"]), lineage.selector

    return min(lineages, key=rank)


def fold(root: Root, mission: str, payload: UsePayload, rules: Rules, at: str) -> MethodRetired | None:
    """Add one use to its lineage, and return the retirement that this causes, if any.

    A slot without a lineage, or a revision that does not exist, is ignored. The cost is bounded: one lineage is
    read, and three of its records are written.
    """
    lineage = root[roots.METHODS].get(f"{payload['holder']} {payload['selector']}")
    if lineage is None:
        return None
    told = {name: value for name, value in payload.items() if name not in ("holder", "selector")}
    methods.use(lineage, cast("UseDocument", {"mission": mission, **told}))
    if not lineage.active or payload["revision"] != lineage.active:
        return None
    reason = scoring.fault_of(scoring.recent(lineage), scoring.control(lineage), rules.least)
    return _retire(root, lineage, reason, at) if reason else None


def _retire(root: Root, lineage: Lineage, reason: str, at: str) -> MethodRetired:
    """Retire the active revision for this reason, and return the retirement."""
    return _retirement(root, lineage, methods.retire(lineage, reason, at), reason)


def _retirement(root: Root, lineage: Lineage, revision: int, reason: str) -> MethodRetired:
    receiver = roots.name_of_object(root, lineage.holder)
    return MethodRetired(receiver=receiver, selector=lineage.selector, revision=revision, reason=reason)
