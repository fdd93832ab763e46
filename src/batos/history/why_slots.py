"""The reasons for a slot: the mission whose method wrote it, the way of its method, or the codex that declares it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from batos.agency.lookup import find_object
from batos.history.why_missions import explain_method, explain_mission
from batos.history.why_nodes import Asking, make_commit, make_node
from batos.image import organisation, ownership, roots
from batos.image.records import DIGESTS
from batos.image.views.past import Writing, slot_writing
from batos.objects.method import Intent, Method, Primitive
from batos.objects.mirror import as_json
from batos.objects.prototype import UvmObject, delegation, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.records import methods


def explain_slot(asking: Asking, named: str) -> WhyNode:
    """Return a slot (`OBJECT.SLOT`) with what its value came from. Raises: NotFound: there is none."""
    name, _, slot = named.rpartition(".")
    obj = find_object(asking.root, name, asking.user)
    holder = next((each for each in delegation(obj) if _value(asking, each, slot) is not ownership.ABSENT), None)
    if holder is None or slot == ownership.SLOT_USERS:
        raise NotFound(f"{name} has no slot {slot!r}", field="what", remedy=f"`batos inspect {name}` lists them.")
    value, where = _value(asking, holder, slot), _name(asking, holder)
    because: list[WhyNode] = []
    lineage = methods.lineage_of(asking.root, holder, slot)
    if lineage is not None:
        because.append(explain_method(asking, lineage))
    because += _explain_writing(asking, holder, slot, slot_writing(asking.root, holder, slot, asking.user or ""))
    inherited = "" if holder is obj else f" (from {where})"
    return make_node("slot", f"{named}{inherited} is {_short(value)}", because, f"{where}.{slot}")


def _explain_writing(asking: Asking, holder: UvmObject, slot: str, written: Writing) -> Iterator[WhyNode]:
    if written.note.startswith("m-"):
        yield explain_mission(asking, written.note)
    elif slot in own_slots(holder).get(DIGESTS, {}) or slot in organisation.IDENTITY.get(_name(asking, holder), ()):
        digest = asking.root[roots.GENESIS].get("codex_digest") or ""
        yield make_node("codex", f"declared by the codex ({digest[:12]})", ref=digest)
    yield make_commit(written, "has this value since")


def _name(asking: Asking, holder: UvmObject) -> str:
    return roots.name_of_object(asking.root, holder)


def _value(asking: Asking, obj: UvmObject, slot: str) -> object:
    return ownership.slot_for(own_slots(obj), slot, asking.user or "")


def _short(value: object) -> str:
    if isinstance(value, Method):
        return f"a method of {len(value.source.splitlines())} lines"
    if isinstance(value, Intent):
        return f"an intent: {value.text}"
    if isinstance(value, Primitive):
        return f"the kernel's {value.name}"
    return json.dumps(as_json(value), ensure_ascii=False, default=str)
