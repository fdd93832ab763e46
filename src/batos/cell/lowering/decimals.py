"""Comparison, order and format where `decimal` is imported: the interpreter asks no object for its own."""

from __future__ import annotations

import ast
from typing import Final

from batos.cell.lowering.lowered_names import OURS, Names

_OURS: Final = OURS + "decimal_"
_ORDERS: Final[dict[type[ast.cmpop], str]] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_BUILTINS: Final = {"sorted": "sort", "min": "least", "max": "greatest", "format": "format"}


def lower_decimals(tree: ast.Module, names: Names) -> ast.Module:
    """Change the tree so that comparisons, formats, `sorted`, `min` and `max` handle Decimals too."""
    taken = {module for module, _ in names.imported.values()} | set(names.modules.values())
    if "decimal" not in taken:
        return tree
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    _DecimalLowering({name for name in _BUILTINS if name not in bound}).visit(tree)
    return ast.fix_missing_locations(tree)


class _DecimalLowering(ast.NodeTransformer):
    def __init__(self, builtins: set[str]) -> None:
        self._builtins = builtins

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not any(type(each) in _ORDERS for each in node.ops):
            return node
        first, parts = node.left, []
        for index, (op, other) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = index + 1 == len(node.ops)
            held = OURS + f"held{index}"
            kept = other if last else ast.NamedExpr(ast.Name(held, ast.Store()), other)
            parts.append(_comparison(first, op, kept))
            first = ast.Name(held, ast.Load())
        found = parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)
        return ast.copy_location(found, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        if node.format_spec is None or node.conversion != -1:
            return node
        called = ast.Name(_OURS + "format", ast.Load())
        return ast.copy_location(
            ast.FormattedValue(ast.Call(called, [node.value, node.format_spec], []), -1, None), node
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self._builtins and (name != "format" or len(node.args) == 2):
            node.func = ast.copy_location(ast.Name(_OURS + _BUILTINS[name], ast.Load()), node.func)
        return node


def _comparison(one: ast.expr, op: ast.cmpop, other: ast.expr) -> ast.expr:
    """Write `one < other` as a call of ours; the left is computed first, as in Python."""
    if type(op) not in _ORDERS:
        return ast.Compare(one, [op], [other])
    return ast.Call(ast.Name(_OURS + "compare", ast.Load()), [one, ast.Constant(_ORDERS[type(op)]), other], [])
