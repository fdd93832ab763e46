"""What the values of a method may be: abstract things with elements, so that an alias of a slot is known for one."""

from __future__ import annotations

import ast
import itertools
from typing import Final, TypeAlias

#: Where a path stands, as bits: nothing written; written, not marked; marked by its last statement; marked before.
CLEAN: Final = 1
DIRTY: Final = 2
MARKED: Final = 4
STALE: Final = 8
#: What else an effect may be: it sends a message that may run a method, it changes what it is given.
SENDS: Final = 16
CHANGES: Final = 32


#: Things are told apart by when they were made, so that their order is that of the source.
_numbers = itertools.count()


class Thing:
    """One abstract value: a slot's container, one made at a place in the source, a function, a lazy iterator.

    `slots` are the slots it may be (part of), `elements` what it may hold, `effect` the bits of what happens when it is
    called, awaited or iterated, `bound` what a bound method changes, `foreign` whether it is a copy of another object's
    slot, `keyed` whether it is a pair whose first is a key or a number. Of a dict that is written out, `fields` are its
    elements by key and `others` those that it was given since, under whatever key.
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


Value: TypeAlias = frozenset[Thing]
#: A value through which nothing of the receiver can be changed.
PLAIN: Final[frozenset[Thing]] = frozenset()


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
    """What is known at one point of one path bundle: variables that are not plain, where the paths stand, a write."""

    __slots__ = ("bits", "line", "variables")

    def __init__(self, variables: dict[str, Value], bits: int, line: int = 0) -> None:
        self.variables = variables
        self.bits = bits
        self.line = line

    def copy(self) -> State:
        return State(dict(self.variables), self.bits, self.line)

    def covers(self, other: State) -> bool:
        """Whether everything that may be in `other` may be in this one."""
        if other.bits & ~self.bits:
            return False
        mine = self.variables
        return all(value <= mine.get(name, PLAIN) for name, value in other.variables.items())


def joined(one: State | None, other: State | None) -> State | None:
    """What is known where two paths meet; None is a place that no path reaches."""
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
    """What iterating or indexing a value may give."""
    if not value:
        return PLAIN
    if len(value) == 1:
        return next(iter(value)).elements
    return PLAIN.union(*(thing.elements for thing in value))


def field(value: Value, key: object) -> Value:
    """What a value may give under a key that stands there as a constant."""
    found = PLAIN
    for thing in value:
        known = thing.fields
        found |= thing.elements if known is None or thing.slots else known.get(key, PLAIN) | thing.others
    return found


def made_before(thing: Thing) -> int:
    """The key by which things are put in the order in which they were made."""
    return thing.number


def reachable(value: Value) -> Value:
    """Everything that a value holds at any depth, itself included."""
    found: set[Thing] = set()
    todo = list(value)
    while todo:
        thing = todo.pop()
        if thing not in found:
            found.add(thing)
            todo.extend(thing.elements)
    return frozenset(found)


def after(bits: int, effect: int) -> int:
    """Where paths stand after something that by itself would leave a clean one at `effect`."""
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
