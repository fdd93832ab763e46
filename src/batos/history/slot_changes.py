"""Changes of slots as plain data: what a mission read or wrote, what stood there before, and how either is put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from batos.agency.lookup import by_name
from batos.history.mission_traces import slot_name
from batos.image import ownership
from batos.image.roots import Root
from batos.methods.execution.plain_data import data_of, replace_leaves
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer, trust_of, with_references
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import Refused
from batos.protocol.evidence_documents import WrittenSlot

#: The trust class of a value that nothing less trusted went into: it is recorded nowhere.
_USUAL: Final = "model"


def value_of(holder: UvmObject, slot: str, user: str) -> tuple[bool, object]:
    """Return whether an object has a slot for a user, and its value as plain data with references for objects."""
    value = ownership.slot_for(own_slots(holder), slot, user)
    return (False, None) if value is ownership.ABSENT else (True, plain_value(value))


def former_value(change: WrittenSlot) -> tuple[bool, object]:
    """Return whether there was a slot before a change, and its value."""
    return change["had"], change["former"] if change["had"] else None


def draw(root: Root, user: str, changes: Iterable[WrittenSlot]) -> Iterator[WrittenSlot]:
    """Yield changes of slots with what these have now: {oid, slot, had, former, has, value, trust}.

    A slot of an object that is gone is left out.
    """
    for each in changes:
        holder = by_name(root, each["oid"])
        if holder is not None:
            has, value = value_of(holder, each["slot"], user)
            trust = trust_of(own_slots(holder), each["slot"])
            bare = WrittenSlot(oid=each["oid"], slot=each["slot"], had=each["had"], former=each["former"])
            yield {**bare, "has": has, "value": value, "trust": trust}


def give(root: Root, user: str, changes: Iterable[WrittenSlot]) -> None:
    """Set slots to the values that changes led to, as far as their objects are there."""
    buffer = WriteBuffer(user=user)
    for each in changes:
        holder = by_name(root, each["oid"])
        if holder is not None:
            value = live_value(root, each["value"]) if each["has"] else DELETED
            buffer.write(holder, {each["slot"]: BufferedWrite(value, each["trust"])})
    buffer.merge_down()


def take_back(root: Root, user: str, changes: Iterable[WrittenSlot]) -> list[WrittenSlot]:
    """Set slots to the values that they had before a mission of this user; return the changes, to put them back."""
    several = list(changes)
    taken = list(draw(root, user, several))
    before = [each.copy() for each in several]
    for each in before:
        each.update({"has": each["had"], "value": each["former"], "trust": each.get("trust", _USUAL)})
    give(root, user, before)
    return taken


def put_back(root: Root, user: str, taken: Iterable[WrittenSlot]) -> list[str]:
    """Set slots to the values again that a mission had left; return the names of those that were changed since."""
    left: list[str] = []
    same: list[WrittenSlot] = []
    for each in taken:
        holder = by_name(root, each["oid"])
        if holder is not None and value_of(holder, each["slot"], user) == former_value(each):
            same.append(each)
        else:
            left.append(slot_name(root, each["oid"], each["slot"]))
    give(root, user, same)
    return left


def plain_value(value: object) -> Any:
    """Return a slot's value as plain data, with a reference in the place of each object."""
    return with_references(data_of(value, "a slot"))


def live_value(root: Root, data: object) -> Any:
    """Return plain data with the objects of a root in the place of references. Raises: Refused: one is gone."""

    def find(told: Mapping[str, str]) -> UvmObject:
        found = by_name(root, told["$ref"])
        if found is None:
            remedy = "Drop it (`batos dream drop`) and dream it again."
            raise Refused(f"{told['$ref']}, which the dream refers to, is gone", field="dream", remedy=remedy)
        return found

    return replace_leaves(data, find, lambda each: isinstance(each, Mapping) and each.keys() == {"$ref"})
