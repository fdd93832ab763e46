"""Rewrites a marker that is not the last statement, or that depends on a flag, so that it can be judged."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from batos.guardian.policy import GuardianPolicy
from batos.guardian.tidying import bound_names
from batos.guardian.tidying.bound_names import Def

#: Builtins that change nothing and send nothing, whatever they are given but a lazy iterator.
_STILL: Final = frozenset({
    "abs", "bool", "dict", "divmod", "float", "int", "len", "list", "max", "min", "print", "range", "repr", "round",
    "set", "sorted", "str", "sum", "tuple",
})  # fmt: skip
#: A block of statements, and the statements that it is given.
Change: TypeAlias = tuple[list[ast.stmt], list[ast.stmt]]


def is_marker(node: ast.AST, policy: GuardianPolicy) -> bool:
    """Test if a statement is the marker in its one form."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    return (
        isinstance(target, ast.Attribute)
        and target.attr == policy.marker
        and isinstance(target.value, ast.Name)
        and target.value.id == policy.receiver
        and isinstance(value, ast.Constant)
        and value.value is True
    )


@contextmanager
def _swap(changes: Iterable[Change]) -> Iterator[None]:
    """Give blocks other statements, one after the other, and their own again at the end."""
    before: list[Change] = []
    try:
        for block, new in changes:
            before.append((block, list(block)))
            block[:] = new
        yield
    finally:
        for block, old in reversed(before):
            block[:] = old


def sink_markers(method: Def, policy: GuardianPolicy) -> AbstractContextManager[None]:
    """Move each marker of the method behind what follows in its block and only speaks or computes, for a while."""
    return _swap(_sink_each(method, policy))


def _sink_each(method: Def, policy: GuardianPolicy) -> Iterator[Change]:
    for block in list(bound_names.blocks(method)):
        for index, node in enumerate(block):
            rest = block[index + 1 :]
            if is_marker(node, policy) and rest and all(_is_still(each, policy) for each in rest):
                yield block, [*block[:index], *_mark_ends(rest, node)]
                break


def _mark_ends(rest: list[ast.stmt], marker: ast.stmt) -> list[ast.stmt]:
    """Put the marker before each `return` of the statements and at their end."""
    found: list[ast.stmt] = []
    for node in rest:
        if isinstance(node, ast.Return):
            return [*found, marker, node]
        if isinstance(node, ast.If):
            node = ast.copy_location(ast.If(node.test, _branch(node.body, marker), _branch(node.orelse, marker)), node)
        found.append(node)
    return [*found, marker]


def _branch(block: list[ast.stmt], marker: ast.stmt) -> list[ast.stmt]:
    """Put the marker before each `return` of a branch; where it goes on, the marker stands after it anyway."""
    return _mark_ends(block, marker) if any(isinstance(each, ast.Return | ast.If) for each in block) else block


def _is_still(node: ast.stmt, policy: GuardianPolicy) -> bool:
    """Test if a statement changes nothing but local names, and sends nothing but a line of the log."""
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.If):
        return _quiet(node.test, policy) and all(_is_still(each, policy) for each in (*node.body, *node.orelse))
    if isinstance(node, ast.Expr):
        return _quiet(node.value, policy)
    if isinstance(node, ast.Return):
        return node.value is None or _quiet(node.value, policy)
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Name) for each in node.targets) and _quiet(node.value, policy)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.value is not None and _quiet(node.value, policy)
    added = isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant | ast.JoinedStr)
    return (
        added and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and _quiet(node.value, policy)
    )


def _quiet(node: ast.expr, policy: GuardianPolicy) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda | ast.GeneratorExp):
            return False
        if isinstance(each, ast.Call) and not _quiet_call(each, policy):
            return False
    return True


def _quiet_call(node: ast.Call, policy: GuardianPolicy) -> bool:
    called = node.func
    if isinstance(called, ast.Name):
        return called.id in _STILL and not any(each.arg == "key" for each in node.keywords)
    if not isinstance(called, ast.Attribute):
        return False
    if isinstance(called.value, ast.Name) and called.value.id == policy.receiver:
        return called.attr == "log_"
    return called.attr in policy.plain_methods - policy.mutators


class Flag:
    """`changed = False`, `changed = True` where something is changed, and at the end `if changed:` the marker."""

    def __init__(self, method: Def, policy: GuardianPolicy) -> None:
        self._method = method
        self._policy = policy
        self.name = next((node.test.id for _, node in self._guards("") if isinstance(node.test, ast.Name)), "")
        self.found = bool(self.name) and self._is_plain()

    def _guards(self, name: str) -> list[tuple[list[ast.stmt], ast.If]]:
        """Find every `if flag: marker`, also with a `return` behind the marker, each with its block."""
        return [
            (block, node)
            for block in bound_names.blocks(self._method)
            for node in block
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and name in ("", node.test.id)
            and not node.orelse
            and is_marker(node.body[0], self._policy)
            and (len(node.body) == 1 or (len(node.body) == 2 and isinstance(node.body[1], ast.Return)))
        ]

    def _is_plain(self) -> bool:
        """Test if the flag starts once, at the top of the method, and is then only set, and never elsewhere."""
        begun = [node for node in self._method.body if self._sets(node) is False]
        stores = [
            node for node in ast.walk(self._method) if isinstance(node, ast.Assign) and self._sets(node) is not None
        ]
        said = [
            node
            for node in ast.walk(self._method)
            if isinstance(node, ast.Name) and node.id == self.name and not isinstance(node.ctx, ast.Load)
        ]
        lowered = [node for node in stores if self._sets(node) is False]
        outward = any(
            isinstance(node, ast.Nonlocal | ast.Global) and self.name in node.names for node in ast.walk(self._method)
        )
        return (
            len(begun) == len(lowered) == 1 and len(stores) == len(said) and not outward and begun[0] is self._first()
        )

    def _first(self) -> ast.stmt | None:
        """Return the first statement of the method that names the flag."""
        return next((node for node in self._method.body if self.name in bound_names.all_names(node)), None)

    def _sets(self, node: ast.AST) -> bool | None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Constant):
            return None
        target, value = node.targets[0], node.value.value
        return value if isinstance(target, ast.Name) and target.id == self.name and isinstance(value, bool) else None

    def as_marker(self) -> AbstractContextManager[None]:
        """Put the marker wherever the flag is set, and nothing where it is asked for, for a while."""
        return _swap(self._with_marks())

    def _with_marks(self) -> Iterator[Change]:
        marker = self._guards(self.name)[0][1].body[0]
        guards = {id(node) for _, node in self._guards(self.name)}
        for block in list(bound_names.blocks(self._method)):
            new = [_without_marker(node) if isinstance(node, ast.If) and id(node) in guards else node for node in block]
            for index in range(len(new) - 1, -1, -1):
                if self._sets(new[index]) is True:
                    new.insert(_behind(new, index), marker)
            if new != block:
                yield block, new

    def mark_at_guards(self) -> AbstractContextManager[None]:
        """Put the marker where the flag is asked for, whatever its value, for a while."""
        guards = self._guards(self.name)
        return _swap(
            (block, [_marked_always(node) if each is node else each for each in block]) for block, node in guards
        )


def _without_marker(node: ast.If) -> ast.stmt:
    """Remove the marker from `if flag: marker`."""
    rest = node.body[1:] or [ast.copy_location(ast.Pass(), node)]
    return ast.copy_location(ast.If(node.test, rest, []), node)


def _marked_always(node: ast.If) -> ast.stmt:
    """Make `if flag: marker` come by the marker whatever the flag says."""
    marker, *rest = node.body
    return ast.copy_location(ast.If(node.test, node.body, [marker]), node) if rest else marker


def _behind(block: list[ast.stmt], index: int) -> int:
    """Return the end of the row of statements that are always done together with the one at this index."""
    end = index + 1
    while end < len(block) and isinstance(
        block[end], ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Delete
    ):
        end += 1
    return end
