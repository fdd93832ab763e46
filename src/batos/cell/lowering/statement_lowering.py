"""Statements and names that the cell serves itself: `del`, attributes, imports, and the objects that names mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from batos.guardian.parsing import parse_expression
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


#: Builtins whose calls go through ours: they reach attributes by name.
_BY_NAME: Final = frozenset({"getattr", "setattr", "hasattr", "delattr"})
_TYPES: Final = frozenset({"str", "list", "dict", "set", "int", "float", "bytes", "tuple"})
#: Methods that are called on the type itself, and not on an instance.
_OF_TYPES: Final = frozenset({"fromkeys", "fromhex", "maketrans", "from_bytes"})
#: Builtins that the interpreter lacks.
_SERVED: Final = frozenset({"callable"})


class StatementLowering(ast.NodeTransformer):
    """Rewrites statement by statement what needs no knowledge of its surroundings but the survey."""

    def __init__(self, names: Names, receiver: str, served: Mapping[str, frozenset[str]]) -> None:
        self._names = names
        self._receiver = receiver
        self._served = served  # module -> its names, of those that the cell brings
        self.read: set[str] = set()  # attributes that are read through ours
        self.modules: set[str] = set()  # served modules that are imported

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Leave a parameter as it stands: the interpreter evaluates no annotation."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Rewrite an annotated assignment but for its annotation, which the interpreter never evaluates."""
        node.target = self.visit(node.target)
        node.value = self.visit(_iterator(node.value)) if node.value is not None else None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Turn the read of an attribute into a request to the host, since the base may be another object."""
        self.generic_visit(node)
        mine = isinstance(node.value, ast.Name) and node.value.id == self._receiver
        if not isinstance(node.ctx, ast.Load) or self._names.is_module(node.value):
            return node
        if self._is_of_type(node):
            return _unbound(node)
        if node.attr.startswith(OURS) or (mine and node.attr not in self._names.deleted):
            return node
        self.read.add(node.attr)
        return _call(OURS + "get_" + node.attr, [node.value], node)

    def _is_of_type(self, node: ast.Attribute) -> bool:
        """Test for a method taken from a builtin type, as in `str.strip`: the interpreter has no such values."""
        return isinstance(node.value, ast.Name) and node.value.id in _TYPES and node.attr not in _OF_TYPES

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a call: its attribute becomes no read, and `str.strip(text)` becomes `text.strip()`."""
        if isinstance(node.func, ast.Attribute) and self._is_of_type(node.func) and node.args:
            node.func.value = node.args.pop(0)  # str.strip(text) is text.strip()
        if isinstance(node.func, ast.Attribute):  # a call is no read: the attribute itself stays
            node.func.value = self.visit(node.func.value)
            node.args = [self.visit(each) for each in node.args]
            node.keywords = [self.visit(each) for each in node.keywords]
            if self._names.member(node.func) == ("re", "sub") and node.args:
                return _call(OURS + "re_sub", node.args, node, node.keywords)
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
            node.args[0] = _iterator(node.args[0])
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a builtin that the cell provides itself by the cell's name for it."""
        if isinstance(node.ctx, ast.Load) and node.id in _BY_NAME | _SERVED:
            return ast.copy_location(ast.Name(id=OURS + node.id, ctx=ast.Load()), node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Write an assertion as `if` and `raise`: the interpreter adds the compared values to its error's text."""
        args = [node.msg] if node.msg is not None else []
        error = ast.Call(func=ast.Name(id="AssertionError", ctx=ast.Load()), args=args, keywords=[])
        failed = ast.UnaryOp(op=ast.Not(), operand=node.test)
        made = ast.If(test=failed, body=[ast.Raise(exc=error)], orelse=[])
        return self.generic_visit(ast.fix_missing_locations(ast.copy_location(made, node)))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Rewrite an assignment; a generator expression becomes an iterator that `next` takes."""
        node.value = _iterator(node.value)
        return self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        """Replace `del` by one statement for each target."""
        return [ast.copy_location(self._lower_delete(target), node) for target in _flat(node.targets)]

    def _lower_delete(self, target: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Name):
            return ast.Assign(targets=[ast.Name(id=target.id, ctx=ast.Store())], value=ast.Constant(None))
        if isinstance(target, ast.Attribute):
            return ast.Expr(_call(OURS + "delattr", [self.visit(target.value), ast.Constant(target.attr)], target))
        if isinstance(target, ast.Subscript):
            value = self.visit(target.value)
            if isinstance(target.slice, ast.Slice):
                part = ast.Subscript(value=value, slice=self.visit(target.slice), ctx=ast.Store())
                return ast.Assign(targets=[part], value=ast.List(elts=[], ctx=ast.Load()))
            return ast.Expr(_call(OURS + "delitem", [value, self.visit(target.slice)], target))
        raise refusal(target, "this `del`")

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        """Replace imports of modules that the cell provides itself."""
        return _each(node, [self._lower_import(alias) or ast.Import(names=[alias]) for alias in node.names])

    def _lower_import(self, alias: ast.alias) -> ast.stmt | None:
        if alias.name not in MODULES:
            return _missing(alias.name)
        if alias.name not in self._served:
            return None
        self.modules.add(alias.name)
        return _bind(alias.asname or alias.name, OURS + alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """Replace an import from a module that the cell provides itself.

        Raises: MethodFailed: the module has no such name for methods.
        """
        module = node.module or ""
        if module == "__future__":
            return ast.copy_location(ast.Pass(), node)
        if module not in MODULES or node.level:
            return ast.copy_location(_missing("." * node.level + module), node)
        if module not in self._served:
            return node
        self.modules.add(module)
        for alias in node.names:
            if alias.name not in self._served[module]:
                raise refusal(
                    node, f"`from {module} import {alias.name}`: it has {', '.join(sorted(self._served[module]))}"
                )
        return _each(node, [_bind(alias.asname or alias.name, f"{OURS}{module}_{alias.name}") for alias in node.names])


def _missing(module: str) -> ast.stmt:
    """Build the statement that fails as the import of an absent module does."""
    error = ast.Call(
        func=ast.Name(id="ModuleNotFoundError", ctx=ast.Load()),
        args=[ast.Constant(f"the cell has no module {module!r}")],
        keywords=[],
    )
    return ast.fix_missing_locations(ast.Raise(exc=error))


def _iterator(node: ast.expr) -> ast.expr:
    """Wrap a generator expression so that `next` takes it: the interpreter makes a list of it."""
    return _call(OURS + "iter", [node], node) if isinstance(node, ast.GeneratorExp) else node


def _unbound(node: ast.Attribute) -> ast.expr:
    one, rest = OURS + "one", OURS + "rest"
    function = parse_expression(f"lambda {one}, *{rest}: {one}.{node.attr}(*{rest})")
    for each in ast.walk(function):
        ast.copy_location(each, node)
    return function


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for target in targets:
        found += _flat(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]
    return found


def _each(old: ast.stmt, new: list[ast.stmt]) -> list[ast.stmt]:
    return [ast.copy_location(each, old) for each in new]


def _bind(name: str, value: str) -> ast.stmt:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=ast.Name(id=value, ctx=ast.Load()))


def _call(name: str, args: list[ast.expr], old: ast.AST, keywords: list[ast.keyword] | None = None) -> ast.expr:
    call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=args, keywords=keywords or [])
    return ast.fix_missing_locations(ast.copy_location(call, old))
