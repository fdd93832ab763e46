"""Erasure of one slot of an object: its value goes, and so do the copies of former values that missions recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.image import roots
from batos.image.ownership import SLOT_USERS
from batos.image.records import SLOT_TRUST
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.records.erased_words import MARK


def erase_slot(root: Root, holder: UvmObject, slot: str) -> None:
    """Take a slot out of an object, for every user, and its former values out of what missions recorded."""
    slots = own_slots(holder)
    for kept in (SLOT_USERS, SLOT_TRUST):
        if slot in (slots.get(kept) or {}):
            setattr(holder, kept, {name: value for name, value in slots[kept].items() if name != slot})
    if slot in slots:
        delattr(holder, slot)
    oid = reference(holder)
    for _, record in roots.records_of(root):
        provenance = own_slots(record.thought).get("provenance") or {}
        if any(_is_of(each, oid, slot) for each in provenance.get("written", ())):
            written = [_without_value(each) if _is_of(each, oid, slot) else each for each in provenance["written"]]
            record.thought.provenance = {**provenance, "written": written}
    for undone in root[roots.UNDONE].values():
        if any(_is_of(each, oid, slot) for each in undone["slots"]):
            undone["slots"] = [each for each in undone["slots"] if not _is_of(each, oid, slot)]


def _is_of(told: Mapping[str, Any], oid: str, slot: str) -> bool:
    return (told["oid"], told["slot"]) == (oid, slot)


def _without_value(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a write with a mark in the place of the former value."""
    return {**told, "former": MARK if told["had"] else None}
