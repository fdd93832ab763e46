"""Expressions, node by node: the values that each may have and its effect on the paths."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from batos.guardian.covenant.abstract_values import (
    CHANGES,
    PLAIN,
    Function,
    State,
    Value,
    creation_order,
    elements,
    field,
    join,
)  # fmt: skip
from batos.guardian.covenant.calls import CHANGERS, Calls

#: Operators whose result may hold what their operands hold: lists, dicts and sets know them.
_JOINING: Final = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Expressions(Calls):
    """Expressions, node by node."""

    def eval(self, node: ast.expr) -> Value:
        """Return the values that an expression may have, and apply its effects."""
        kind = type(node)
        if kind is ast.Constant:
            return PLAIN
        self.steps += 1
        follow = _FOLLOW.get(kind)
        return self._visit_parts(node) if follow is None else follow(self, node)

    def _visit_parts(self, node: ast.AST) -> Value:
        """Follow the parts of a plain value, or of syntax that is refused elsewhere, so that its slots are listed."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return PLAIN

    def _name(self, node: ast.Name) -> Value:
        return self.state.variables.get(node.id) or self._global(node.id)

    def _global(self, name: str) -> Value:
        """Return an imported function as a value, with the effect of its call on an argument that it changes."""
        found = self.imports.get(name)
        return self._changer(found) if found is not None and found in CHANGERS else PLAIN

    def _changer(self, found: tuple[str, str]) -> Value:
        thing = self.container_at(found)
        thing.effect = CHANGES
        return frozenset((thing,))

    def _attribute(self, node: ast.Attribute) -> Value:
        base, name = node.value, node.attr
        if isinstance(base, ast.Name):
            if base.id == self.policy.receiver:
                return self.slot(name) if name != self.policy.marker else PLAIN
            found = self.imports.get(base.id)
            if found is not None:
                return self._changer((found[0], name)) if (found[0], name) in CHANGERS else PLAIN
            if base.id in self.policy.functions and base.id not in self.bound:
                return self._changer(("", name)) if name in self.policy.mutators else PLAIN
        owner = self.eval(base)
        if name in self.policy.mutators:
            return self._bound_mutator(node, owner)
        return self._foreign(node, owner) if owner else PLAIN

    def _bound_mutator(self, node: ast.Attribute, owner: Value) -> Value:
        """Return `self.items.append` as a value: a call of it changes `self.items`."""
        if not owner:
            return PLAIN
        for thing in owner:
            self.mutates |= thing.slots
        made = self.container_at(node)
        made.bound |= owner
        return frozenset((made,))

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.eval(node.value)
        if isinstance(node.slice, ast.Slice):
            for part in (node.slice.lower, node.slice.upper, node.slice.step):
                if part is not None:
                    self.eval(part)
            return self.container(node, elements(owner)) if owner else PLAIN
        self.eval(node.slice)
        return field(owner, node.slice.value) if isinstance(node.slice, ast.Constant) else elements(owner)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.eval(node.left), self.eval(node.right)
        if not (left or right) or not isinstance(node.op, _JOINING):
            return PLAIN
        return self.container(node, elements(left) | elements(right))

    def _either(self, node: ast.BoolOp) -> Value:
        result = self.eval(node.values[0])
        for one in node.values[1:]:
            before = self.state.copy()
            result |= self.eval(one)
            self.meet(before)
        return result

    def _conditional(self, node: ast.IfExp) -> Value:
        self.eval(node.test)
        before = self.state.copy()
        result = self.eval(node.body)
        ended, self.state = self.state, before
        result |= self.eval(node.orelse)
        self.meet(ended)
        return result

    def meet(self, other: State) -> None:
        """Join this path with another."""
        met = join(self.state, other)
        if met is not None:
            self.state = met

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.eval(node.value)
        self.bind(node.target, value, node)
        return value

    def bind(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Give a target a value. The subclass that follows statements defines it."""
        raise NotImplementedError

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        held: Value = PLAIN
        for one in node.elts:
            held |= self.iterate(self.eval(one.value), one) if isinstance(one, ast.Starred) else self.eval(one)
        return self.container(node, held)

    def _dictionary(self, node: ast.Dict) -> Value:
        made = self.container_at(node)
        made.fields = made.fields or {}
        for key, one in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.eval(key)
            value = self.eval(one)
            self.put(made, key, elements(value) if key is None else value)
        return frozenset((made,))

    def _compare(self, node: ast.Compare) -> Value:
        for one in (node.left, *node.comparators):
            value = self.eval(one)
            if value:
                self.iterate(value, node)
        return PLAIN

    def _await(self, node: ast.Await) -> Value:
        value = self.eval(node.value)
        for thing in sorted(value, key=creation_order):
            if thing.effect:
                self.apply(thing.effect, node, "what is awaited")
        self.may_raise()
        return elements(value)

    def _yield(self, node: ast.Yield) -> Value:
        value = self.eval(node.value) if node.value is not None else PLAIN
        if self.frame.function is not None:
            self.frame.function.yields |= value
        return self.fresh(node)

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        value = self.iterate(self.eval(node.value), node)
        if self.frame.function is not None:
            self.frame.function.yields |= value
        return self.fresh(node)

    def _starred_value(self, node: ast.Starred) -> Value:
        return self.iterate(self.eval(node.value), node)

    def _lambda(self, node: ast.Lambda) -> Value:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.eval(default)
        return self.local_function(node)

    def local_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        """Return a function within the method as a value. Its effect is known once its body was followed."""
        thing = self.container_at(node)
        if thing.function is None:
            thing.function = Function(node, generates=node in self.generators)
            self._defaults(thing.function)
        self.close(thing.function)
        return frozenset((thing,))

    def _defaults(self, function: Function) -> None:
        given = function.node.args
        positional = [one.arg for one in (*given.posonlyargs, *given.args)]
        pairs = list(zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True))
        pairs += [(one.arg, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
        for name, default in pairs:
            function.given[name] = self.eval(default)

    def close(self, function: Function) -> bool:
        """Add the surrounding variables to a function's closure; return True if something was added."""
        more = False
        closure = function.closure
        for name, value in self.state.variables.items():
            known = closure.get(name, PLAIN)
            if not value <= known:
                closure[name] = known | value
                more = True
        return more

    # -- comprehensions

    def _comprehension(self, node: Comprehension) -> Value:
        names = {one.id for each in node.generators for one in ast.walk(each.target) if isinstance(one, ast.Name)}
        outer = {name: self.state.variables.get(name, PLAIN) for name in names}
        held: Value = PLAIN
        for _ in range(4):
            before, changes = self.state.copy(), self.changes
            held |= self._round(node)
            self.meet(before)
            if changes == self.changes and not self.state.bits & ~before.bits:
                break
        for name, value in outer.items():
            self.assign(name, value)
        return self.container(node, held)

    def _round(self, node: Comprehension) -> Value:
        """Follow one element of a comprehension, as if every condition held."""
        self.step()
        for each in node.generators:
            value = self.eval(each.iter)
            if each.is_async:
                for thing in sorted(value, key=creation_order):
                    self.apply(thing.effect, each.iter, "what is iterated")
                value = elements(value)
            self.may_raise()
            self.bind(each.target, self.iterate(value, each.iter), each.target)
            for condition in each.ifs:
                self.eval(condition)
        if isinstance(node, ast.DictComp):
            self.eval(node.key)
            return self.eval(node.value)
        return self.eval(node.elt)

    def _generator(self, node: ast.GeneratorExp) -> Value:
        """Return a generator, whose effects happen when it is iterated; only its first iterable is used here."""
        variables = dict(self.state.variables)
        value, effect, later = self.follow_later(lambda: self._comprehension(node), variables)
        for name, known in later.items():
            self.assign(name, known | self.state.variables.get(name, PLAIN))
        thing = self.container_at(node, elements(value), part=3)
        thing.effect = effect
        return frozenset((thing,))

    def assign(self, name: str, value: Value) -> None:
        """Give a variable a value. Plain values are not kept."""
        if value:
            self.state.variables[name] = value
        else:
            self.state.variables.pop(name, None)


#: Each is called with nodes of its own type.
_FOLLOW: Final[dict[type[ast.AST], Callable[[Any, Any], Value]]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions.call,
    ast.Subscript: Expressions._subscript,
    ast.BinOp: Expressions._binary,
    ast.BoolOp: Expressions._either,
    ast.IfExp: Expressions._conditional,
    ast.NamedExpr: Expressions._walrus,
    ast.List: Expressions._display,
    ast.Tuple: Expressions._display,
    ast.Set: Expressions._display,
    ast.Dict: Expressions._dictionary,
    ast.Compare: Expressions._compare,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.Starred: Expressions._starred_value,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._generator,
}
