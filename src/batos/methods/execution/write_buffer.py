"""Sheets: what one run of a method read and would change, kept apart until it has ended well.

A run writes on a sheet of its own, which lies over the sheet of the run that sent the message; the lowest lies over the
image as the mission sees it. When a run ends, what it read is compared with what is there now: where another part of
the mission has changed it meanwhile the run was made on sand, and is made again. Else its sheet is laid into the one
below, or into the image, in one step without an await. A run that fails leaves its sheet to nobody. So no change waits
for a savepoint, two parts never tear at one slot, and a part that fails leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from batos.image import whose
from batos.image.records import SLOT_TRUST, TRUST, least_trusted
from batos.methods.execution.plain_data import Data, SizeBudget, data_of, matches, replace_leaves
from batos.objects.prototype import UvmObject, delegation, label, own_slots, reference

#: What is not said of a slot: nothing is more trusted there than what a model says.
_USUAL: Final = ("user", "model")


class _Gone:
    """Stands for a slot that was deleted."""


DELETED: Final = _Gone()


class BufferedSlot(NamedTuple):
    """A slot as a sheet has it: who holds it, its value (a live one of the image's, or data), how far it is trusted."""

    holder: UvmObject
    value: Any
    trust: str


class BufferedWrite(NamedTuple):
    """A change of a slot: its new data, or GONE, and how far that is to be trusted."""

    value: Data
    trust: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was read below a sheet, when it was first read; None: there was no such slot."""

    data: Data | None
    there: bool


class WriteBuffer:
    """Changes over another sheet, or over the image. Every method of it returns without an await."""

    def __init__(self, below: WriteBuffer | None = None, user: str = "") -> None:
        """Lay a sheet over another, or over the image as this user sees it ("": as it stands)."""
        self._below = below
        self._user: str = user or (below._user if below is not None else "")
        self._written: dict[UvmObject, dict[str, BufferedWrite]] = {}
        self._seen: dict[tuple[UvmObject, str], _Seen] = {}

    # -- reading

    def find(self, receiver: UvmObject, slot: str) -> BufferedSlot | None:
        """What answers to that name, its own changes first; nothing is noted of it."""
        sheets = tuple(self._down())
        for holder in delegation(receiver):
            held = _of(holder, slot, sheets, self._user)
            if held is not None:
                return held
        return None

    def read(self, receiver: UvmObject, slot: str, room: SizeBudget | None = None) -> BufferedSlot | None:
        """The slot as data, and noted: a run that ends is told whether it is still so. MethodFailed: it is no data."""
        held = self.find(receiver, slot)
        data = None if held is None else data_of(held.value, f"the slot {slot!r} of {label(receiver)}", room)
        if (receiver, slot) not in self._seen and not self._own(receiver, slot):
            self._seen[receiver, slot] = _Seen(data, held is not None)
        return None if held is None else held._replace(value=data)

    def _own(self, receiver: UvmObject, slot: str) -> bool:
        """Whether what answers is this sheet's own change."""
        return any(slot in self._written.get(holder, {}) for holder in delegation(receiver))

    def _down(self) -> Iterator[WriteBuffer]:
        sheet: WriteBuffer | None = self
        while sheet is not None:
            yield sheet
            sheet = sheet._below

    # -- changing

    def write(self, receiver: UvmObject, changes: Mapping[str, BufferedWrite]) -> None:
        """Change slots of an object on this sheet."""
        if changes:
            self._written.setdefault(receiver, {}).update(changes)

    def stale_read(self) -> str | None:
        """What its changes rest on and is not so any more, in words; None: all is as it was read, or it has none."""
        if not self._written:
            return None
        below = WriteBuffer(user=self._user) if self._below is None else self._below
        for (receiver, slot), seen in self._seen.items():
            held = below.find(receiver, slot)
            there = held is not None
            if there is not seen.there or (held is not None and not matches(held.value, seen.data)):
                return f"{slot!r} of {label(receiver)}"
        return None

    def merge_down(self) -> list[dict[str, Any]]:
        """Put the changes into the sheet below, or into the image; what changed there: {oid, slot, had, former}.

        A slot that has its new value already is no change.
        """
        below = self._below
        if below is None:
            return [
                each for receiver, changes in self._written.items() for each in _applied(receiver, changes, self._user)
            ]
        for read, seen in self._seen.items():
            # What it was told rests on this too.
            if read not in below._seen and not below._own(*read):
                below._seen[read] = seen
        for receiver, changes in self._written.items():
            below.write(receiver, changes)
        return []


def _of(holder: UvmObject, slot: str, sheets: Sequence[WriteBuffer], user: str) -> BufferedSlot | None:
    """The slot as this one object has it."""
    for sheet in sheets:
        written = sheet._written.get(holder, {}).get(slot)
        if written is not None:
            return None if written.value is DELETED else BufferedSlot(holder, written.value, written.trust)
    slots = own_slots(holder)
    value = whose.seen(slots, slot, user)
    return None if value is whose.ABSENT else BufferedSlot(holder, value, trust_of(slots, slot))


def trust_of(slots: Mapping[str, Any], slot: str) -> str:
    """How far an object's own slot is to be trusted: no further than the least that it, or all of it, was made from."""
    kept = slots.get(SLOT_TRUST)
    classes = (slots.get("lineage_trust"), kept.get(slot) if isinstance(kept, Mapping) else None)
    return least_trusted("model", *(each for each in classes if each in TRUST))


def _applied(receiver: UvmObject, changes: Mapping[str, BufferedWrite], user: str) -> list[dict[str, Any]]:
    """Change the object itself; the slots that are other than before, with what they were."""
    slots, changed = own_slots(receiver), []
    trusts = dict(slots.get(SLOT_TRUST) or {})
    for slot, written in changes.items():
        before = whose.seen(slots, slot, user)
        had = before is not whose.ABSENT
        if (not had and written.value is DELETED) or (had and matches(before, written.value)):
            continue
        former = data_of(before, f"the slot {slot!r}") if had else None
        users = whose.taken_over(slots, slot, user)
        if users:
            setattr(receiver, whose.SLOT_USERS, users)
        if written.value is not DELETED:
            setattr(receiver, slot, written.value)
        elif slot in slots:
            delattr(receiver, slot)
        changed.append({"oid": reference(receiver), "slot": slot, "had": had, "former": with_references(former)})
        trusts.pop(slot, None)
        if written.value is not DELETED and written.trust not in _USUAL:
            trusts[slot] = written.trust
    if changed and trusts != (slots.get(SLOT_TRUST) or {}):
        setattr(receiver, SLOT_TRUST, trusts)
    return changed


def with_references(data: Data) -> Any:
    """Data as JSON can hold it: objects by reference."""
    return replace_leaves(data, lambda obj: {"$ref": reference(obj)}, lambda each: isinstance(each, UvmObject))
