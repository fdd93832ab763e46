"""The slots of the receiver that a run sees, and the table of the other objects that it has references to."""

from __future__ import annotations

from collections.abc import Iterable

from batos.cell.host import Writes
from batos.cell.values import Ref, Value
from batos.image.records import least_trust
from batos.methods.execution.name_rules import check_write
from batos.methods.execution.plain_data import Data, SizeBudget, check_size, data_of, replace_leaves
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, label
from batos.protocol.errors import MethodFailed


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
