"""Questions whether memories may be forgotten: a method asks about exact documents, and a person answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.protocol.method_documents import MethodProvenance
from batos.records.candidates import Candidate

#: The kind of contribution by which a mission asks: {documents}, by their ids.
KIND: Final = "forget"
#: The object and the selector that the question is about.
HOLDER, SELECTOR = "knowledge_catalog_obj", "forget_"


def candidate_of(root: Root, names: Sequence[str], mission: str, at: str) -> Candidate | None:
    """Return the question about a mission's documents that are there and its user's; None: there are none of them.

    The text has a line for each document with the digest of its content: a yes counts for exactly this text.
    """
    user = roots.mission_record(root, mission).brief.value["user"]
    documents = {name: own_slots(root[roots.DOCUMENTS][name]) for name in names if name in root[roots.DOCUMENTS]}
    own = {name: slots for name, slots in documents.items() if slots["user"] == user}
    if not own:
        return None
    lines = (_line(name, slots["sha256"], slots["title"]) for name, slots in sorted(own.items()))
    return Candidate(
        holder=HOLDER,
        selector=SELECTOR,
        intent="",
        source="\n".join(lines),
        verdict={"accepted": True, "faults": [], "policy": SHIPPED.version},
        checks=(),
        provenance=MethodProvenance(missions=[mission], trust="model", at=at, by=f"a method of {mission}"),
        forgets=tuple(sorted(own)),
    )


def reason_not_forgettable(root: Root, candidate: Candidate) -> str | None:
    """Return why a yes does not count any more: a document is gone or has another content. None: it counts."""
    for name, line in zip(candidate.forgets, candidate.source.split("\n"), strict=True):
        if name not in root[roots.DOCUMENTS]:
            return f"{name} is not there any more"
        slots = own_slots(root[roots.DOCUMENTS][name])
        if line != _line(name, slots["sha256"], slots["title"]):
            return f"{name} is not what it was when it was asked about"
    return None


def _line(name: str, sha256: str, title: str) -> str:
    return f"forget {name} {sha256[:16]} {' '.join(title.split())}"
