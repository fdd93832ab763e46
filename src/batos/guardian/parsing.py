"""Parse Python source, one thread at a time, and check its shape: imports, then exactly one method."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from typing import Final

from batos.guardian.policy import GuardianPolicy
from batos.guardian.verdict import SourceFault

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
