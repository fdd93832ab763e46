"""The effects of writing, sending and marking on the states of paths, with the two rules that are checked there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final

from batos.guardian.covenant.abstract_values import (
    CHANGES,
    CLEAN,
    DIRTY,
    MARKED,
    PLAIN,
    SENDS,
    STALE,
    AbstractValue,
    Function,
    State,
    Value,
    after,
    creation_order,
    elements,
    join,
    reachable,
)  # fmt: skip
from batos.guardian.forms import Forms
from batos.guardian.policy import GuardianPolicy, SourceFault

_MARK_FIRST: Final = "write `self._p_changed = True` before the message: its receiver may read the change"
_FOREIGN: Final = "send that object a message that asks for the change, or change a copy: `list(...)`, `dict(...)`"


class TooIntricate(Exception):
    """The analysis took more steps than its bound: the source is refused as it is."""


class Frame:
    """The function that is being followed: the ends of its paths, its loops and its `try` blocks."""

    __slots__ = ("breaks", "continues", "function", "returns", "sends", "tries", "wrote")

    def __init__(self, function: Function | None) -> None:
        self.function = function
        self.returns: list[tuple[State, ast.stmt]] = []
        self.breaks: list[State | None] = []
        self.continues: list[State | None] = []
        self.tries: list[State | None] = []
        self.wrote = False
        self.sends = False


class Effects:
    """The state of the analysis, and the few things that change it."""

    def __init__(self, policy: GuardianPolicy, forms: Forms) -> None:
        self.policy = policy
        #: Every name that is bound anywhere in the source: such a name is no builtin.
        self.bound = forms.bound
        #: Imported names: (module, member), member empty for the module itself.
        self.imports = forms.imports
        #: Functions that are generators, and the names that each declares `nonlocal`.
        self.generators = frozenset(scope.node for scope in forms.scopes if scope.generates)
        self.outward = {scope.node: frozenset(scope.outward) for scope in forms.scopes if scope.outward}
        self.faults: set[SourceFault] = set()
        self.mutates: set[str] = set()
        self.state = State({}, CLEAN)
        self.frame = Frame(None)
        self.version = 0
        #: The number of changes in place and of values stored: rounds without any are not repeated.
        self.changes = 0
        self.steps = 0
        self.raised: Value = PLAIN
        #: The call that is the whole of the statement that is followed: nothing of it can fail after it.
        self.last: ast.expr | None = None
        self._things: dict[tuple[object, int], AbstractValue] = {}
        self._slots: dict[str, AbstractValue] = {}
        self._stored: dict[str, Value] = {}

    def step(self) -> None:
        """Count one step of the analysis; TooIntricate after the policy's bound."""
        self.steps += 1
        if self.steps > self.policy.bounds.steps:
            raise TooIntricate

    def fault(self, node: ast.AST, rule: str, why: str, remedy: str) -> None:
        """Record a fault at a node."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self.faults.add(SourceFault(line, column, rule, why, remedy))

    # -- things

    def slot(self, name: str) -> Value:
        """Return the value of `self.<name>`, one for the slot: its elements are part of it, and all that is stored."""
        thing = self._slots.get(name)
        if thing is None:
            thing = self._slots[name] = AbstractValue(frozenset((name,)))
            thing.elements = frozenset((thing,))
        return self._stored.get(name, PLAIN) | {thing}

    def container_at(self, node: object, held: Value = PLAIN, part: int = 0) -> AbstractValue:
        """Return the abstract value made at a place of the source, and add `held` to its contents for good."""
        thing = self._things.get((node, part))
        if thing is None:
            thing = self._things[(node, part)] = AbstractValue()
        self.hold(thing, held)
        return thing

    def fresh(self, node: object, held: Value = PLAIN, part: int = 0) -> Value:
        """Return a value of unknown depth from elsewhere: its elements are values like itself."""
        thing = self.container_at(node, held, part)
        if thing not in thing.elements:
            thing.elements |= {thing}
        return frozenset((thing,))

    def container(self, node: object, held: Value) -> Value:
        """Return the container made at a node, which may hold `held`."""
        return frozenset((self.container_at(node, held),))

    def hold(self, thing: AbstractValue, held: Value) -> None:
        """Add `held` to the contents of an abstract value; the contents of a slot become part of the slot."""
        if not (held <= thing.elements and (thing.fields is None or held <= thing.others)):
            thing.elements |= held
            thing.others |= held
            self.version += 1
            if thing.slots:
                self.own(held, thing.slots)

    def put(self, thing: AbstractValue, key: ast.expr | None, held: Value) -> None:
        """Store a value under a key. A dict display keeps the values of constant keys apart from the others."""
        if thing.fields is None or not isinstance(key, ast.Constant):
            self.hold(thing, held)
        elif not held <= thing.fields.get(key.value, PLAIN):
            thing.fields[key.value] = thing.fields.get(key.value, PLAIN) | held
            thing.elements |= held
            self.version += 1
            if thing.slots:
                self.own(held, thing.slots)

    def own(self, value: Value, slots: frozenset[str]) -> None:
        """Make everything in a value part of these slots, under every other name by which the value is known."""
        for thing in reachable(value):
            if not slots <= thing.slots and not thing.function:
                thing.slots |= slots
                self.version += 1

    def store(self, slot: str, value: Value) -> None:
        """Store a value in a slot of the receiver. From now on the value is part of that slot."""
        known = self._stored.get(slot, PLAIN)
        if not value <= known:
            self._stored[slot] = known | value
            self.version += 1
            self.changes += 1
        if value:
            self.own(value, frozenset((slot,)))
            for thing in self.slot(slot):
                self.hold(thing, elements(value))

    # -- what happens

    def write(self, node: ast.AST) -> None:
        """Record that a slot of the receiver changes at a node."""
        state = self.state
        if not state.bits & DIRTY or not state.line:
            state.line = getattr(node, "lineno", 0)
        state.bits = DIRTY
        self.frame.wrote = True

    def mark(self) -> None:
        """Follow `self._p_changed = True`: earlier writes are marked. Without a write the marker means nothing."""
        bits = self.state.bits
        self.state.bits = (bits & CLEAN) | (MARKED if bits & ~CLEAN else 0)

    def pass_by(self) -> None:
        """Follow a statement that is not the marker: a marker before it is not the last statement any more."""
        bits = self.state.bits
        if bits & MARKED:
            self.state.bits = (bits & ~MARKED) | STALE

    def send(self, node: ast.AST, selector: str) -> None:
        """Follow a message that may run a method, of this object or of another."""
        state = self.state
        self.frame.sends = True
        if state.bits & DIRTY:
            why = f"`{selector}` is sent before the change on line {state.line} is marked"
            self.fault(node, "write-before-send", why, _MARK_FIRST)
        self.pass_by()

    def change(self, value: Value, node: ast.AST, held: Value = PLAIN, key: ast.expr | None = None) -> None:
        """Change in place every container that a value may be; from now on each also holds `held` (under `key`)."""
        slots: set[str] = set()
        self.changes += 1
        for thing in value:
            slots |= thing.slots
            if thing.foreign:
                self.fault(node, "foreign-write", "this changes a copy of another object's slot", _FOREIGN)
            self.put(thing, key, held)
        if slots:
            self.mutates |= slots
            self.write(node)

    def may_raise(self) -> None:
        """Record that an exception may occur here, so that an enclosing `try` may continue from this state."""
        tries = self.frame.tries
        if tries:
            tries[-1] = join(tries[-1], self.state.copy())

    def apply(self, effect: int, node: ast.AST, what: str = "a function") -> None:
        """Apply a known effect of something that is called, awaited or iterated."""
        if effect & SENDS:
            self.send(node, what)
        if effect & (DIRTY | MARKED | STALE):
            before = self.state
            bits = after(before.bits, effect)
            if bits & DIRTY and not before.bits & DIRTY:
                before.line = getattr(node, "lineno", 0)
            before.bits = bits
            self.frame.wrote = True
            self.may_raise()

    def use(self, value: Value, others: Iterable[Value], node: ast.AST) -> Value:
        """Call or iterate a value by code that was given `others` too; return the results of the calls."""
        given = PLAIN.union(*others)
        result: Value = PLAIN
        for thing in sorted(value, key=creation_order):
            if thing.function is not None:
                result |= self.enter(thing.function, [given | elements(given)], node)
            if thing.effect & CHANGES:
                self.change(given | elements(given), node, given)
            if thing.bound:
                self.change(thing.bound, node, given | elements(given))
                result |= elements(thing.bound)
            elif thing.effect:
                self.apply(thing.effect, node)
        return result

    def enter(self, function: Function, given: list[Value], node: ast.AST, *, spread: bool = True) -> Value:
        """Call a function of the method (`spread`: any argument to any parameter); a subclass defines it."""
        raise NotImplementedError
