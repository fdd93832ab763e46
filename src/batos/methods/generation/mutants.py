"""Mutants: small broken variants of a method, always the same ones, which good checks detect."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Final, TypeAlias

from batos.guardian.parsing import parse

#: The most mutants of one method.
MOST: Final = 12

#: Changes the node that it was made for in place.
Change: TypeAlias = Callable[[], None]

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}


def mutants(source: str) -> list[str]:
    """Return at most MOST sources that differ from the given one in one place each, spread over the method.

    No mutant equals another or the original. The marker `_p_changed` is never changed: the guardian itself refuses a
    method without it.

    Raises: SyntaxError, RecursionError: the source cannot be parsed.
    """
    tree = parse(source)
    nodes = list(ast.walk(tree))
    marked = {part for node in nodes if isinstance(node, ast.Assign) and _is_marker(node) for part in ast.walk(node)}
    places = [
        (index, number)
        for index, node in enumerate(nodes)
        if node not in marked
        for number, _ in enumerate(_changes(node))
    ]
    original = ast.unparse(tree)
    found: list[str] = []
    for index, number in _spread(places):
        copy = deepcopy(tree)
        change = list(_changes(list(ast.walk(copy))[index]))[number]
        change()
        text = ast.unparse(ast.fix_missing_locations(copy))
        if text != original and text not in found:
            found.append(text)
    return found


def _spread(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return MOST of the places at even distances, so that the end of a long method is changed too."""
    if len(places) <= MOST:
        return places
    return [places[number * len(places) // MOST] for number in range(MOST)]


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes that a node allows."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for number, statement in enumerate(node.body):
            if _matters(statement):
                yield partial(_leave_out, node, number)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield partial(_return_none, node)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield partial(_swap_comparison, node)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        yield partial(_swap_operator, node)
    elif isinstance(node, ast.BoolOp):
        yield partial(_swap_and_or, node)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield partial(_negate_condition, node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        # Texts stay unchanged: a check cannot see the wording of a prompt.
        yield partial(_change_constant, node)


def _matters(statement: ast.stmt) -> bool:
    """Test if the method changes when the statement is left out.

    A docstring and the marker do not matter, and a statement without which the source does not parse is kept.
    """
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assign | ast.AugAssign | ast.If | ast.For | ast.While) and not _is_marker(
        statement
    )


def _is_marker(statement: ast.stmt) -> bool:
    """Test if the statement assigns `_p_changed`."""
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Attribute) and target.attr == "_p_changed" for target in statement.targets
    )


def _is_none(value: ast.expr) -> bool:
    """Test if the expression is the constant None."""
    return isinstance(value, ast.Constant) and value.value is None


def _leave_out(node: ast.FunctionDef | ast.AsyncFunctionDef, number: int) -> None:
    """Replace a statement of the body with `pass`."""
    node.body[number] = ast.Pass()


def _return_none(node: ast.Return) -> None:
    """Make a return statement return None."""
    node.value = ast.Constant(None)


def _swap_comparison(node: ast.Compare) -> None:
    """Replace the first comparison operator with its opposite."""
    node.ops[0] = _COMPARED[type(node.ops[0])]()


def _swap_operator(node: ast.BinOp | ast.AugAssign) -> None:
    """Replace an arithmetic operator."""
    node.op = _COMPUTED[type(node.op)]()


def _swap_and_or(node: ast.BoolOp) -> None:
    """Replace `and` with `or`, and the reverse."""
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _negate_condition(node: ast.If | ast.IfExp | ast.While) -> None:
    """Replace a condition with its negation."""
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _change_constant(node: ast.Constant) -> None:
    """Replace a truth value with its opposite, and a number with the next."""
    value = node.value
    if isinstance(value, bool):
        node.value = not value
    elif isinstance(value, int | float):
        node.value = value + 1
