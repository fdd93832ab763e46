"""Programs: audited source is parsed, rewritten for the interpreter, and wrapped for a worker."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from batos.cell.lowering.statement_lowering import (
    MARKER,
    OURS,
    Names,
    StatementLowering,
    is_allowed_slot,
    refusal,
    survey,
)
from batos.cell.lowering.waiting import LATER, lower_generators, lower_waiting
from batos.cell.prelude import BUILTINS, PreludeNames, epilogue, prelude, short
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED, SlotUse
from batos.guardian.tidying.tidy import tidy
from batos.protocol.errors import MethodFailed

#: Characters of source: far more than a method has, and parsed in well under what the event loop may take.
LONGEST: Final = 64 * 1024
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Code:
    """A program's text, with the lines of the source from which it came."""

    text: str
    lines: tuple[int, ...]  # for each of its lines the line of the source, 0 where it is ours

    @classmethod
    def frame(cls, before: str, body: str, after: str, lines: tuple[int, ...]) -> Code:
        """Put a method's text between the cell's own."""
        return cls(before + body + after, (*(0 for _ in before.splitlines()), *lines))


@dataclass(frozen=True, slots=True)
class Program:
    """A method ready to run: pure data, a function of its source and slot names."""

    selector: str
    digest: str  # SHA-256 of the source, hex
    code: Code = field(repr=False)
    short: Code | None = field(repr=False)  # for calls without other objects, when the method allows it
    is_async: bool
    view: frozenset[str]  # slots to give to the method: all it names
    changes: frozenset[str]  # of these, what is read back


def prepare(source: str, slots: SlotUse, selector: str = "") -> Program:
    """Prepare the program of one method. The result is cached.

    `selector` names the method if the source defines several functions; otherwise the last one is taken. A usual method
    takes milliseconds: run it in a thread if the source may be long.

    Raises: MethodFailed: the source cannot be rewritten, or names a slot that no method may use.
    """
    return _prepare(source, slots.reads, slots.writes | slots.mutates | slots.deletes, selector)


@lru_cache(maxsize=512)
def _prepare(source: str, reads: frozenset[str], changes: frozenset[str], selector: str) -> Program:
    changes -= {MARKER}
    view = (reads | changes) - {MARKER}
    for name in sorted(view):
        if not is_allowed_slot(name):
            raise MethodFailed(f"no method may use the slot {name!r}")
    try:
        tree = _parse(source)
        if selector:
            tree = tidy(tree, selector, SHIPPED.receiver)
        names = survey(tree)
        method = _method(tree, selector)
        name, is_async = method.name, isinstance(method, ast.AsyncFunctionDef)
        method.name = OURS + "method"
        statements = StatementLowering(names, method.args.args[0].arg, served_names())
        tree = lower_generators(tree) if names.yields else tree
        tree = lower_waiting(tree, names) if names.awaits else tree
        body, lines = _write(ast.fix_missing_locations(statements.visit(tree)))
    except RecursionError:
        raise MethodFailed("the source is nested too deep") from None
    around = _around(tree, names, statements, view=view, changes=changes)
    before = prelude(around, body, (library(each) for each in sorted(statements.modules)))
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    return Program(
        selector=name,
        digest=digest,
        code=Code.frame(before, body, epilogue(is_async), lines),
        short=_short(tree, body, lines, around, method),
        is_async=is_async,
        view=view,
        changes=changes,
    )


def _parse(source: str) -> ast.Module:
    if len(source) > LONGEST:
        raise MethodFailed(f"the source has {len(source):,} characters, at most {LONGEST:,}")
    try:
        return parse(source)
    except (SyntaxError, ValueError) as error:
        raise MethodFailed(f"the source is not Python: {str(error)[:200]}") from None
    except MemoryError:  # what CPython's parser says of a source nested too deep
        raise MethodFailed("the source is nested too deep") from None


def _method(tree: ast.Module, selector: str) -> Function:
    """Find the method among the source's functions.

    Raises: MethodFailed: there is none, or the source has statements beside imports, constants, functions and classes.
    """
    functions: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, Function):
            functions[node.name] = node
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | ast.Assign | ast.AnnAssign) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            raise refusal(node, "statements beside the method: only imports, constants, functions and classes")
    found = functions.get(selector) if selector else next(reversed(functions.values()), None)
    if found is None:
        raise MethodFailed(f"the source defines no method {selector or ''}".rstrip())
    if found.decorator_list:
        raise refusal(found, "a method with decorators")
    found.args.args[:0] = found.args.posonlyargs  # nothing calls it but the kernel, which gives what comes first first
    found.args.posonlyargs = []
    if not found.args.args:
        raise refusal(found, "a method whose first parameter is not the receiver: def name(self, ...)")
    return found


def _write(tree: ast.Module) -> tuple[str, tuple[int, ...]]:
    """Return the text of a tree, and for each of its lines the line of the source from which it came."""
    try:
        text = ast.unparse(tree) + "\n"
    except ValueError as error:  # an f-string with every kind of quote
        raise MethodFailed(f"the source cannot be written again: {str(error)[:200]}") from None
    lines = [0] * text.count("\n")
    todo: list[tuple[ast.AST, ast.AST]] = [(tree, parse(text))]
    while todo:  # statements are enough, and a fraction of the nodes
        old, new = todo.pop()
        if isinstance(old, ast.stmt) and isinstance(new, ast.stmt):
            lines[new.lineno - 1] = lines[new.lineno - 1] or old.lineno
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            todo += zip(_blocks(old, part), _blocks(new, part), strict=False)
    return text, tuple(lines)


def _blocks(node: ast.AST, part: str) -> list[ast.AST]:
    found = getattr(node, part, None)
    return found if isinstance(found, list) else []


def _around(
    tree: ast.Module, names: Names, statements: StatementLowering, *, view: frozenset[str], changes: frozenset[str]
) -> PreludeNames:
    attributes = frozenset(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    later = frozenset(each.removeprefix(LATER) for each in attributes if each.startswith(LATER))
    selectors = frozenset(names.called) & attributes
    return PreludeNames(
        selectors=selectors,
        later=later,
        read=frozenset(statements.read),
        view=view,
        changes=changes,
        marks=MARKER in names.stored,
        stored=frozenset(names.stored) - view - changes - selectors - {MARKER},
    )


def _short(tree: ast.Module, body: str, lines: tuple[int, ...], around: PreludeNames, method: Function) -> Code | None:
    if not _is_simple(tree, body, around, method.args.args[0].arg):
        return None
    before, after = short(around, isinstance(method, ast.AsyncFunctionDef))
    return Code.frame(before, body, after, lines)


def _is_simple(tree: ast.Module, body: str, around: PreludeNames, receiver: str) -> bool:
    """Test if the short form is enough: no message, none of the cell's own functions, no name that hides a builtin."""
    if around.selectors - SHIPPED.plain_methods or around.later or around.read or body.count(OURS) > 1:
        return False
    nodes = list(ast.walk(tree))
    slots = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    functions = (node.func for node in nodes if isinstance(node, ast.Call))
    called = {id(function.value) for function in functions if isinstance(function, ast.Attribute)}
    for node in nodes:  # the receiver is nothing but the holder of slots
        if isinstance(node, ast.Name) and node.id == receiver and (id(node) in called or id(node) not in slots):
            return False
    bound = {node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif not isinstance(node, Function | ast.Expr):
            return False
    return not bound & BUILTINS


_HERE: Final = Path(__file__).parent / "library"
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
