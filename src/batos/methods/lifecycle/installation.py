"""Installation: a candidate or a former revision becomes active, and the worst method retires if there are too many."""

from __future__ import annotations

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.lifecycle import control_group, ledger, scoring
from batos.methods.lifecycle.control_group import Rules
from batos.methods.lifecycle.ledger import Retirement
from batos.objects.method import Method
from batos.objects.prototype import UvmObject
from batos.protocol.errors import InternalError, Refused
from batos.records import methods
from batos.records.candidates import Candidate


def install(root: Root, candidate: Candidate, rules: Rules, at: str) -> tuple[Method, bool, list[Retirement]]:
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


def roll_back(root: Root, lineage: Lineage, revision: int, rules: Rules, at: str, by: str) -> list[Retirement]:
    """Make a former revision active again (0: the intent), and return the methods that were retired for it.

    Raises: NotFound, Refused: as `methods.restore`.
    """
    former = lineage.active
    methods.restore(root, lineage, revision, at, by)
    if revision == 0:
        return [
            Retirement(
                roots.name_of_object(root, lineage.holder), lineage.selector, former, f"{by} put the intent back"
            )
        ]
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
            f"{roots.name_of_object(root, lineage.holder)}.{lineage.selector} has no revision before this one",
            field="revision",
            remedy="`--revision 0` puts the intent back, and it is interpreted again.",
        )
    return int(former[-1])


def enforce_limit(root: Root, newest: Lineage, rules: Rules, at: str) -> list[Retirement]:
    """Retire the receiver's worst methods until at most `rules.active` are active; return the retirements.

    The newest method is never retired here.
    """
    holder: UvmObject = newest.holder
    active = [each for each in methods.lineages_of(root, holder) if each.active]
    gone: list[Retirement] = []
    while len(active) > rules.active and len(active) > 1:
        worst = control_group.worst(each for each in active if each is not newest)
        counts = scoring.recent(worst)
        did = f"{counts['bad']} of its {counts['calls']} uses ended badly" if counts["calls"] else "it was never used"
        reason = f"the receiver may have at most {rules.active} active methods; the worst was this: {did}"
        gone.append(ledger.retire(root, worst, reason, at))
        active.remove(worst)
    return gone
