"""Slots of an undone mission: each gets its former value back, and on redo the value that the mission had given it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from batos.history.dreams import find_holder, live_value, plain_value
from batos.history.mission_traces import slot_name
from batos.image import ownership
from batos.image.roots import Root
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer, trust_of
from batos.objects.prototype import UvmObject, own_slots

#: The trust class of a value that nothing less trusted went into: it is recorded nowhere.
_USUAL: Final = "model"


def take_back(root: Root, user: str, changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give slots the values that they had before a mission of this user, and return what is needed to put back.

    A slot of an object that is gone is left out. Each returned entry is {oid, slot, had, former, has, value, trust}:
    `former` is what the slot has now, `value` what the mission had left there.
    """
    taken: list[dict[str, Any]] = []
    buffer = WriteBuffer(user=user)
    for each in changes:
        holder = find_holder(root, each["oid"])
        if holder is None:
            continue
        has, value = _value(holder, each["slot"], user)
        taken.append(
            {
                "oid": each["oid"], "slot": each["slot"], "had": each["had"], "former": each["former"],
                "has": has, "value": value, "trust": trust_of(own_slots(holder), each["slot"]),
            }
        )  # fmt: skip
        _write(root, buffer, holder, each["slot"], (each["had"], each["former"], each.get("trust", _USUAL)))
    buffer.merge_down()
    return taken


def put_back(root: Root, user: str, taken: Iterable[Mapping[str, Any]]) -> list[str]:
    """Give slots the values again that a mission had left; return the names of those that were changed since."""
    left: list[str] = []
    buffer = WriteBuffer(user=user)
    for each in taken:
        holder = find_holder(root, each["oid"])
        expected = each["had"], each["former"] if each["had"] else None
        if holder is None or _value(holder, each["slot"], user) != expected:
            left.append(slot_name(root, each["oid"], each["slot"]))
            continue
        _write(root, buffer, holder, each["slot"], (each["has"], each["value"], each["trust"]))
    buffer.merge_down()
    return left


def _value(holder: UvmObject, slot: str, user: str) -> tuple[bool, Any]:
    """Return whether an object has a slot for a user, and its value as plain data."""
    value = ownership.slot_for(own_slots(holder), slot, user)
    has = value is not ownership.ABSENT
    return has, plain_value(value) if has else None


def _write(root: Root, buffer: WriteBuffer, holder: UvmObject, slot: str, meant: tuple[bool, Any, str]) -> None:
    has, value, trust = meant
    buffer.write(holder, {slot: BufferedWrite(live_value(root, value) if has else DELETED, trust)})
