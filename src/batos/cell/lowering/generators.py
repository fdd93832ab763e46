"""Local generators: run to their end when called, into a list whose iterator the caller gets."""

from __future__ import annotations

import ast

from batos.cell.lowering.lowered_names import OURS, refusal

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
