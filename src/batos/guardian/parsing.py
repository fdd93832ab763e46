"""Parses Python source, one thread at a time, checks its shape, and walks its tree within bounds and scopes."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from batos.guardian.policy import GuardianPolicy, SourceFault

#: CPython 3.11 counts the depth of the tree that it builds in one place for all threads. Where a collection of garbage
#: runs Python code while a tree is built, another thread may build one too: SystemError, "AST constructor recursion
#: depth mismatch". The filters of warnings are of the whole process as well.
_ONE_AT_A_TIME: Final = threading.Lock()


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module. Warnings about the source are silenced.

    Raises: SyntaxError: it is not Python. ValueError: it has a null character. MemoryError, RecursionError: it is
    nested too deep.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """Return the syntax tree of an expression; see `parse` for the errors."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode="eval").body


Def = ast.FunctionDef | ast.AsyncFunctionDef
_ONE = "write one `def`, with its helpers inside it and its imports before or inside it"


def faults_of(tree: ast.Module, method: Def | None, policy: GuardianPolicy) -> Iterator[SourceFault]:
    """Yield the faults of the outermost level of a source."""
    if method is None:
        yield SourceFault(1, 0, "shape", "the source defines no method", _ONE)
    for index, node in enumerate(tree.body):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if node is method or (text and index == 0):
            continue
        late = method is not None and node.lineno > method.lineno
        if not isinstance(node, ast.Import | ast.ImportFrom) or late:
            yield SourceFault(node.lineno, node.col_offset, "shape", *_beside(node, method))
    if method is not None:
        yield from _receiver(method, policy.receiver)


def _beside(node: ast.stmt, method: Def | None) -> tuple[str, str]:
    """Say why a statement beside the method may not be there, and what to do with it."""
    if method is None:
        return "this would run when the method is defined", _ONE
    inside = f"move it into `{method.name}`, under a name that is free there"
    if isinstance(node, Def):
        return (
            f"this is a second method: `{node.name}` beside `{method.name}`",
            f"{inside}; if it is not used, leave it out",
        )
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "this import is after the method", "write it before the method"
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return "this runs at the start of a program, and a method is not a program", "leave the whole `if` out"
    why = "this would run when the method is defined"
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return why, inside
    if isinstance(node, ast.ClassDef):
        return why, f"use a dict instead, and functions in `{method.name}` that take the dict"
    return why, "leave it out: the kernel calls the method when its message is sent"


def _receiver(method: Def, receiver: str) -> Iterator[SourceFault]:
    given = method.args
    positional = [*given.posonlyargs, *given.args]
    if not positional or positional[0].arg != receiver:
        why = f"the first parameter is not `{receiver}`"
        yield SourceFault(method.lineno, method.col_offset, "shape", why, f"write `def {method.name}({receiver}, ...)`")
    elif len(given.defaults) == len(positional):
        yield SourceFault(method.lineno, method.col_offset, "shape", f"`{receiver}` has a default", "leave it out")


def parameters_of(method: Def) -> str:
    """Return a method's parameter list as Python text."""
    given = method.args
    plain = not (given.defaults or given.kwonlyargs or given.posonlyargs or given.vararg or given.kwarg)
    if plain and not any(one.annotation for one in given.args):
        return ", ".join(one.arg for one in given.args)
    return ast.unparse(given)


def check_expected(method: Def, selector: str, signature: str) -> Iterator[SourceFault]:
    """Yield a fault if the method lacks the expected name or the expected parameters (empty: any)."""
    if selector and method.name != selector:
        why = f"the method is named `{method.name}`, and its name must be `{selector}`"
        yield SourceFault(method.lineno, method.col_offset, "selector", why, f"write `def {selector}(...)`")
    wanted = _parameters(signature)
    if wanted is not None and wanted != _names(method.args):
        why = f"the parameters are ({', '.join(_names(method.args))}), and must be ({', '.join(wanted)})"
        yield SourceFault(method.lineno, method.col_offset, "selector", why, f"write `def {signature}`")


def kernels(slot: str, node: ast.AST) -> SourceFault:
    """Report that a slot which no method writes is written there, or changed in place."""
    why = f"the slot `{slot}` belongs to the codex or the kernel: a method may read it but not change it"
    return SourceFault(
        getattr(node, "lineno", 0), getattr(node, "col_offset", 0), "kernel-slot", why, "use another slot"
    )


def _names(given: ast.arguments) -> list[str]:
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [one.arg for one in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def _parameters(signature: str) -> list[str] | None:
    """Parse the parameter names of `selector(self, query)`; return None if the signature is empty or not valid."""
    if not signature:
        return None
    try:
        parsed = parse(f"def {signature}: ...").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    made = parsed[0] if len(parsed) == 1 else None
    return _names(made.args) if isinstance(made, ast.FunctionDef) else None


@dataclass(slots=True, eq=False)
class Scope:
    """A function, lambda, comprehension or the module, with the names that it binds and those that it loads."""

    node: ast.AST
    outer: Scope | None = None
    bound: set[str] = field(default_factory=set)
    loads: list[ast.Name] = field(default_factory=list)
    outward: set[str] = field(default_factory=set)
    generates: bool = False

    @property
    def is_function(self) -> bool:
        """Test if `return` and `:=` belong to this scope."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module)

    def function(self) -> Scope:
        """Return the innermost function around this scope, to which a `:=` or a `yield` in it belongs."""
        scope = self
        while not scope.is_function and scope.outer is not None:
            scope = scope.outer
        return scope

    def sees(self, name: str) -> bool:
        """Test if a name is bound in this scope or in one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bound:
                return True
            scope = scope.outer
        return False


ALLOWED: Final = "docs/dialect.md lists what may be used"
Look: TypeAlias = Callable[[ast.AST, Scope, int], None]

#: Advice for syntax that is not in the dialect.
SYNTAX: Final = {
    "ClassDef": "use a dict, and functions in the method that take the dict",
    "Global": "keep it in a slot of the receiver, or in a local variable",
    "With": "leave it out and keep its body: a method has no files and nothing else to close",
    "AsyncWith": "leave it out and keep its body: nothing runs beside a method, so it need not wait",
    "TryStar": "use `except`",
}


#: Advice for Python's own names that methods commonly use.
_RENAMED: Final = {
    "__name__": "leave out the body of `if __name__`, and the `if`",
    "__file__": "leave it out: there are no files",
}


#: Advice for builtins that methods commonly want.
MISSING: Final = {
    "open": "leave it out: a method has no files; `await self.recall_(query)` finds what documents say",
    "input": "leave it out: the question is an argument",
    "super": "leave it out: send the message, `self.selector_(...)`; a parent that has it answers",
    "globals": "leave it out: keep lasting values in slots of `self`",
    "locals": "leave it out: write the names",
    "callable": "leave it out: arguments are plain data",
}


@lru_cache(maxsize=8)
def _silent(names: frozenset[str]) -> frozenset[type]:
    """Return the permitted node types without parts, about which nothing needs checking."""
    return frozenset(kind for kind in _kinds(names) if not getattr(kind, "_fields", ()))


@lru_cache(maxsize=8)
def _kinds(names: frozenset[str]) -> frozenset[type]:
    return frozenset(kind for kind in vars(ast).values() if isinstance(kind, type) and kind.__name__ in names)


#: Advice for modules that methods commonly want.
MODULES: Final = {
    "os": "leave it out: a method has no files, no environment and no processes",
    "sys": "leave it out: a method returns its answer, and raises ValueError if it has none",
    "io": 'leave it out: join texts in a list with `"".join(parts)`',
    "pathlib": "leave it out: a method has no files; `await self.recall_(query)` finds what documents say",
    "time": "for the time write `from datetime import datetime` and `datetime.now()`; a method cannot sleep",
    "logging": 'write `self.log_("info", text)` to log a line, and leave out the rest of it',
    "dataclasses": 'write a dict for each record: `{"x": x, "y": y}`',
    "enum": "write the texts themselves, or a dict of them",
    "abc": "leave it out: a method is one function",
    "threading": "leave it out: nothing runs beside a method",
    "contextlib": "use try and except",
    "requests": "leave it out: a method reaches no network; send a message to an object that does",
    "urllib": "leave it out: a method reaches no network; send a message to an object that does",
    "numpy": "use lists, `math` and `statistics`",
    "operator": "write a `lambda`",
    "uuid": "use `random.randint`, or a counter in a slot",
}


class Walk:
    """The walk itself, and what it gathers: faults, scopes, slots, sends, imports."""

    def __init__(self, policy: GuardianPolicy) -> None:
        self.policy = policy
        self.faults: list[SourceFault] = []
        #: The name of the method, where there is one.
        self.method = ""
        #: True if anything can change in place: otherwise no path has to be followed.
        self.may_change = False
        self.silent = _silent(policy.nodes)
        #: Names that were looked at and are harmless anywhere.
        self.plain_names: set[str] = {policy.throwaway}
        #: The check for each type of node; a node without one has its parts checked.
        self.look: dict[type[ast.AST], Look] = {}
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.deletes: set[str] = set()
        self.sends: set[str] = set()
        self.capabilities: set[str] = set()
        self.imports: dict[str, tuple[str, str]] = {}
        self.scopes: list[Scope] = []
        self.bound: frozenset[str] = frozenset()
        self.todo: list[tuple[ast.AST, Scope, int]] = []
        #: Attributes of plain names, judged when all imports are known: (attribute, called, scope).
        self.members: list[tuple[ast.Attribute, ast.Call | None]] = []
        self.called: list[tuple[ast.Call, Scope, bool]] = []
        self.texts: dict[str, list[ast.expr | None]] = {}
        self.formats: list[tuple[ast.Call, ast.Attribute]] = []
        self.compared: set[int] = set()
        #: Values passed to code that will call them.
        self.handed_on: list[ast.expr] = []
        #: Values passed as `key` to a builtin that sorts or picks, with that builtin.
        self.keys: dict[int, str] = {}
        self.binds: dict[str, list[ast.AST]] = {}

    def fault(self, node: ast.AST, rule: str, why: str, remedy: str = ALLOWED) -> None:
        """Record a fault at a node."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        self.faults.append(SourceFault(line, column, rule, why, remedy))

    def walk(self, tree: ast.Module) -> bool:
        """Look at every node once; False when the tree is larger or deeper than its bounds, and not to be followed."""
        bounds, look = self.policy.bounds, self.look
        allowed, module = _kinds(self.policy.nodes), self.scope(tree, None)
        todo = self.todo = [(one, module, 1) for one in reversed(tree.body)]
        count = 0
        while todo:
            node, scope, depth = todo.pop()
            count += 1
            if count > bounds.nodes or depth > bounds.depth:
                why = f"the source has more than {bounds.nodes} parts, or nests deeper than {bounds.depth}"
                self.fault(node, "bounds", why, "write shorter code with less nesting")
                return False
            kind = type(node)
            if kind not in allowed:
                why = f"`{kind.__name__}` is not in the dialect"
                self.fault(node, "syntax", why, SYNTAX.get(kind.__name__, ALLOWED))
            handler = look.get(kind)
            if handler is None:
                self.push(node, scope, depth + 1)
            else:
                handler(node, scope, depth + 1)
        self.resolve()
        return True

    def scope(self, node: ast.AST, outer: Scope | None) -> Scope:
        """Open a scope for a node."""
        scope = Scope(node, outer)
        self.scopes.append(scope)
        return scope

    def push(self, node: ast.AST, scope: Scope, depth: int) -> None:
        """Look at all parts of a node, but for those that say only how it is used."""
        todo, silent = self.todo, self.silent
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                todo += [(one, scope, depth) for one in value if isinstance(one, ast.AST) and type(one) not in silent]
            elif isinstance(value, ast.AST) and type(value) not in silent:
                todo.append((value, scope, depth))

    def push_all(self, nodes: Iterable[ast.AST | None], scope: Scope, depth: int) -> None:
        """Queue nodes to be visited in a scope."""
        self.todo.extend((one, scope, depth) for one in nodes if one is not None)

    def name(self, name: str, node: ast.AST, what: str, *, message: bool = False) -> None:
        """Check a name in any position; one that is a `message` to self shows nothing of Python."""
        if name in self.plain_names:
            return
        policy = self.policy
        if policy.protected_pattern.search(name):
            why = f"{what} `{name}` is protected: generated code may not use it"
            self.fault(
                node, "protected", why, _RENAMED.get(name, "use another name, without an underscore at its start")
            )
        elif message and name in policy.introspection:
            return
        elif name in policy.introspection:
            self.fault(node, "introspection", f"{what} `{name}` exposes the internals of Python", "leave it out")
        elif len(name) > policy.bounds.identifier_length:
            self.fault(node, "bounds", f"{what} `{name[:20]}...` is too long", "use a shorter name")
        else:
            self.plain_names.add(name)

    def bind(self, name: str, node: ast.AST, scope: Scope) -> None:
        """Bind a name in a scope: a variable, a parameter, a function, or a name that `case` or `except` captures."""
        self.name(name, node, "the name")
        scope.bound.add(name)
        self.binds.setdefault(name, []).append(node)
        if name == self.policy.receiver:
            why = f"`{name}` is the receiver and may not be bound again"
            self.fault(node, "receiver", why, "use another name for this")

    def resolve(self) -> None:
        """Judge what could not be judged before everything was seen."""
        raise NotImplementedError
