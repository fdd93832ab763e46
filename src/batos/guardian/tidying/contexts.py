"""The few `with` that need no context manager: `suppress` is a `try`, and a lock or `nullcontext` is nothing."""

from __future__ import annotations

import ast
from typing import Final

from batos.guardian.tidying import bound_names

#: Nothing runs beside a method, so there is nothing to lock out.
_LOCKS: Final = frozenset({"Lock", "RLock"})


def unfold(tree: ast.Module) -> None:
    """Rewrite each `with` whose parts are all of these."""
    contexts = bound_names.imported_names(tree, "contextlib")
    threads = bound_names.imported_names(tree, "threading")
    locks = _locks(tree, threads)
    for block in bound_names.blocks(tree):
        for index in range(len(block) - 1, -1, -1):
            node = block[index]
            if isinstance(node, ast.With):
                block[index : index + 1] = _plain(node, contexts, threads, locks)
    _remove_locks(tree, threads, locks)
    for module in ("contextlib", "threading"):
        bound_names.unimport(tree, module)


def _locks(tree: ast.Module, threads: dict[str, str]) -> set[str]:
    """Return the variables that hold a lock and are used for nothing but `with`."""
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and bound_names.member(node.value.func, threads) in _LOCKS
    ]
    found = bound_names.only(tree, made)
    held = {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items}
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return found - {node.id for node in loads if id(node) not in held}


def _remove_locks(tree: ast.Module, threads: dict[str, str], locks: set[str]) -> None:
    for block in bound_names.blocks(tree):
        for node in list(block):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id in locks:
                bound_names.remove(block, node)


def _plain(node: ast.With, contexts: dict[str, str], threads: dict[str, str], locks: set[str]) -> list[ast.stmt]:
    """Return the statements that a `with` comes to; the `with` itself where one of its parts is none of these."""
    body = list(node.body)
    for item in reversed(node.items):
        given, target = item.context_expr, item.optional_vars
        called = given if isinstance(given, ast.Call) and not given.keywords else None
        kind = bound_names.member(called.func, contexts) if called is not None else ""
        named = called is not None and called.args and all(isinstance(each, ast.Name) for each in called.args)
        if kind == "suppress" and called is not None and named and target is None:
            caught = called.args[0] if len(called.args) == 1 else ast.Tuple(called.args, ast.Load())
            body = [ast.copy_location(ast.Try(body, [ast.ExceptHandler(caught, None, [ast.Pass()])], [], []), node)]
        elif kind == "nullcontext" and called is not None and len(called.args) <= 1:
            value = called.args[0] if called.args else ast.Constant(None)
            first = ast.Expr(value) if target is None else ast.Assign([target], value)
            body = [*([ast.copy_location(first, node)] if called.args or target is not None else []), *body]
        elif target is None and _is_lock(given, threads, locks):
            continue
        else:
            return [node]
    return body


def _is_lock(given: ast.expr, threads: dict[str, str], locks: set[str]) -> bool:
    if isinstance(given, ast.Call):
        return bound_names.member(given.func, threads) in _LOCKS and not given.args
    return isinstance(given, ast.Name) and given.id in locks
