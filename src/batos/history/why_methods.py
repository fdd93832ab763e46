"""The reasons for a method: the calls that wrote it, the missions that it was made for, and who let it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from batos.history.why_nodes import Asking, make_call, make_commit, make_node
from batos.image import roots
from batos.image.records import Lineage
from batos.image.views.past import first_writing
from batos.methods.lifecycle.user_views import change_for, provenance_for
from batos.protocol.image_documents import WhyNode

#: Tells a mission, for whoever knows how.
ToldMission: TypeAlias = Callable[[Asking, str], WhyNode]


def explain_method(asking: Asking, lineage: Lineage, tell: ToldMission) -> WhyNode:
    """Return the method of a slot with the calls that wrote it, and the missions that it was made for."""
    name = f"{roots.name_of_object(asking.root, lineage.holder)}.{lineage.selector}"
    number = lineage.active or (lineage.revisions.maxKey() if lineage.revisions else 0)
    stands = f"revision {number}{'' if lineage.active else ', out of use'}" if number else "no method yet"
    is_new = asking.is_new(name)
    because = list(_explain_revision(asking, lineage, number, tell)) if is_new and number else []
    return make_node("method", f"{name}: {stands}", because, name)


def _explain_revision(asking: Asking, lineage: Lineage, number: int, tell: ToldMission) -> Iterator[WhyNode]:
    method = lineage.revisions[number]
    told = provenance_for(asking.root, method.provenance, asking.user)
    yield make_node("intent", method.intent or (lineage.intent.text if lineage.intent else ""))
    if told.get("by"):
        yield make_node("person", f"redefined by {told['by']}", at=told.get("at", ""))
    for each in asking.journal.sound([told["generation"]]) if told.get("generation") else ():
        yield make_call(each)
    for mission in method.provenance.get("missions", ()):
        yield tell(asking, mission)
    if told.get("approved_by"):
        yield make_node(
            "approval",
            f"approved by {told['approved_by']}",
            ref=told.get("approval", ""),
            at=told.get("approved_at", ""),
        )
    for number_, change in reversed(list(lineage.history.items())):
        if change["revision"] == number and change["event"] == "installed":
            seen = change_for(lineage, change, asking.user)
            yield make_node("change", f"change {number_}: {seen['reason']} (by {seen['by']})", at=seen["at"])
            break
    yield make_commit(first_writing(asking.root, method), "installed")
