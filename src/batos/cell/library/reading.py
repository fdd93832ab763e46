"""The modules that the cell brings: the names of each, and its text with every name prefixed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from batos.cell.lowering.statement_lowering import OURS
from batos.guardian.parsing import parse

_HERE: Final = Path(__file__).parent
_MODULES: Final = ("statistics", "textwrap", "string", "heapq")


@cache
def _tree(module: str) -> ast.Module:
    return parse((_HERE / f"{module}.py").read_text(encoding="utf-8"))


def _public(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for name in _top_level_names(tree) if not name.startswith("_"))


def _top_level_names(tree: ast.Module) -> list[str]:
    """List the names that a text binds at its top level, in order."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += (target.id for target in node.targets if isinstance(target, ast.Name))
    return found


@cache
def served_names() -> Mapping[str, frozenset[str]]:
    """Return the names that each module has in the cell; parsing the modules takes a process 60 ms, the first time."""
    return {module: _public(_tree(module)) for module in _MODULES}


@cache
def library(module: str) -> str:
    """Return the text of a module as part of a program, in which `statistics.mean` is named `<ours>statistics_mean`."""
    tree = copy.deepcopy(_tree(module))
    names = {name: f"{OURS}{module}_{name.lstrip('_')}" for name in _top_level_names(tree)}
    tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom) and not _is_text(node)]
    _LibraryNames(names).visit(tree)
    text = ast.unparse(ast.fix_missing_locations(tree))
    own = OURS + module
    members = "".join(f"{own}.{name} = {names[name]}\n" for name in sorted(served_names()[module]))
    return f"{text}\nclass {own}_Module:\n    pass\n{own} = {own}_Module()\n{members}"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _LibraryNames(ast.NodeTransformer):
    """Gives the module's names our prefix, and drops docstrings, which are only for us."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        node.body = [each for each in node.body if not _is_text(each)]
        return self.generic_visit(node)
