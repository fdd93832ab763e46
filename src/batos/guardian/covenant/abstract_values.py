"""Abstract values of a method: each stands for the objects that a name may refer to, aliases of a slot included."""

from __future__ import annotations

import ast
import itertools
from typing import Final, TypeAlias

#: Where a path stands, as bits: nothing written; written, not marked; marked by its last statement; marked before.
CLEAN: Final = 1
DIRTY: Final = 2
MARKED: Final = 4
STALE: Final = 8
#: Further bits of an effect: it sends a message that may run a method; it changes its arguments.
SENDS: Final = 16
CHANGES: Final = 32


#: Things are told apart by when they were made, so that their order is that of the source.
_numbers = itertools.count()


class AbstractValue:
    """An abstract value: a slot's container, a container made at a place in the source, a function, or a lazy iterator.

    `slots` are the slots that the value may be (part of), `elements` its possible contents. `effect` holds the bits of
    what happens when the value is called, awaited or iterated. `bound` is what a bound method changes. `foreign` marks
    a copy of another object's slot, `keyed` a pair whose first item is a key or a number. For a dict display `fields`
    holds its elements by key, and `others` the elements that were added later under any key.
    """

    __slots__ = ("bound", "effect", "elements", "fields", "foreign", "function", "keyed", "number", "others", "slots")

    def __init__(self, slots: frozenset[str] = frozenset(), effect: int = 0) -> None:
        self.slots = slots
        self.elements: Value = PLAIN
        self.effect = effect
        self.bound: Value = PLAIN
        self.function: Function | None = None
        self.foreign = False
        self.keyed = False
        self.fields: dict[object, Value] | None = None
        self.others: Value = PLAIN
        self.number = next(_numbers)


Value: TypeAlias = frozenset[AbstractValue]
#: A value through which nothing of the receiver can be changed.
PLAIN: Final[frozenset[AbstractValue]] = frozenset()


class Function:
    """A function within the method: what flows into it, and what a call of it is known to do."""

    __slots__ = (
        "again", "bits", "busy", "closure", "generates", "given", "node", "outward", "parameters", "result", "seen",
        "sends", "wrote", "yields",
    )  # fmt: skip

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, generates: bool) -> None:
        given = node.args
        self.node = node
        self.generates = generates
        self.parameters = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        self.parameters += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
        self.given: dict[str, Value] = {}
        self.closure: dict[str, Value] = {}
        self.outward: dict[str, Value] = {}
        self.result: Value = PLAIN
        self.yields: Value = PLAIN
        self.bits = 0
        self.sends = False
        self.wrote = False
        self.busy = False
        self.again = False
        self.seen = -1


class State:
    """The state of several paths at a point: variables that are not plain, progress, and a write's line."""

    __slots__ = ("bits", "line", "variables")

    def __init__(self, variables: dict[str, Value], bits: int, line: int = 0) -> None:
        self.variables = variables
        self.bits = bits
        self.line = line

    def copy(self) -> State:
        """Return a copy that can be changed by itself."""
        return State(dict(self.variables), self.bits, self.line)

    def covers(self, other: State) -> bool:
        """Test if everything that is possible in `other` is possible in this state."""
        if other.bits & ~self.bits:
            return False
        mine = self.variables
        return all(value <= mine.get(name, PLAIN) for name, value in other.variables.items())


def join(one: State | None, other: State | None) -> State | None:
    """Join the states of two paths that meet; None stands for a place that no path reaches."""
    if one is None:
        return other
    if other is None:
        return one
    variables = dict(one.variables)
    for name, value in other.variables.items():
        mine = variables.get(name)
        variables[name] = value if mine is None else mine | value
    lines = [line for line in (one.line, other.line) if line]
    return State(variables, one.bits | other.bits, min(lines, default=0))


def elements(value: Value) -> Value:
    """Return the values that iterating or indexing a value may give."""
    if not value:
        return PLAIN
    if len(value) == 1:
        return next(iter(value)).elements
    return PLAIN.union(*(thing.elements for thing in value))


def field(value: Value, key: object) -> Value:
    """Return the values that a value may hold under a constant key."""
    found = PLAIN
    for thing in value:
        known = thing.fields
        found |= thing.elements if known is None or thing.slots else known.get(key, PLAIN) | thing.others
    return found


def creation_order(thing: AbstractValue) -> int:
    """Return the number by which abstract values are sorted in the order of their creation."""
    return thing.number


def reachable(value: Value) -> Value:
    """Return a value and everything in it at any depth."""
    found: set[AbstractValue] = set()
    todo = list(value)
    while todo:
        thing = todo.pop()
        if thing not in found:
            found.add(thing)
            todo.extend(thing.elements)
    return frozenset(found)


def after(bits: int, effect: int) -> int:
    """Return the state bits of paths after an effect, given as the bits that the effect would leave on a clean path."""
    out = 0
    for end in (CLEAN, DIRTY, MARKED, STALE):
        if not effect & end:
            continue
        if end == CLEAN:
            out |= bits
        elif end == DIRTY:
            out |= DIRTY
        else:
            out |= (bits & DIRTY) | (end if bits & ~DIRTY else 0)
    return out or bits
