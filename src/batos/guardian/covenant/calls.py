"""The effect of a call, by its target: a message, a method of a plain value, a builtin, or a function."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from batos.guardian.covenant.abstract_values import (
    CHANGES,
    CLEAN,
    PLAIN,
    SENDS,
    State,
    Value,
    creation_order,
    elements,
)  # fmt: skip
from batos.guardian.covenant.effects import Effects

#: Builtins that give an iterator over their last argument; functions among the others run when it is iterated.
_LAZY: Final = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
_COPIES: Final = frozenset({"frozenset", "list", "set", "sorted", "tuple"})
_SELECTS: Final = frozenset({"max", "min", "next"})
#: Functions of modules that change their first argument in place.
CHANGERS: Final = frozenset({
    ("bisect", "insort"), ("bisect", "insort_left"), ("bisect", "insort_right"), ("random", "shuffle"),
    ("heapq", "heapify"), ("heapq", "heappop"), ("heapq", "heappush"), ("heapq", "heappushpop"),
    ("heapq", "heapreplace"), ("operator", "setitem"), ("operator", "delitem"), ("operator", "iadd"),
    ("operator", "iconcat"), ("operator", "ior"), ("operator", "imul"),
})  # fmt: skip
#: Modules whose functions give values through which nothing of their arguments can be changed.
_SCALAR: Final = frozenset({"datetime", "json", "math", "re", "statistics", "textwrap", "typing", "unicodedata"})
#: Methods that give an element of what they are called on, and those that give a copy of it.
_PICKS: Final = frozenset({"get", "pop", "popitem", "popleft", "setdefault"})
_PAIRS: Final = frozenset({"items", "most_common"})
_SHALLOW: Final = frozenset({
    "copy", "difference", "elements", "intersection", "symmetric_difference", "union", "values",
})  # fmt: skip
_LISTS: Final = frozenset({
    "findall", "finditer", "fromkeys", "groupdict", "groups", "partition", "rpartition", "rsplit", "split",
    "splitlines",
})  # fmt: skip


#: Functions of `statistics` that give one of what they are given, or several.
_ONE_OF_THEM: Final = frozenset({"median_high", "median_low", "mode", "multimode"})
#: Builtins whose result is computed while it is gone through, so that it may end in an error there.
_COMPUTED: Final = frozenset({"filter", "map", "zip"})


def is_computed(node: ast.expr) -> bool:
    """Test if a value is computed item by item: an error in it comes when some items have been used."""
    if isinstance(node, ast.GeneratorExp):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _COMPUTED


def _stops_midway(node: ast.Call, name: str) -> bool:
    """Test if a change in place may end in an error when part of it is done."""
    if name not in ("extend", "extendleft", "update") or not node.args:
        return False
    pairs = name == "update" and isinstance(node.args[0], ast.List | ast.Tuple)
    return pairs or is_computed(node.args[0])


class Calls(Effects):
    """Calls, by what is called."""

    def eval(self, node: ast.expr) -> Value:
        """Return the values that an expression may have, and apply its effects; a subclass defines it."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        """Follow a call: first its target, then its arguments, then its effect on them."""
        called = node.func
        if isinstance(called, ast.Attribute):
            return self._call_attribute(node, called)
        if isinstance(called, ast.Name) and called.id not in self.bound:
            found = self.imports.get(called.id)
            if found is not None:
                return self._call_member(node, found[0], found[1], self._arguments(node))
            return self._call_builtin(node, called.id)
        return self._call_value(node, self.eval(called), self._arguments(node))

    # -- arguments

    def _arguments(self, node: ast.Call) -> list[Value]:
        values = []
        for one in node.args:
            if isinstance(one, ast.Starred):
                values.append(self.iterate(self.eval(one.value), one))
            else:
                values.append(self.eval(one))
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            values.append(value if keyword.arg else elements(value))
        return values

    def iterate(self, value: Value, node: ast.AST) -> Value:
        """Return the values that iteration over a value gives, and apply the effects of a lazy iterator."""
        if not value:
            return PLAIN
        for thing in sorted(value, key=creation_order):
            if thing.effect and thing.function is None:
                self.apply(thing.effect, node)
        return elements(value)

    def pass_to_unknown(self, values: list[Value], node: ast.AST) -> Value:
        """Pass arguments to unknown code: functions among them may be called with the others."""
        result: Value = PLAIN
        for index, value in enumerate(values):
            if any(thing.function or thing.effect or thing.bound for thing in value):
                result |= self.use(value, [one for at, one in enumerate(values) if at != index], node)
        return result

    # -- attributes

    def _call_attribute(self, node: ast.Call, called: ast.Attribute) -> Value:
        base, name = called.value, called.attr
        if isinstance(base, ast.Name):
            if base.id == self.policy.receiver:
                return self._message(node, name, exempt=name in self.policy.primitives)
            found = self.imports.get(base.id)
            if found is not None and not found[1] and base.id not in self.bound:
                return self._call_member(node, found[0], name, self._arguments(node))
            if base.id in self.policy.functions and base.id not in self.bound:
                return self._call_unbound(node, name)
        if self._is_of_class(base):
            return self._call_member(node, self._module(base), name, self._arguments(node))
        owner = self.eval(base)
        if name in self.policy.mutators:
            return self._mutator(node, name, owner)
        if name in self.policy.plain_methods:
            return self._plain_method(node, name, owner)
        return self._message(node, name, exempt=False)

    def _is_of_class(self, base: ast.expr) -> bool:
        """Test if a call's base is a class of a module, as in `date.today()` or
        `itertools.chain.from_iterable(rows)`.
        """
        if isinstance(base, ast.Attribute):
            base = base.value
        return isinstance(base, ast.Name) and base.id in self.imports and base.id not in self.bound

    def _module(self, base: ast.expr) -> str:
        name = base.value if isinstance(base, ast.Attribute) else base
        return self.imports[name.id][0] if isinstance(name, ast.Name) else ""

    def _message(self, node: ast.Call, selector: str, *, exempt: bool) -> Value:
        values = self._arguments(node)
        self.pass_to_unknown(values, node)
        self.may_raise()
        if exempt:
            self.pass_by()
        else:
            self.send(node, selector)
        answer = self.fresh(node)
        function = self.frame.function
        if function is None or isinstance(function.node, ast.AsyncFunctionDef):
            waiting = self.container_at(node, answer, part=1)
            waiting.effect = 0 if exempt else CLEAN | SENDS
            return frozenset((waiting,))
        return answer

    def _call_unbound(self, node: ast.Call, name: str) -> Value:
        """Follow a method that is called on its type: `dict.fromkeys(keys, value)`, `list.append(items, one)`."""
        values = self._arguments(node)
        self.pass_to_unknown(values, node)
        if name in self.policy.mutators and values:
            self.change(values[0], node, PLAIN.union(*values[1:]))
        return self.fresh(node, PLAIN.union(*values) if values else PLAIN)

    def _mutator(self, node: ast.Call, name: str, owner: Value) -> Value:
        values = self._arguments(node)
        if name in _PICKS:
            keyless, values = values[:1], values[1:]
            self.pass_to_unknown(keyless, node)
        given = PLAIN.union(*values) if values else PLAIN
        if name == "sort":
            self.pass_to_unknown([elements(owner), *values], node)
            self.may_raise()
        else:
            self.pass_to_unknown(values, node)
        held = given | elements(given) if name in ("extend", "update", "extendleft") else given
        self.change(owner, node, held)
        if node is not self.last or _stops_midway(node, name):
            self.may_raise()
        return elements(owner) | given if name in _PICKS else PLAIN

    def _plain_method(self, node: ast.Call, name: str, owner: Value) -> Value:
        values = self._arguments(node)
        self.pass_to_unknown(values, node)
        if name in _PICKS:
            return elements(owner).union(*values[1:])
        if name in _PAIRS:
            return self._pairs(node, elements(owner))
        if name in _SHALLOW:
            return self.container(node, elements(owner).union(*(elements(one) for one in values)))
        if name in _LISTS:
            return self.fresh(node, elements(owner))
        return PLAIN

    def _pairs(self, node: ast.AST, held: Value) -> Value:
        pair = self.container_at(node, held, part=1)
        pair.keyed = True
        return self.container(node, frozenset((pair,)))

    # -- builtins

    def _call_builtin(self, node: ast.Call, name: str) -> Value:
        if name in self.policy.called_only:
            return self._by_name(node, name)
        values = self._arguments(node)
        if name in _LAZY:
            return self._lazy(node, name, values)
        given = self.pass_to_unknown(values, node)
        self.may_raise()
        if name in _COPIES:
            return self.container(node, PLAIN.union(*map(elements, values)) if values else PLAIN)
        if name in _SELECTS:
            picked = elements(values[0]) if len(node.args) == 1 or name == "next" else PLAIN
            return picked.union(given, *(values[1:] if picked else values))
        if name == "dict":
            held = PLAIN.union(*values, *map(elements, values)) if values else PLAIN
            return self.container(node, held | elements(held))
        if name == "sum":
            held = elements(PLAIN.union(*values)) if values else PLAIN
            return self.container(node, elements(held)).union(*values[1:])  # of nothing it is what it begins with
        return PLAIN

    def _by_name(self, node: ast.Call, name: str) -> Value:
        """Follow `getattr(self, "name", default)` and its kin; another module refuses names that are no literals."""
        text = node.args[1] if len(node.args) > 1 else None
        slot = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None
        receiver = bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == self.policy.receiver
        owner = PLAIN if receiver or not node.args else self.eval(node.args[0])
        others = [self.eval(one) for one in (*node.args[2:], *(one.value for one in node.keywords))]
        self.pass_to_unknown(others, node)
        self.may_raise()
        if slot is None or name in ("hasattr", "type"):
            return PLAIN
        if name == "getattr" and not receiver and slot in self.policy.mutators:
            self.change(owner, node)
            return PLAIN
        if name == "getattr":
            return (self.slot(slot) if receiver else self._foreign(node, owner)).union(*others)
        if receiver and slot != self.policy.marker:
            if name == "setattr":
                self.store(slot, PLAIN.union(*others) if others else PLAIN)
            self.write(node)
        return PLAIN

    def _foreign(self, node: ast.AST, owner: Value) -> Value:
        thing = self.container_at(node, elements(owner))
        thing.foreign = True
        thing.elements |= {thing}
        return frozenset((thing,))

    def _lazy(self, node: ast.Call, name: str, values: list[Value]) -> Value:
        """Return an iterator whose functions take effect when the iterator is used, not here."""
        if name == "map":
            held, effect, _ = self.follow_later(lambda: self._map_rows(node, values), self.state.variables)
            thing = self.container_at(node, held)
            thing.effect = effect
            return frozenset((thing,))
        effect = 0
        for value in values:
            for thing in value:
                effect |= thing.effect
        if name == "iter" and len(values) > 1:
            effect |= self._deferred_effect(values[0], [], node)
        if name == "filter" and values:
            effect |= self._deferred_effect(values[0], [PLAIN.union(*map(elements, values[1:]))], node)
        held = PLAIN.union(*map(elements, values)) if values else PLAIN
        if name in ("zip", "enumerate"):
            pair = self.container_at(node, held, part=1)
            pair.keyed = name == "enumerate"
            held = frozenset((pair,))
        made = self.container_at(node, held)
        made.effect = effect if effect & ~CLEAN else 0
        return frozenset((made,))

    def _map_rows(self, node: ast.AST, values: list[Value]) -> Value:
        rows = PLAIN.union(*map(elements, values[1:])) if values[1:] else PLAIN
        row = self.container_at(node, rows, part=2)
        held = self.use(values[0], [frozenset((row,)), rows], node) if values else PLAIN
        for one in values[1:]:
            self.iterate(one, node)
        return held

    def _deferred_effect(self, value: Value, given: list[Value], node: ast.AST) -> int:
        """Compute the effect that a later use of a value will have."""
        return self.follow_later(lambda: self.use(value, given, node), self.state.variables)[1]

    def follow_later(
        self, work: Callable[[], Value], variables: dict[str, Value]
    ) -> tuple[Value, int, dict[str, Value]]:
        """Follow what happens later, and leave the present state as it is: return its value, effect and variables."""
        before, sent, wrote = self.state, self.frame.sends, self.frame.wrote
        self.state, self.frame.sends = State(variables, CLEAN), False
        value = work()
        effect, later = self.state.bits | (SENDS if self.frame.sends else 0), self.state.variables
        self.state, self.frame.sends, self.frame.wrote = before, sent, wrote
        return value, 0 if effect == CLEAN else effect, later

    # -- modules

    def _call_member(self, node: ast.Call, module: str, member: str, values: list[Value]) -> Value:
        if (module, member) in CHANGERS and values:
            self.change(values[0], node, PLAIN.union(*values[1:]))
            return elements(values[0])
        if module == "itertools":
            return self._iterator(node, values)
        given = self.pass_to_unknown(values, node)
        self.may_raise()
        if (module, member) == ("functools", "partial"):
            return self._partial(node, values)
        everything = PLAIN.union(*values) if values else PLAIN
        held = elements(everything)
        if (module, member) == ("copy", "deepcopy") or module in _SCALAR:
            picks = module == "statistics" and member in _ONE_OF_THEM
            return held | self.container(node, held) if picks else self.fresh(node)
        if (module, member) == ("random", "choice"):
            return held
        if module == "collections":
            return self._collection(node, member, values, given)
        if module == "functools":
            return everything | held | given
        return self.fresh(node, held)

    def _collection(self, node: ast.Call, member: str, values: list[Value], given: Value) -> Value:
        """Return the contents of a collection: a Counter's numbers, a deque's items, a factory's values."""
        if member == "Counter":
            written = bool(node.args) and isinstance(node.args[0], ast.Dict)
            given = elements(values[0]) if written else PLAIN
            return self.container(node, given.union(*values[len(node.args) :]))
        held = PLAIN.union(*map(elements, values)) if values else PLAIN
        if member == "defaultdict":
            held |= given or frozenset((self.container_at(node, part=5),))
        return self.container(node, held)

    def _iterator(self, node: ast.Call, values: list[Value]) -> Value:
        everything = PLAIN.union(*values) if values else PLAIN
        held = elements(everything)
        effect = 0
        result: Value = PLAIN
        for thing in everything:
            effect |= thing.effect if thing.function is None else 0
            if thing.function is not None:
                effect |= self._deferred_effect(frozenset((thing,)), [held], node)
                result |= thing.function.result
        inner = self.fresh(node, held | result | elements(held), part=1)
        made = self.container_at(node, held | result | inner)
        made.effect = effect if effect & ~CLEAN else 0
        return frozenset((made,))

    def _partial(self, node: ast.Call, values: list[Value]) -> Value:
        made = self.container_at(node)
        if values:
            effect = self._deferred_effect(values[0], [PLAIN.union(*values[1:])], node)
            made.effect = effect | (CHANGES if any(thing.effect & CHANGES for thing in values[0]) else 0)
        return frozenset((made,)).union(*values)

    # -- what a variable holds

    def _call_value(self, node: ast.Call, called: Value, values: list[Value]) -> Value:
        self.may_raise()
        self.pass_to_unknown(values, node)
        given = PLAIN.union(*values) if values else PLAIN
        functions = [thing.function for thing in sorted(called, key=creation_order) if thing.function]
        result: Value = PLAIN
        for function in functions:
            result |= self.enter(function, values, node, spread=False)
        rest = frozenset(thing for thing in called if thing.function is None)
        if rest or not functions:
            result |= self.use(rest, values, node) | given | elements(given)
            result |= self.fresh(node)
        return result
