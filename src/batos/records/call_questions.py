"""Questions about calls that a mission wants to make: its plan as a whole, or one call that needs a person's yes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.records import Approval
from batos.image.roots import Root
from batos.protocol.errors import BriefError
from batos.protocol.method_documents import MethodProvenance
from batos.records import approvals, methods
from batos.records.approval_subjects import Candidate

#: The object that the questions are kept at, and the selectors of the two kinds.
HOLDER: Final = "tools_obj"
PLAN: Final = "plan_"
CALL: Final = "call_"


def candidate_of(
    mission: str, kind: Literal["plan_", "call_"], source: str, frame: Mapping[str, Any], at: str
) -> Candidate:
    """Return the question of a mission: `source` are the lines of its calls, `frame` what an edited plan may name."""
    return Candidate(
        holder=HOLDER,
        selector=kind,
        intent=mission,
        source=source,
        verdict={"accepted": True, "faults": [], "policy": SHIPPED.version},
        checks=(),
        provenance=MethodProvenance(missions=[mission], trust="model", at=at, by=mission),
        frame={**frame, "mission": mission},
    )


def list_asked(root: Root, mission: str, *kinds: str) -> Iterator[Approval]:
    """Yield the questions of these kinds that a mission asked, the newest first, but for those that were erased."""
    holder = methods.find_holder(root, HOLDER)
    for kind in kinds if roots.ASKED in root else ():
        start = approvals.slot_key(root, holder, kind, mission)
        # The character behind the blank: every key with this beginning sorts between the two.
        names = root[roots.ASKED].values(start, f"{start[:-1]}!", excludemax=True)
        asked = (root[roots.APPROVALS][name] for name in sorted(names, reverse=True))
        yield from (each for each in asked if each.candidate.get("frame"))


def frame_of(root: Root, name: str) -> Mapping[str, Any]:
    """Return what an edited plan may name, by the id of its question. Raises: BriefError: it is no plan's."""
    asked = approvals.find_approval(root, name)
    if asked is None or asked.candidate["selector"] != PLAN or not (frame := asked.candidate.get("frame")):
        remedy = "Leave --plan out: what is asked is approved as it stands, or not."
        raise BriefError(f"{name} is no plan, and cannot be edited", field="plan", remedy=remedy)
    return frame


def edit(root: Root, name: str, source: str, at: str) -> None:
    """Put a person's own lines in the place of a plan that still waits; the yes that follows is for them."""
    asked = approvals.find_approval(root, name)
    if asked is not None and asked.word_at(at) == "asked":
        asked.candidate = replace(Candidate.from_dict(asked.candidate), source=source).as_dict()
