"""UvmObject, the only kind of domain object: it has slots, delegates to parents, and answers messages.

The slots are the object's own persistent state (docs/decisions/0002-objects.md): one object is one record,
and a list or dict in a slot is part of that record. Code that changes such a container in place must therefore set
`self._p_changed = True` on the object whose slot it is (the Persistence Covenant). A container that was read by
delegation belongs to the parent: write a changed copy to an own slot instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any, NamedTuple, Protocol, final

from persistent import Persistent

from batos.objects.method import Behaviour, Intent, Method, Primitive, copy_owned
from batos.protocol.errors import MessageNotUnderstood, ObjectError

#: Where the parents stand in the state, beside the slots.
_PARENTS = "_parents"

#: Never a slot and never delegated, beside dunders, `_p_*` (the database's) and `_v_*` (never stored).
_RESERVED = frozenset(
    {_PARENTS, "parent*", "_slots", "_doesNotUnderstand_", "_is_coroutine", "_is_coroutine_marker", "clone"}
)

#: Attributes that the database sets on a record; any other `_p_*` name would be lost silently.
_DATABASE = frozenset(name for name in dir(Persistent) if name.startswith("_p_"))

_CODE = (FunctionType, BuiltinFunctionType, MethodType, type)


class FoundSlot(NamedTuple):
    """The slot that answers a selector: its holder, its value, and how many parents up (0 is the receiver)."""

    holder: UvmObject
    value: Any
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Reparenting:
    """A change of parents, as it is reported to the audit before it happens."""

    object: UvmObject
    before: tuple[UvmObject, ...]
    after: tuple[UvmObject, ...]
    by: str
    reason: str


@final
class UvmObject(Persistent):
    """An object with slots and parents. Reading an attribute returns the own slot, else the first one found in the
    parents.

    Reading an absent name raises MessageNotUnderstood at once. Writing or deleting a name changes the object's own slot
    and never a parent's. Kernel functions (`own_slots`, `lookup`, ...) are not methods, so that no slot can hide them.

    Raises: ObjectError: a name that no slot can have, a function as a value, or a parent that is no UvmObject.
    """

    _parents: tuple[UvmObject, ...]

    def __init__(self, slots: Mapping[str, object] | None = None, parents: Sequence[UvmObject] = ()) -> None:
        _set_parents(self, _check_parents(parents))
        for name, value in (slots or {}).items():
            _set_slot(self, name, value)

    def __init_subclass__(cls) -> None:
        raise ObjectError("there are no classes to subclass: clone an object and give it slots")

    def __getattr__(self, name: str) -> Any:
        found = _find(self, name)
        if found is not None:
            return found[1]
        if is_reserved(name):
            raise AttributeError(f"{name!r} is never a slot and is not delegated")
        raise MessageNotUnderstood(label(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _DATABASE:
            super().__setattr__(name, value)
        else:
            _set_slot(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name not in _DATABASE:
            if is_reserved(name):
                raise ObjectError(f"{name!r} is never a slot")
            if name not in own_slots(self):
                raise MessageNotUnderstood(label(self), name)
        super().__delattr__(name)

    def __repr__(self) -> str:
        return f"<UvmObject {reference(self)}>"

    def clone(self, slots: Mapping[str, object] | None = None) -> UvmObject:
        """Make a new object that shares this object's behaviour and none of its state. `slots` replace the copied ones.

        Containers that this object owns are copied (`containers.copy_owned`), references stay references, and a
        reference to this object becomes a reference to the clone. An object that holds behaviour becomes the parent of
        its clone, so that a redefinition reaches every clone. An object without behaviour passes on its own parents.
        """
        state = own_slots(self)
        data = {name: value for name, value in state.items() if not isinstance(value, Behaviour)}
        new = UvmObject(parents=self._parents if len(data) == len(state) else (self,))
        memo = {id(self): new}
        own = slots or {}
        for name, value in data.items():
            if name not in own:
                _set_slot(new, name, copy_owned(value, memo))
        for name, value in own.items():
            _set_slot(new, name, value)
        return new

    def __copy__(self) -> UvmObject:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UvmObject:
        return self.clone()


def lookup(receiver: UvmObject, selector: str) -> FoundSlot | None:
    """Find the slot that `selector` means to `receiver`: its own, else its parents', left to right, depth first.

    Visits each object once, so cycles and diamonds end. Raises what the database raises for a parent that cannot be
    loaded (POSKeyError, ReadConflictError): such a parent is never taken for one that lacks the slot.
    """
    found = _find(receiver, selector)
    return FoundSlot(*found) if found is not None else None


def delegation(obj: UvmObject) -> Iterator[UvmObject]:
    """Yield the object and then each object it delegates to, once, in the order in which `lookup` searches."""
    seen: set[UvmObject] = set()
    pending = [obj]
    while pending:
        holder = pending.pop()
        if holder not in seen:
            seen.add(holder)
            yield holder
            pending.extend(reversed(holder._parents))


def own_slots(obj: UvmObject) -> Mapping[str, Any]:
    """Return the object's own slots as a read-only mapping. The values are not copies."""
    obj._p_activate()  # the state of a ghost looks empty
    return MappingProxyType({name: value for name, value in vars(obj).items() if name != _PARENTS})


def parents_of(obj: UvmObject) -> tuple[UvmObject, ...]:
    """Return the objects that this one delegates to, in order."""
    return obj._parents


def reparent(
    obj: UvmObject, parents: Sequence[UvmObject], *, by: str, reason: str, audit: Callable[[Reparenting], None]
) -> None:
    """Give an object other parents, after `audit` was told. If `audit` raises, nothing changes.

    No attribute and no message reaches this function: only the kernel calls it.

    Raises: ObjectError: a parent that is no UvmObject, an object that would become its own ancestor, or an empty `by`
    or `reason`.
    """
    if not by or not reason:
        raise ObjectError("a change of parents names who made it and why")
    after = _check_acyclic(obj, _check_parents(parents))
    audit(Reparenting(obj, obj._parents, after, by, reason))
    _set_parents(obj, after)


def become(cycle: UvmObject, state: UvmObject) -> None:
    """Replace the first parent of `cycle`, which is its state, by `state`: one step of the state machine.

    Raises: ObjectError: the cycle has no parent to replace, or the state delegates to the cycle.
    """
    if not cycle._parents:
        raise ObjectError(f"{label(cycle)} has no state to leave: its first parent is its state")
    _set_parents(cycle, _check_acyclic(cycle, (*_check_parents([state]), *cycle._parents[1:])))


def is_reserved(name: str) -> bool:
    """Test if a name belongs to Python, the database or this kernel, so that no slot can have it."""
    return name in _RESERVED or name[:3] in {"_p_", "_v_"} or (name[:2] == "__" and name[-2:] == "__")


def reference(obj: Persistent) -> str:
    """Return how people and documents name a record: `oid:0x2a`, or `oid:new` before it has an identity."""
    return "oid:new" if obj._p_oid is None else f"oid:{int.from_bytes(obj._p_oid, 'big'):#x}"


def label(obj: UvmObject) -> str:
    """Return the object's own name, if it has one, with its reference."""
    obj._p_activate()
    name = vars(obj).get("name")
    return f"{name} ({reference(obj)})" if isinstance(name, str) else reference(obj)


def _find(receiver: UvmObject, selector: str) -> tuple[UvmObject, Any, int] | None:
    """Search like `lookup`, without recursion, and return a plain tuple: every delegated read pays for it."""
    if selector[:1] == "_" and is_reserved(selector):
        return None
    seen: set[UvmObject] = set()
    pending: list[tuple[UvmObject, int]] = []
    holder, depth = receiver, 0
    while True:
        if holder not in seen:
            seen.add(holder)
            parents = holder._parents  # this read loads a ghost and keeps it warm in the cache, __dict__ does not
            slots = holder.__dict__
            if selector in slots:
                return holder, slots[selector], depth
            if parents:
                depth += 1
                if len(parents) > 1:
                    pending.extend([(parent, depth) for parent in parents[:0:-1]])
                holder = parents[0]
                continue
        if not pending:
            return None
        holder, depth = pending.pop()


def _set_slot(obj: UvmObject, name: str, value: object) -> None:
    if not isinstance(name, str):
        raise ObjectError(f"a slot's name is text, not a {type(name).__name__}")
    if not name or is_reserved(name):
        raise ObjectError(f"{name!r} can be no slot: the name belongs to Python, the database or the kernel")
    if isinstance(value, _CODE):
        raise ObjectError(f"slot {name!r} cannot hold a function: name it with a Primitive, or store a Method")
    Persistent.__setattr__(obj, name, value)  # joins the transaction first: without one it raises, unchanged


def _check_parents(parents: Iterable[Any]) -> tuple[UvmObject, ...]:
    checked = tuple(parents)
    for parent in checked:
        if not isinstance(parent, UvmObject):
            raise ObjectError(f"a parent is a UvmObject, not a {type(parent).__name__}")
    return checked


def _check_acyclic(obj: UvmObject, parents: tuple[UvmObject, ...]) -> tuple[UvmObject, ...]:
    for parent in parents:
        if any(ancestor is obj for ancestor in delegation(parent)):
            raise ObjectError(f"{label(obj)} would become its own ancestor through {label(parent)}")
    return parents


def _set_parents(obj: UvmObject, parents: tuple[UvmObject, ...]) -> None:
    Persistent.__setattr__(obj, _PARENTS, parents)


class Interpreter(Protocol):
    """Carries out the behaviour that `send` finds: `found` names its holder, `receiver` stays the `self`."""

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run the kernel function of that name."""

    async def intent(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Interpret an Intent, or generate from it."""

    async def method(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Run a Method."""


async def send(interpreter: Interpreter, receiver: UvmObject, selector: str, *args: object) -> Any:
    """Send a message to an object and return the answer.

    A plain value is its own answer: text in a slot is never taken for a wish that a model should act on.

    Raises: MessageNotUnderstood: neither the receiver nor its parents have a slot of that name. ObjectError: arguments
    were sent to a plain value.
    """
    found = lookup(receiver, selector)
    if found is None:
        raise MessageNotUnderstood(label(receiver), selector)
    if isinstance(found.value, Primitive):
        return await interpreter.primitive(receiver, found.value.name, args)
    if isinstance(found.value, Intent):
        return await interpreter.intent(receiver, found, selector, args)
    if isinstance(found.value, Method):
        return await interpreter.method(receiver, found, selector, args)
    if args:
        raise ObjectError(f"{selector!r} of {label(receiver)} is a value and takes no arguments")
    return found.value
