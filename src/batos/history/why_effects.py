"""The reasons for an effect on the world: its mission, step and grant, what went out and came back, its undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from batos.agency import granting
from batos.agency.records import effect_records
from batos.agency.records.effect_records import Effect
from batos.history.why_nodes import NOT_RECORDED, Asking, explain_reference, make_node
from batos.image import roots
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.records import approvals

#: The way in which an effect of a state is taken back; the others happened, or may have.
_UNDO: Final = {
    **dict.fromkeys(("asking", "staged"), "`batos undo {mission}` takes it back before it happens"),
    **dict.fromkeys(("failed", "not_done"), "it did not happen, and nothing is to be undone"),
    "withdrawn": "it was taken back before it happened; `batos redo {mission}` stages it again",
    "repeated": "it was not done a second time, and nothing is to be undone",
}
_LASTING: Final = "nothing takes it back, an undo of its mission neither: a person does, at {target}"


def explain_effect(asking: Asking, named: str) -> WhyNode:
    """Return an effect with what asked for it and allowed it, what went out, and what came of it.

    Raises: NotFound: there is none, or it is of another user's mission.
    """
    kept = asking.root.get(roots.EFFECTS)
    effect = None if kept is None else kept.get(named)
    if effect is None or asking.record(effect["mission"]) is None:
        raise NotFound(f"there is no effect {named!r}", field="what", remedy="`batos effects` lists them.")
    told = granting.effect_document(asking.root, effect)
    text = f"{told['what']} by {told['grant']}: {told['state']} ({told['attempts']} attempts)"
    return make_node("effect", text, _explain(asking, effect), told["effect"], told["at"])


def _explain(asking: Asking, effect: Effect) -> Iterator[WhyNode]:
    """Yield the reasons for an effect in the order in which they came about."""
    yield explain_reference(asking, effect["mission"])
    if "asked_by" not in effect:
        yield make_node("step", f"the step that asked for it was {NOT_RECORDED}")
    elif effect["payload"]:
        yield make_node("step", f"asked for by {effect['asked_by'] or 'the message that its mission is'}")
    yield _explain_grant(asking, effect)
    if effect["payload"]:
        yield make_node("sent", json.dumps(effect["payload"], ensure_ascii=False), ref=effect["key"])
    if effect["state"] == "repeated":
        first = effect["outcome"]["of"]
        yield make_node("equal", f"{first} of the same lineage did the same", ref=first)
    elif effect["outcome"]:
        yield make_node("returned", _tell_outcome(effect["outcome"]), at=effect["at"])
    capability = effect_records.find_capability_of(asking.root, effect)
    target = "its target" if capability is None else own_slots(capability)["target"]
    undo = _UNDO.get(effect["state"], _LASTING).format(mission=effect["mission"], target=target)
    yield make_node("undo", undo)


def _explain_grant(asking: Asking, effect: Effect) -> WhyNode:
    """Return the grant, who gave it, and who let the mission use it."""
    capability = effect_records.find_capability_of(asking.root, effect)
    record = asking.record(effect["mission"])
    user = "its asker" if record is None else record.brief.value["user"]
    asked = approvals.find_approval(asking.root, effect.get("approval", ""))
    yes = "and no other yes was wanted" if asked is None else f"and its question is {asked.word}"
    by = f" by {asked.by}" if asked is not None and asked.by else ""
    told = f"{user} named the grant with the mission, {yes}{by}"
    named = make_node("approval", told, ref="" if asked is None else asked.name)
    if capability is None:
        return make_node("grant", f"{effect['grant']}, which is revoked", [named], effect["grant"])
    slots = own_slots(capability)
    text = f"{slots['name']} allows {slots['kind']} {slots['target']} ({slots['sink']}), granted for {slots['user']}"
    return make_node("grant", text, [named], slots["name"], slots[effect_records.GRANTED_AT])


def _tell_outcome(outcome: Any) -> str:
    """Return what came back, or the fault, and who settled what was unknown."""
    told = {name: each["message"] if name == "error" else each for name, each in outcome.items()}
    return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in told.items())
