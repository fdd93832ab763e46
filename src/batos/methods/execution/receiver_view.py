"""The slots of the receiver that a run sees, and the rules for the names that a method may send, read or write."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from batos.cell.values import Ref, Value, Writes
from batos.image.guards import protected_slots
from batos.image.records import least_trust
from batos.methods.execution.write_buffer import (
    DELETED,
    BufferedWrite,
    Data,
    SizeBudget,
    WriteBuffer,
    check_size,
    data_of,
    is_record,
    replace_leaves,
)
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, is_reserved, label
from batos.protocol.errors import MethodFailed

#: The most characters of a name.
LONGEST: Final = 128

#: Names never sent and never written, in any case: those of the object model, and those that change behaviour.
_NEVER = re.compile(
    r"^_|^parents?\*?$|guardian|does_?not_?understand|"
    r"^(?:un)?install_|^re_?parent|^(?:become|clone|eval|exec|compile)_?$",
    re.IGNORECASE,
)


def check_selector(selector: object) -> str:
    """Return the selector if a method may send it. Raises: MethodFailed: no method may."""
    name = _name(selector, "a selector")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may send {name!r}", remedy="Send a public message.")
    return name


def check_read(slot: object) -> str:
    """Return the slot's name if a method may read it of another object. Raises: MethodFailed: no method may."""
    name = _name(slot, "a slot's name")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may read {name!r} of another object")
    return name


def check_write(buffer: WriteBuffer, receiver: UvmObject, slot: object) -> str:
    """Return the slot's name if a method of the receiver may write or delete it.

    Raises: MethodFailed: the name is reserved or protected, the slot holds behaviour (the receiver's own or inherited),
    or the receiver's own slot holds a container of the kernel.
    """
    name = _name(slot, "a slot's name")
    if _NEVER.search(name) or is_reserved(name):
        raise MethodFailed(f"no method may write {name!r}")
    kept = buffer.find(receiver, name)
    if kept is not None and isinstance(kept.value, Behaviour):
        raise MethodFailed(f"{name!r} of {label(receiver)} is behaviour: no method writes over it")
    if kept is not None and kept.holder is receiver and is_record(kept.value):
        raise MethodFailed(f"{name!r} of {label(receiver)} is a container of the kernel's: no method writes it")
    if name in protected_slots(receiver):
        raise MethodFailed(f"{name!r} of {label(receiver)} is the codex's or the kernel's: no method writes it")
    return name


def _name(name: object, what: str) -> str:
    """Return the name if it is an identifier in normal form of at most LONGEST characters. Raises: MethodFailed."""
    if not isinstance(name, str) or not name or len(name) > LONGEST or not name.isidentifier():
        raise MethodFailed(f"{what} is a name of at most {LONGEST} characters, not {str(name)[:40]!r}")
    if unicodedata.normalize("NFKC", name) != name:
        raise MethodFailed(f"{what} is not written in its plain form: {name!r}")
    return name


class ObjectTable:
    """The objects that a run was given, by number. A number that was not given out is refused."""

    def __init__(self) -> None:
        self._objects: list[UvmObject] = []
        self._numbers: dict[UvmObject, int] = {}

    def to_cell(self, data: Data) -> Value:
        """Return data as the cell gets it, with a numbered reference for each object."""
        shown: Value = replace_leaves(data, self._ref, lambda each: isinstance(each, UvmObject))
        return shown

    def _ref(self, obj: UvmObject) -> Ref:
        """Return the reference of an object, with a new number at its first use."""
        if obj not in self._numbers:
            self._objects.append(obj)
            self._numbers[obj] = len(self._objects)  # from 1: in the cell 0 is the receiver
        return Ref(self._numbers[obj])

    def from_cell(self, value: Value, what: str, room: SizeBudget | None = None) -> Data:
        """Return data from the cell with the objects in place of their references; `what` names the data in errors.

        Raises: MethodFailed: the data is too large, or a number was never given out.
        """
        check_size(value, what, room or SizeBudget())
        return replace_leaves(value, self.object, lambda each: isinstance(each, Ref))

    def object(self, ref: Ref) -> UvmObject:
        """Return the object of a number. Raises: MethodFailed: the number was never given out."""
        if not 1 <= ref.number <= len(self._objects):
            raise MethodFailed("the method means an object that it was never shown")
        return self._objects[ref.number - 1]


class View:
    """The receiver's slots that a method names, read at its start and after each message that may have changed them."""

    def __init__(self, buffer: WriteBuffer, receiver: UvmObject, slots: Iterable[str]) -> None:
        self._buffer = buffer
        self._receiver = receiver
        self._slots = tuple(sorted(slots))
        self.table = ObjectTable()
        #: The lowest trust class of the slots shown.
        self.trust = "model"

    def slot_values(self) -> dict[str, Value]:
        """Return the value of each slot that exists, inherited ones too, as the cell gets it. Behaviour is left out.

        Raises: MethodFailed: a value is not plain data, or all together are too large.
        """
        found: dict[str, Value] = {}
        room = SizeBudget()
        for slot in self._slots:
            held = self._buffer.find(self._receiver, slot)
            if held is not None and isinstance(held.value, Behaviour):
                continue  # it is sent, not read
            kept = self._buffer.read(self._receiver, slot, room)
            if kept is not None:
                self.trust = least_trust(self.trust, kept.trust)
                found[slot] = kept.value
        return {slot: self.table.to_cell(value) for slot, value in found.items()} if room.has_objects else found

    def take(self, writes: Writes, trust: str) -> None:
        """Write the method's changes into the write buffer with this trust class, all or none.

        Raises: MethodFailed: a slot may not be written, or the audit does not list it.
        """
        for slot in (*writes.values, *writes.deleted):
            check_write(self._buffer, self._receiver, slot)
            if slot not in self._slots:
                raise MethodFailed(f"the method wrote {slot!r}, which its audit does not list")
        room = SizeBudget()
        changes = {
            slot: BufferedWrite(self._read_back(slot, value, room), trust) for slot, value in writes.values.items()
        }
        gone = {slot: BufferedWrite(DELETED, trust) for slot in writes.deleted if self._is_own(slot)}
        self._buffer.write(self._receiver, changes | gone)

    def _read_back(self, slot: str, value: Value, room: SizeBudget) -> Data:
        """Return a value that the method left in a slot, as data with objects."""
        what = f"the slot {slot!r} as the method left it"
        return data_of(self.table.from_cell(value, what, room), what)

    def _is_own(self, slot: str) -> bool:
        """Test if the slot exists, so that it is deleted. Raises: MethodFailed: the slot is inherited."""
        kept = self._buffer.find(self._receiver, slot)
        if kept is not None and kept.holder is not self._receiver:
            raise MethodFailed(f"{slot!r} of {label(self._receiver)} is its parent's: only an own slot can be deleted")
        return kept is not None
