"""What must hold of a thought before it may be committed; each voter raises to veto."""

from __future__ import annotations

from batos.errors import Refused
from batos.image.records import TRUST
from batos.image.transactions import MissionTransaction

_PROVENANCE = ("journal", "models", "methods", "recalled", "read_at")


def has_provenance(transaction: MissionTransaction) -> None:
    """A thought says where all of it came from."""
    provenance = transaction.thought.provenance
    missing = [key for key in _PROVENANCE if key not in provenance]
    if missing:
        raise Refused(f"the thought's provenance lacks {', '.join(missing)}", remedy="Please report this.")


def has_trust(transaction: MissionTransaction) -> None:
    """A thought has a trust class, which is never a person's, and its lineage has the least of all that is in it."""
    trust = transaction.thought.trust
    lineage = transaction.thought.lineage_trust
    if trust not in TRUST[1:] or lineage not in TRUST or TRUST.index(lineage) < TRUST.index(trust):
        what = f"the thought's trust ({trust!r}, lineage {lineage!r}) is not one that it can have"
        raise Refused(what, remedy="Please report this.")


VOTERS = (has_provenance, has_trust)
