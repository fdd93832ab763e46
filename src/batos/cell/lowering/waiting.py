"""Awaiting and local generators: messages that may wait at the same time, and generators that run to their end."""

from __future__ import annotations

import ast
from typing import Final

from batos.cell.lowering.statement_lowering import OURS, Names, refusal

LATER: Final = OURS + "later_"
_TRANSPARENT: Final = frozenset({"create_task", "ensure_future", "wait_for", "shield"})


def lower_waiting(tree: ast.Module, names: Names) -> ast.Module:
    """Rewrite messages whose answer is awaited, so that others can begin before the answer is there.

    Awaited is an expression after `await`, one in the arguments of `gather`, and one that is assigned or appended to a
    name that is awaited or gathered somewhere. Any other message blocks where it stands.
    """
    _find_awaited(tree, names)
    marker = _MessageRenaming(names)
    for node in ast.walk(tree):
        marker.look_at(node)
    return _AwaitLowering(names).visit(tree)  # type: ignore[no-any-return]  # a Module comes back as a Module


def _find_awaited(tree: ast.Module, names: Names) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Await):
            names.awaited.update(_names_in(node.value))
            if isinstance(node.value, ast.Call) and names.member(node.value.func)[0] == "asyncio":
                names.awaited.update(each for argument in node.value.args for each in _names_in(argument))
        elif isinstance(node, ast.Call) and names.member(node.func) == ("asyncio", "gather"):
            names.awaited.update(each for argument in node.args for each in _names_in(argument))


def _names_in(node: ast.expr) -> set[str]:
    """Return the names from which an awaited expression takes its awaitables."""
    if isinstance(node, ast.Starred | ast.Attribute | ast.Subscript):
        return _names_in(node.value)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return {name for each in node.generators for name in _names_in(each.iter)} | _names_in(node.elt)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _names_in(node.func.value)  # tasks.values()
    return {node.id} if isinstance(node, ast.Name) else set()


class _MessageRenaming:
    """Renames messages in awaited positions."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def look_at(self, node: ast.AST) -> None:
        """Rename what a node awaits, directly or by a name."""
        if isinstance(node, ast.Await):
            self.mark(node.value)
        elif isinstance(node, ast.Call) and self._names.member(node.func)[0] == "asyncio":
            for argument in node.args:
                self.mark(argument)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_names_in(target) & self._names.awaited for target in targets):
                self.mark(node.value)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add")
        ):
            for argument in node.args if _names_in(node.func.value) & self._names.awaited else ():
                self.mark(argument)

    def mark(self, node: ast.expr) -> None:
        """Rename the messages that this expression gives unwaited."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self._rename(node.func)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._mark_spread(node.func.id, node.args)
        else:
            for each in _yielded_values(node):
                self.mark(each)

    def _mark_spread(self, name: str, args: list[ast.expr]) -> None:
        if name == "map" and args and isinstance(args[0], ast.Attribute):
            self._rename(args[0])
        elif name in ("list", "tuple") and args:
            self.mark(args[0])

    def _rename(self, attribute: ast.Attribute) -> None:
        private = attribute.attr in self._names.own or attribute.attr.startswith(LATER)
        if not private and not self._names.is_module(attribute.value) and attribute.attr not in _OF_CONTAINERS:
            attribute.attr = LATER + attribute.attr


def _yielded_values(node: ast.expr) -> list[ast.expr]:
    """List the expressions whose values a display, a comprehension or a conditional expression yields."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return [node.elt]
    if isinstance(node, ast.Starred | ast.DictComp):
        return [node.value]
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


#: Methods of containers of awaitables: `tasks.values()` in a gather is no message.
_OF_CONTAINERS: Final = frozenset({"values", "items", "keys", "pop", "get", "copy"})


class _AwaitLowering(ast.NodeTransformer):
    """`async for`, asynchronous comprehensions, `await` of a name, and what asyncio is used for."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        loop = ast.For(target=node.target, iter=_await_if_awaitable(node.iter), body=node.body, orelse=node.orelse)
        return ast.fix_missing_locations(ast.copy_location(loop, node))

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if node.is_async:
            node.iter, node.is_async = _await_if_awaitable(node.iter), 0
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Call | ast.Await):
            return node.value if isinstance(node.value, ast.Await) else node
        return _await_if_awaitable(node.value)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        module, name = self._names.member(node.func)
        if module != "asyncio" or not node.args:
            return node
        if name == "gather":
            node.func = ast.copy_location(ast.Name(id=OURS + "gather", ctx=ast.Load()), node.func)
        elif name in _TRANSPARENT:
            call = ast.Call(func=ast.Name(id=OURS + "waited", ctx=ast.Load()), args=node.args[:1], keywords=[])
            return ast.fix_missing_locations(ast.copy_location(call, node))
        return node


def _await_if_awaitable(value: ast.expr) -> ast.Await:
    """Build an expression that awaits an awaitable and passes any other value on."""
    call = ast.Call(func=ast.Name(id=OURS + "waited", ctx=ast.Load()), args=[value], keywords=[])
    return ast.fix_missing_locations(ast.copy_location(ast.Await(call), value))


_OUT = OURS + "out"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def lower_generators(tree: ast.Module) -> ast.Module:
    """Rewrite every function that yields, so that a call runs it to its end and collects the values in a list.

    An endless generator stops at the cell's bound, and reading beyond that bound raises (prelude, `yield`).

    Raises: MethodFailed: the value of a `yield` expression is used, and nothing can be sent into a list.
    """
    for node in ast.walk(tree):
        if isinstance(node, Function) and _yields(node):
            collector = _Collector()
            body = [each for statement in node.body for each in collector.lower(statement)]
            start = ast.Assign(targets=[_name(_OUT, ast.Store())], value=ast.List(elts=[], ctx=ast.Load()))
            node.body = [start, *body, _finish()]
    return tree


def _yields(function: Function) -> bool:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(node)
    return False


class _Collector(ast.NodeTransformer):
    """Rewrites the body of one generator; functions within it have been or will be seen on their own."""

    def lower(self, statement: ast.stmt) -> list[ast.stmt]:
        found = self.visit(statement)
        return found if isinstance(found, list) else [found]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Yield):
            value = node.value.value or ast.Constant(None)
            return _copy_place(_keep(self.visit(value)), node)
        if isinstance(node.value, ast.YieldFrom):
            each = OURS + "each"
            loop = ast.For(
                target=_name(each, ast.Store()),
                iter=self.visit(node.value.value),
                body=[_keep(_name(each, ast.Load()))],
                orelse=[],
            )
            return _copy_place(loop, node)
        return self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        raise refusal(node, "a `yield` whose value is used: a local generator is a list that is read once")

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        raise refusal(node, "a `yield from` whose value is used: a local generator is a list that is read once")

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return _copy_place(_finish(), node)


def _keep(value: ast.expr) -> ast.stmt:
    """Build the statement that collects a value, and ends the generator when the list is full."""
    full = ast.Call(func=_name(OURS + "yield", ast.Load()), args=[_name(_OUT, ast.Load()), value], keywords=[])
    return ast.If(test=full, body=[_finish()], orelse=[])


def _finish() -> ast.Return:
    return ast.Return(ast.Call(func=_name(OURS + "yielded", ast.Load()), args=[_name(_OUT, ast.Load())], keywords=[]))


def _name(name: str, context: ast.expr_context) -> ast.Name:
    return ast.Name(id=name, ctx=context)


def _copy_place(new: ast.stmt, old: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(new, old))
