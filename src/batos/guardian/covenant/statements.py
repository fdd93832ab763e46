"""Statements, path by path: branches, loops, `try`, and where each path ends."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from batos.guardian.covenant.abstract_values import (
    CLEAN,
    DIRTY,
    PLAIN,
    STALE,
    State,
    Value,
    elements,
    reachable,
)  # fmt: skip
from batos.guardian.covenant.calls import is_computed
from batos.guardian.covenant.effects import Frame
from batos.guardian.covenant.paths import Paths

_MARK_LAST: Final = "let `self._p_changed = True` be the last statement of this path"
#: Operators that change a list or a dict in place.
_IN_PLACE: Final = (ast.Add, ast.Mult, ast.BitOr)
#: Operands that can be joined in place to nothing but a container.
_CONTAINERS: Final = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
_NUMBERS: Final = frozenset({"abs", "float", "int", "len", "round", "ord", "str", "repr", "chr", "format"})


def is_marker(node: ast.AST, receiver: str, marker: str) -> bool:
    """Test if a statement is the marker in its only form: `self._p_changed = True`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    return (
        isinstance(target, ast.Attribute)
        and target.attr == marker
        and isinstance(target.value, ast.Name)
        and target.value.id == receiver
        and isinstance(value, ast.Constant)
        and value.value is True
    )


def _is_still(node: ast.stmt) -> bool:
    """Test if a statement cannot raise, so that no `except` is entered from it."""
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Break | ast.Continue)


class StatementFlow(Paths):
    """Statements; each says whether what follows it can be reached."""

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements one after the other; whether their end is reached."""
        marker, receiver = self.policy.marker, self.policy.receiver
        for node in body:
            self.step()
            if is_marker(node, receiver, marker):
                self.mark()
                continue
            if not _is_still(node):
                self.may_raise()
            follow = _FOLLOW.get(type(node))
            if follow is None:
                self._other(node)
            elif not follow(self, node):
                return False
        return True

    def _other(self, node: ast.stmt) -> None:
        """Follow `pass`, imports, and the parts of syntax that is refused elsewhere."""
        if isinstance(node, ast.Pass | ast.Nonlocal | ast.Global):
            return
        self.pass_by()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.withitem):
                value = self.eval(child.context_expr)
                if child.optional_vars is not None:
                    self.bind(child.optional_vars, value, node)
            elif isinstance(child, ast.expr):
                self.eval(child)
        before = self.state.copy()
        self.run(getattr(node, "body", []))
        self.meet(before)

    def _expression(self, node: ast.Expr) -> bool:
        if isinstance(node.value, ast.Constant):
            return True
        self.pass_by()
        self.last = node.value
        self.eval(node.value)
        return True

    def _assign(self, node: ast.Assign) -> bool:
        self.pass_by()
        value, target = node.value, node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            parts = (*target.elts, *value.elts)
            if len(target.elts) == len(value.elts) and not any(isinstance(one, ast.Starred) for one in parts):
                values = [self.eval(one) for one in value.elts]
                for each, given in zip(target.elts, values, strict=True):
                    self._bound_next(each, given, node)
                return True
        self.last = value
        given = self.eval(value)
        for each in node.targets:
            self._bound_next(each, given, node)
        return True

    def _bound_next(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Bind one of several targets: where it fails, those before it have their values."""
        if not isinstance(target, ast.Name):
            self.may_raise()
        self.bind(target, value, node)

    def _annotated_assignment(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.pass_by()
            self.last = node.value
            self.bind(node.target, self.eval(node.value), node)
        return True

    def bind(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Give a target a value: a variable, a slot, an element, or several of them."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id == self.policy.receiver:
                if target.attr != self.policy.marker:
                    self.store(target.attr, value)
                    self.write(node)
            else:
                self.eval(target.value)
        elif isinstance(target, ast.Subscript):
            owner = self.eval(target.value)
            self.eval(target.slice)
            sliced = isinstance(target.slice, ast.Slice)
            self.change(owner, node, elements(value) if sliced else value, target.slice)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, self.container(target, value), node)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, node)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.AST) -> None:
        parts = self.iterate(value, node)
        keyed = bool(value) and all(thing.keyed for thing in value)
        for index, each in enumerate(target.elts):
            self._bound_next(each, PLAIN if keyed and index == 0 else parts, node)

    def _augmented_assignment(self, node: ast.AugAssign) -> bool:
        self.pass_by()
        given = self.eval(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            known = self.state.variables.get(target.id, PLAIN)
            if known and isinstance(node.op, _IN_PLACE) and not self._scalar_operand(node):
                self.change(known, node, elements(given))
                self._joined_midway(node)
            elif known and not any(thing.slots for thing in known):
                self.assign(target.id, known | given)
            else:
                self.assign(target.id, PLAIN)
            return True
        if isinstance(target, ast.Attribute):
            owner = self.eval(target.value) if not isinstance(target.value, ast.Name) else PLAIN
            receiver = isinstance(target.value, ast.Name) and target.value.id == self.policy.receiver
            if receiver and target.attr != self.policy.marker:
                self.mutates.add(target.attr)
                self.store(target.attr, elements(given))
                self.write(node)
                self._joined_midway(node)
            elif not receiver:
                self.change(owner, node)
            return True
        if isinstance(node.op, _IN_PLACE) and isinstance(node.value, _CONTAINERS):
            self.change(self.eval(target), node, elements(given))  # `known["rows"] += [row]`: the list stays the same
        self.bind(target, given, node)
        return True

    def _joined_midway(self, node: ast.AugAssign) -> None:
        if is_computed(node.value):
            self.may_raise()

    def _scalar_operand(self, node: ast.AugAssign) -> bool:
        """Test if `x += ...` certainly adds a number or a text, so that no list can be changed by it."""
        value = node.value
        if isinstance(node.op, ast.Mult):
            return isinstance(value, ast.Constant) and isinstance(value.value, float)
        while isinstance(value, ast.UnaryOp):
            value = value.operand
        if isinstance(value, ast.Constant | ast.JoinedStr | ast.Compare):
            return True
        if isinstance(value, ast.BinOp):
            if isinstance(value.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
                return True
            literal = any(isinstance(one, ast.Constant | ast.JoinedStr) for one in (value.left, value.right))
            return literal and isinstance(value.op, ast.Add)
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id in _NUMBERS
            and value.func.id not in self.bound
        )

    def _delete(self, node: ast.Delete) -> bool:
        self.pass_by()
        for target in node.targets:
            self.may_raise()
            if isinstance(target, ast.Name):
                self.assign(target.id, PLAIN)
            elif isinstance(target, ast.Subscript):
                owner = self.eval(target.value)
                self.eval(target.slice)
                self.change(owner, node)
            else:
                self.bind(target, PLAIN, node)
        return True

    def _return(self, node: ast.Return) -> bool:
        value: Value = PLAIN
        if node.value is not None:
            self.last = node.value
            value = self.eval(node.value)
        if self.frame.function is not None:
            self.frame.function.result |= value
        self.frame.returns.append((self.state.copy(), node))
        return False

    def _raise(self, node: ast.Raise) -> bool:
        for one in (node.exc, node.cause):
            if one is not None:
                held = self.eval(one)
                if isinstance(one, ast.Call):
                    held = held.union(*(self.eval(each) for each in one.args))
                self.raised |= reachable(held)
        self.may_raise()
        return False

    def _assert(self, node: ast.Assert) -> bool:
        self.pass_by()
        self.eval(node.test)
        if node.msg is not None:
            self.eval(node.msg)
        self.may_raise()
        return True

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        self.pass_by()
        value = self.local_function(node)
        self.assign(node.name, value)
        for thing in value:
            if thing.function is not None:
                self.close(thing.function)
                if not thing.function.busy:
                    self.follow(thing.function)
        return True

    def method(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Follow the method itself and judge where each of its paths ends."""
        given = node.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
        variables = {name: self.fresh((node, name)) for name in names if name != self.policy.receiver}
        self.state, self.frame = State(variables, CLEAN), Frame(None)
        if self.run(node.body):
            self.frame.returns.append((self.state, node.body[-1]))
        for state, statement in self.frame.returns:
            self._judge(state, statement)

    def _judge(self, state: State, node: ast.stmt) -> None:
        if state.bits & DIRTY:
            why = f"a path that changed the receiver on line {state.line} ends here without the marker"
            self.fault(node, "covenant", why, _MARK_LAST)
        elif state.bits & STALE:
            why = "a path that changed the receiver ends here, and its last statement is not the marker"
            self.fault(node, "covenant-last", why, f"{_MARK_LAST}; only a `return` that sends nothing may follow it")


#: Each is called with nodes of its own type.
_FOLLOW: Final[dict[type[ast.AST], Callable[[Any, Any], bool]]] = {
    ast.Expr: StatementFlow._expression,
    ast.Assign: StatementFlow._assign,
    ast.AnnAssign: StatementFlow._annotated_assignment,
    ast.AugAssign: StatementFlow._augmented_assignment,
    ast.Delete: StatementFlow._delete,
    ast.Return: StatementFlow._return,
    ast.Raise: StatementFlow._raise,
    ast.Assert: StatementFlow._assert,
    ast.FunctionDef: StatementFlow._function,
    ast.AsyncFunctionDef: StatementFlow._function,
    ast.If: StatementFlow._if,
    ast.Match: StatementFlow._match,
    ast.While: StatementFlow._while,
    ast.For: StatementFlow._for,
    ast.AsyncFor: StatementFlow._for,
    ast.Break: StatementFlow._break,
    ast.Continue: StatementFlow._continue,
    ast.Try: StatementFlow._try,
}
