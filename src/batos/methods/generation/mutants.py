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
                yield partial(node.body.__setitem__, number, ast.Pass())
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield partial(setattr, node, "value", ast.Constant(None))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield partial(node.ops.__setitem__, 0, _COMPARED[type(node.ops[0])]())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        yield partial(setattr, node, "op", _COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield partial(setattr, node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        # Texts stay unchanged: a check cannot see the wording of a prompt.
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        yield partial(setattr, node, "value", other)


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
