"""Plain data that a method sees in place of slots, and the buffer of its reads and writes until the run is merged.

A run writes into a buffer of its own, which lies over the buffer of the run that sent the message; the lowest buffer
lies over the image as the mission sees it. At the end of a run its reads are compared with the current values. If
another part of the mission changed a slot that this run read, the run is discarded and repeated (optimistic
concurrency). Otherwise its buffer is merged into the buffer below, or into the image, in one step without an await. The
buffer of a run that fails is dropped. So no change waits for a savepoint, no slot gets values of two parts mixed, and a
part that fails changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from BTrees.OOBTree import OOBTree, OOSet, OOTreeSet
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from ZODB.utils import z64

from batos.agency.records.effect_records import EffectData
from batos.cell.values import DEPTH, INTEGER_BITS, same
from batos.image import ownership
from batos.image.guards import protected_slots
from batos.image.records import SLOT_TRUST, TRUST, least_trust
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, delegation, label, own_slots, reference
from batos.protocol.errors import MethodFailed
from batos.protocol.evidence_documents import WrittenSlot

#: None, bool, int, float, str, list, dict with text keys, and UvmObject: the types of slots that methods use.
Data: TypeAlias = Any

#: The most values of a receiver that a method may see or write; the event loop visits each several times.
MOST_VALUES: Final = 5_000
#: The most characters of text in all these values.
MOST_TEXT: Final = 512 * 1024

_MAPPINGS = (dict, PersistentMapping, OOBTree)
_SEQUENCES = (list, tuple, PersistentList)
_SETS = (set, frozenset, OOTreeSet, OOSet)
#: The kernel's own containers: read as plain data, never written by a method.
_RECORDS = (PersistentMapping, PersistentList, OOBTree, OOTreeSet, OOSet)


@dataclass(slots=True)
class SizeBudget:
    """The number of values and characters that may still be taken. `has_objects`: one of those taken is an object."""

    values: int = MOST_VALUES
    text: int = MOST_TEXT
    has_objects: bool = False


def data_of(value: object, what: str, room: SizeBudget | None = None) -> Data:
    """Return a copy of a slot's value in exact types; tuples and sets become lists, UvmObjects stay as they are.

    `what` names the slot in errors. The size of the copy is subtracted from `room`.

    Raises: MethodFailed: the value is too large or holds something that is not plain data.
    """
    return _copy(value, what, room or SizeBudget(), ())


def _copy(value: Any, what: str, room: SizeBudget, above: tuple[int, ...]) -> Data:
    """Copy one value; `above` are the ids of the containers around it, which find a cycle."""
    room.values -= 1
    if room.values < 0:
        raise _too_large(what)
    kind = type(value)
    if kind is str:
        return _text(value, what, room)
    if value is None or kind is bool:
        return value
    if kind is UvmObject:
        room.has_objects = True
        return value
    if (kind is int and value.bit_length() <= INTEGER_BITS) or (kind is float and math.isfinite(value)):
        return value
    if id(value) in above or len(above) >= DEPTH:
        raise MethodFailed(f"{what} holds itself, or is nested more than {DEPTH} deep")
    above = (*above, id(value))
    if isinstance(value, _MAPPINGS):
        return {_key(key, what, room): _copy(each, what, room, above) for key, each in value.items()}
    if isinstance(value, _SEQUENCES):
        return [_copy(each, what, room, above) for each in value]
    if isinstance(value, _SETS):
        return [_copy(each, what, room, above) for each in sorted(value, key=repr)]
    raise _no_data(what, value)


def _text(value: str, what: str, room: SizeBudget) -> str:
    """Return a text and subtract its length from the budget. Raises: MethodFailed: the budget is used up."""
    room.text -= len(value)
    if room.text < 0:
        raise _too_large(what)
    return value


def _key(key: object, what: str, room: SizeBudget) -> str:
    """Return the key of a mapping and subtract its length. Raises: MethodFailed: the key is no text."""
    if type(key) is not str:
        raise MethodFailed(f"{what} has a key that is a {type(key).__name__}: only text is one for a method")
    return _text(key, what, room)


def _too_large(what: str) -> MethodFailed:
    return MethodFailed(
        f"{what} is too large for a method: at most {MOST_VALUES:,} values and {MOST_TEXT:,} characters",
        remedy="Keep less in one object, or use several.",
    )


def _no_data(what: str, value: object) -> MethodFailed:
    kind = "a number out of bounds" if type(value) in (int, float) else f"a {type(value).__name__}"
    if isinstance(value, Behaviour):
        return MethodFailed(f"{what} holds behaviour ({kind}): send it as a message instead of reading it")
    return MethodFailed(f"{what} holds {kind}, which is not plain data: a method cannot be shown it")


def check_size(value: object, what: str, room: SizeBudget) -> None:
    """Subtract the size of plain data from the budget.

    The check ends at the limit, so that huge data is not walked whole.

    Raises: MethodFailed: the data does not fit.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        room.values -= 1
        parts = each.values() if type(each) is dict else each if type(each) is list else ()
        if len(waiting) + len(parts) > room.values:
            raise _too_large(what)
        waiting.extend(parts)
        for text in (each,) if type(each) is str else each if type(each) is dict else ():
            _text(text, what, room)


def matches(value: object, data: Data) -> bool:
    """Test if a copy of the slot's value would equal this data, without making the copy."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return kind is type(data) and bool(value == data)
    if isinstance(value, _MAPPINGS):
        return (
            type(data) is dict
            and len(value) == len(data)
            and all(key in data and matches(each, data[key]) for key, each in value.items())
        )
    if isinstance(value, _SETS):
        value = sorted(value, key=repr)
    if isinstance(value, _SEQUENCES):
        return type(data) is list and len(value) == len(data) and all(map(matches, value, data))
    return same(value, data)


def describe_type(value: object) -> str:
    """Return the type of a value in words, for an error."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def is_record(value: object) -> bool:
    """Test if the slot's value is one of the kernel's containers, which no method replaces."""
    return isinstance(value, _RECORDS)


def replace_leaves(value: Data, change: Callable[[Any], Any], leaf: Callable[[Any], bool]) -> Any:
    """Return a copy of the data in which each leaf that `leaf` accepts is replaced by `change(leaf)`."""
    if type(value) is list:
        return [replace_leaves(each, change, leaf) for each in value]
    if type(value) is dict:
        return {key: replace_leaves(each, change, leaf) for key, each in value.items()}
    return change(value) if leaf(value) else value


#: Trust classes that are not recorded for a slot, since no slot is trusted more than a model's text.
_USUAL: Final = ("user", "model")


class _DeletedType:
    """The type of DELETED, which stands for a deleted slot."""


DELETED: Final = _DeletedType()


class BufferedSlot(NamedTuple):
    """A slot as a buffer sees it: its holder, its value (a live value of the image, or data) and its trust class."""

    holder: UvmObject
    value: Any
    trust: str


class BufferedWrite(NamedTuple):
    """A change of a slot: the new data, or DELETED, and its trust class."""

    value: Data
    trust: str


@dataclass(frozen=True, slots=True)
class _SeenValue:
    """The value that a run first read from below its buffer; `exists` is False if there was no such slot.

    `holder` is the object that had it, or the receiver.
    """

    data: Data | None
    exists: bool
    holder: UvmObject


class WriteBuffer:
    """Copy-on-write changes over another buffer, or over the image. All its methods return without an await."""

    def __init__(self, below: WriteBuffer | None = None, user: str = "") -> None:
        """Create an empty buffer over another, or over the image as this user sees it ("" for the shared values)."""
        self._below = below
        self._user: str = user or (below._user if below is not None else "")
        self._written: dict[UvmObject, dict[str, BufferedWrite]] = {}
        self._seen: dict[tuple[UvmObject, str], _SeenValue] = {}
        #: Effects on the world that the run staged: they are merged with its writes, or dropped with them.
        self.effects: list[EffectData] = []

    # -- reading

    def find(self, receiver: UvmObject, slot: str) -> BufferedSlot | None:
        """Return the slot by delegation, with the changes of this buffer and those below; None if missing.

        Nothing is recorded.
        """
        buffers = tuple(self._down())
        for holder in delegation(receiver):
            held = _own_slot(holder, slot, buffers, self._user)
            if held is not None:
                return held
        return None

    def read(self, receiver: UvmObject, slot: str, room: SizeBudget | None = None) -> BufferedSlot | None:
        """Return the slot with its value as data, and record the value for `stale_read`; None if there is no such slot.

        Raises: MethodFailed: the value is not plain data, or does not fit into `room`.
        """
        held = self.find(receiver, slot)
        data = None if held is None else data_of(held.value, f"the slot {slot!r} of {label(receiver)}", room)
        if (receiver, slot) not in self._seen and not self._own(receiver, slot):
            self._seen[receiver, slot] = _SeenValue(data, held is not None, receiver if held is None else held.holder)
        return None if held is None else held._replace(value=data)

    def _own(self, receiver: UvmObject, slot: str) -> bool:
        """Test if this buffer itself changed the slot, in the receiver or an object that it delegates to."""
        return any(slot in self._written.get(holder, {}) for holder in delegation(receiver))

    def _down(self) -> Iterator[WriteBuffer]:
        """Yield this buffer and those below it, topmost first."""
        buffer: WriteBuffer | None = self
        while buffer is not None:
            yield buffer
            buffer = buffer._below

    # -- changing

    def write(self, receiver: UvmObject, changes: Mapping[str, BufferedWrite]) -> None:
        """Change slots of an object in this buffer."""
        if changes:
            self._written.setdefault(receiver, {}).update(changes)

    def stale_read(self) -> str | None:
        """Describe a slot that was changed below since this buffer read it; None if there is none.

        A buffer without writes and effects has no stale reads, since nothing depends on them.
        """
        if not self._written and not self.effects:
            return None
        below = WriteBuffer(user=self._user) if self._below is None else self._below
        for (receiver, slot), seen in self._seen.items():
            held = below.find(receiver, slot)
            there = held is not None
            if there is not seen.exists or (held is not None and not matches(held.value, seen.data)):
                return f"{slot!r} of {label(receiver)}"
        return None

    def merge_down(self) -> list[WrittenSlot]:
        """Merge the changes into the buffer below, or into the image, and return the changes of the image.

        Each change is {oid, slot, had, former}, with the former `trust` if that was an unusual one. A slot that
        already has its new value is no change.
        """
        below = self._below
        if below is None:
            return [
                each for receiver, changes in self._written.items() for each in _apply(receiver, changes, self._user)
            ]
        for read, seen in self._seen.items():
            # The result that the sender got depends on this read too.
            if read not in below._seen and not below._own(*read):
                below._seen[read] = seen
        for receiver, changes in self._written.items():
            below.write(receiver, changes)
        below.effects.extend(self.effects)
        return []

    def list_reads(self) -> list[dict[str, str]]:
        """List the slots of committed objects that were read, {oid, slot}: none while another buffer lies below.

        Slots that no method may write are left out.
        """
        below = () if self._below is not None else self._seen.items()
        return list_shared((seen.holder, slot) for (_, slot), seen in below)

    def list_staged(self) -> list[EffectData]:
        """Return the effects that reach the mission with this merge: none while another buffer lies below."""
        return self.effects if self._below is None else []


def list_shared(slots: Iterable[tuple[UvmObject, str]]) -> list[dict[str, str]]:
    """List those of these slots that another mission can have written, each once, as {oid, slot}."""
    found = {(holder, slot): None for holder, slot in slots if _is_committed(holder)}
    fixed = {holder: protected_slots(holder) for holder, _ in found}
    return [{"oid": reference(holder), "slot": slot} for holder, slot in found if slot not in fixed[holder]]


def _is_committed(obj: UvmObject) -> bool:
    """Test if an earlier commit has written an object."""
    obj._p_activate()  # what is not loaded has no serial
    return obj._p_jar is not None and obj._p_serial != z64


def _own_slot(holder: UvmObject, slot: str, buffers: Sequence[WriteBuffer], user: str) -> BufferedSlot | None:
    """Return the slot of this one object, without delegation; None if the object does not have it."""
    for buffer in buffers:
        written = buffer._written.get(holder, {}).get(slot)
        if written is not None:
            return None if written.value is DELETED else BufferedSlot(holder, written.value, written.trust)
    slots = own_slots(holder)
    value = ownership.slot_for(slots, slot, user)
    return None if value is ownership.ABSENT else BufferedSlot(holder, value, trust_of(slots, slot))


def trust_of(slots: Mapping[str, object], slot: str) -> str:
    """Return the trust class of a slot: the lower of its own class and the object's lineage class."""
    kept = slots.get(SLOT_TRUST)
    classes = (slots.get("lineage_trust"), kept.get(slot) if isinstance(kept, Mapping) else None)
    return least_trust("model", *(each for each in classes if each in TRUST))


def _apply(receiver: UvmObject, changes: Mapping[str, BufferedWrite], user: str) -> list[WrittenSlot]:
    """Change the object in the image, and return each changed slot with its former value."""
    slots, changed = own_slots(receiver), []
    trusts = dict(slots.get(SLOT_TRUST) or {})
    for slot, written in changes.items():
        before = ownership.slot_for(slots, slot, user)
        had = before is not ownership.ABSENT
        if (not had and written.value is DELETED) or (had and matches(before, written.value)):
            continue
        former = data_of(before, f"the slot {slot!r}") if had else None
        users = ownership.owners_after(slots, slot, user)
        if users:
            setattr(receiver, ownership.SLOT_USERS, users)
        if written.value is not DELETED:
            setattr(receiver, slot, written.value)
        elif slot in slots:
            delattr(receiver, slot)
        change = WrittenSlot(oid=reference(receiver), slot=slot, had=had, former=with_references(former))
        changed.append(change | ({"trust": trusts[slot]} if slot in trusts else {}))
        trusts.pop(slot, None)
        if written.value is not DELETED and written.trust not in _USUAL:
            trusts[slot] = written.trust
    if changed and trusts != (slots.get(SLOT_TRUST) or {}):
        setattr(receiver, SLOT_TRUST, trusts)
    return changed


def with_references(data: Data) -> Any:
    """Return data that JSON can hold, with a reference `{"$ref": ...}` for each object."""
    return replace_leaves(data, lambda obj: {"$ref": reference(obj)}, lambda each: isinstance(each, UvmObject))
