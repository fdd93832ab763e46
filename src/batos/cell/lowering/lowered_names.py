"""Names in a source: those that no method may use, and the objects that the others refer to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from batos.guardian.policy import SHIPPED
from batos.protocol.errors import MethodFailed

#: Every name of ours inside the interpreter begins so; a method may not say one.
OURS: Final = "_cell_"
MARKER: Final = "_p_changed"
#: Builtins that run text, or reach names by computed text: a method has no good use for them.
_FORBIDDEN: Final = frozenset(
    "eval exec compile globals locals vars dir open input breakpoint exit quit memoryview help".split()
)
#: Where a name that begins with two underscores has no business: all but methods of a class, and `__future__`.
_NAMING: Final = (ast.Name, ast.Attribute, ast.alias, ast.arg, ast.keyword, ast.pattern, ast.ExceptHandler)
#: The dialect's modules, and those that the interpreter knows beside them which reach nothing of the machine.
MODULES: Final = frozenset({*SHIPPED.modules, "dataclasses", "time"})
_FUNCTION: Final = ast.FunctionDef | ast.AsyncFunctionDef
_SLOT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_PROTECTED: Final = re.compile(r"guardian|^parents?$|doesnotunderstand")
_KERNEL: Final = re.compile(
    r"^(un)?(install|compile|redefine|retire|approve|grant|exec|eval|become|reparent|setparent|addparent)"
    r"(a|the|new|own)?(method|code|source|facet|protocol|intent|slot|parent)?s?$"
)


def is_allowed_slot(name: str) -> bool:
    """Test if a method may name this slot of an object: an ASCII, public name that the kernel does not need."""
    return bool(_SLOT.fullmatch(name)) and not _PROTECTED.search(name.replace("_", "").lower())


def is_allowed_selector(name: str) -> bool:
    """Test if a method may send this selector: neither a slot nor a verb of the kernel."""
    return is_allowed_slot(name) and not _KERNEL.search(name.replace("_", "").lower())


@dataclass(slots=True)
class Names:
    """The things that a source's names refer to."""

    modules: dict[str, str] = field(default_factory=dict)  # local name -> module
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # local name -> (module, name in it)
    called: set[str] = field(default_factory=set)  # attributes that are called, of anything but a module
    stored: set[str] = field(default_factory=set)  # attributes that are assigned or deleted, of anything
    deleted: set[str] = field(default_factory=set)  # attributes that are deleted
    own: set[str] = field(default_factory=set)  # methods of classes that the source defines
    yields: bool = False  # whether anything does
    awaits: bool = False
    awaited: set[str] = field(default_factory=set)  # local names whose value is awaited somewhere

    def is_module(self, node: ast.expr) -> bool:
        """Test if an expression is a name that an import bound to a module."""
        return isinstance(node, ast.Name) and node.id in self.modules

    def member(self, node: ast.expr) -> tuple[str, str]:
        """Return (module, name) for `module.name` or for a name imported from a module, else ("", "")."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, ("", ""))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.modules.get(node.value.id, ""), node.attr
        return "", ""


def survey(tree: ast.Module) -> Names:
    """Collect the things that the names of a source refer to.

    Raises: MethodFailed: the source uses a name that no method may use.
    """
    names = Names()
    nodes = list(ast.walk(tree))
    for node in nodes:
        for said in _names_in_node(node):
            _allow(said, node)
        if isinstance(node, ast.Import):
            names.modules.update((alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names.imported.update((alias.asname or alias.name, (module, alias.name)) for alias in node.names)
        elif isinstance(node, ast.ClassDef):
            names.own.update(
                each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            )
        elif isinstance(node, ast.Global):
            raise refusal(node, "`global`: a method has no state but its receiver's slots")
        names.yields = names.yields or isinstance(node, ast.Yield | ast.YieldFrom)
        names.awaits = names.awaits or isinstance(node, ast.AsyncFunctionDef)
    names.awaits = names.awaits or "asyncio" in names.modules.values()
    _attributes(nodes, names)
    return names


def _attributes(nodes: list[ast.AST], names: Names) -> None:
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not names.is_module(node.func.value):
                names.called.add(node.func.attr)
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            said = {each.value for each in node.args[1:2] if isinstance(each, ast.Constant)}
            names.stored |= {each for each in said if isinstance(each, str)}
            if node.func.id == "delattr":
                names.deleted |= {each for each in said if isinstance(each, str)}
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.stored.add(node.attr)
            if isinstance(node.ctx, ast.Del):
                names.deleted.add(node.attr)


def _names_in_node(node: ast.AST) -> Iterator[str]:
    """Yield every name in a node, in each position in which a name can stand."""
    for name, value in ast.iter_fields(node):
        if name in ("id", "attr", "arg", "name", "asname", "rest", "module") and isinstance(value, str):
            yield from value.split(".")
        elif name in ("names", "kwd_attrs") and isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))


def _allow(name: str, node: ast.AST) -> None:
    if name.startswith(OURS):
        raise refusal(node, f"the name {name!r}: names that begin with {OURS!r} are the cell's")
    if isinstance(node, ast.Name) and name in _FORBIDDEN:
        raise refusal(node, f"the name {name!r}")
    if isinstance(node, _NAMING) and name.startswith("__"):
        raise refusal(node, f"the name {name!r}: what begins with two underscores is Python's own")


def refusal(node: ast.AST, what: str) -> MethodFailed:
    """Return the error for syntax that the cell does not run."""
    return MethodFailed(f"line {getattr(node, 'lineno', 1)}: the cell does not run {what}")
