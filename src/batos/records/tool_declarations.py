"""Tools and objects that answers forged: declared when they are wished for, installed when they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from batos.image import roots
from batos.image.records import SLOT_TRUST
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, lookup, own_slots
from batos.protocol.errors import Refused
from batos.protocol.mission_documents import WishDocument
from batos.records import methods, tools
from batos.records.approval_subjects import Candidate
from batos.records.methods import digest_of, lineage_of

#: The kind of contribution that a forged tool is: {selector, intent, trust}.
KIND: Final = "tool"
#: Trust classes of values that come only from the Architect, the codex and the models.
OWN: Final = frozenset({"user", "model"})


def is_free(holder: UvmObject, selector: str, intent: Intent) -> bool:
    """Test if the tool may have this name: nothing there or in what all objects have has it, or the same wish."""
    found = lookup(holder, selector)
    if found is None:
        return True
    value = found.value
    if isinstance(value, Method):
        return found.holder is holder and value.provenance.get("intent") == digest_of(intent)
    return found.holder is holder and isinstance(value, Intent) and digest_of(value) == digest_of(intent)


def fold(root: Root, mission: str, payload: Mapping[str, Any]) -> None:
    """Declare the tool that a committed mission forged, unless another has that name by now."""
    holder, selector, intent = root[roots.TOOLS], payload["selector"], Intent(**payload["intent"])
    if not is_free(holder, selector, intent) or isinstance(own_slots(holder).get(selector), Method):
        return
    setattr(holder, selector, intent)
    if payload["trust"] not in OWN:  # so that no method is made of it which nobody has let in
        setattr(holder, SLOT_TRUST, {**(own_slots(holder).get(SLOT_TRUST) or {}), selector: payload["trust"]})


def is_taken(root: Root, selector: str, intent: str) -> bool:
    """Test if the slot holds a tool, made or declared, of another wish than the one with this digest."""
    value = own_slots(root[roots.TOOLS]).get(selector)
    if isinstance(value, Method):
        return value.provenance.get("intent") != intent
    return isinstance(value, Intent) and digest_of(value) != intent


def list_wishes(thought: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the tools that a thought contributes: the selector, and the digest of the intent."""
    for kind, payload in thought.get("contributions", ()):
        if kind == KIND:
            yield payload["selector"], digest_of(Intent(**payload["intent"]))


def is_declared(root: Root, selector: str, intent: str) -> bool:
    """Test if the slot holds the intent of this digest, of which nothing is made."""
    value = own_slots(root[roots.TOOLS]).get(selector)
    return isinstance(value, Intent) and digest_of(value) == intent


def forget(root: Root, selector: str, intent: str) -> None:
    """Take the intent of this digest away again, of which nothing was ever made."""
    holder = root[roots.TOOLS]
    value = own_slots(holder).get(selector)
    if not isinstance(value, Intent) or digest_of(value) != intent or lineage_of(root, holder, selector) is not None:
        return
    delattr(holder, selector)
    before = own_slots(holder).get(SLOT_TRUST) or {}
    trusts = {slot: trust for slot, trust in before.items() if slot != selector}
    if trusts != before:
        setattr(holder, SLOT_TRUST, trusts)


#: Outcomes with a method, or with one that waits for a person's approval.
_MADE: Final = frozenset({"installed", "made", "asked"})


def settle(root: Root, mission: str, payload: tuple[WishDocument, str]) -> None:
    """Drop a wish of which a mission has the outcome. A forged tool that was not made is forgotten too."""
    wish, outcome = payload
    tools.drop_wish(root, [wish])
    if wish.get("forged") and outcome not in _MADE:
        forget(root, wish["selector"], wish["intent"])


def install_object(root: Root, candidate: Candidate, at: str) -> list[Method]:
    """Make the object that a candidate's `selector` names, with all its methods. Refused: as `make`."""
    make_object(root, candidate)
    return [methods.install(root, each, at) for each in parts_of_object(candidate)]


def parts_of_object(candidate: Candidate) -> list[Candidate]:
    """Return the candidates of the object's methods, to be installed once the object exists."""
    return [replace(each, wish=None) for each in candidate.methods]


def make_object(root: Root, candidate: Candidate) -> None:
    """Make the object that a candidate's `selector` names, with the intents of its methods.

    Nothing is changed where it is refused. Refused: it exists already or is declared otherwise by now, or one of its
    methods may be none.
    """
    name = candidate.selector
    intent = tools.absent(root, name)
    if intent is None or methods.digest_of(intent) != candidate.intent:
        what = "exists already" if tools.find_tool(root, name) is not None else "is declared otherwise by now"
        raise Refused(f"{name} {what}", field="intent", remedy="Send your message again.")
    for each in candidate.methods:
        methods.check(each)
    intents = {each.selector: Intent(**(each.wish or {})) for each in candidate.methods}
    other = [each.selector for each in candidate.methods if methods.digest_of(intents[each.selector]) != each.intent]
    if other or not intents:
        what = f"{other[0]!r} was made from another intent than its own" if other else f"{name} has no methods"
        raise Refused(f"{name} is not made: {what}", field="intent", remedy="Generate it again.")
    tools.make(root, name, intent.text, intents)
