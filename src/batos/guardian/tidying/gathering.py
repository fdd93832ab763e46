"""Moves helpers and constants beside the method into it: each call of a method runs them anyway."""

from __future__ import annotations

import ast
import builtins

from batos.guardian.tidying import bound_names
from batos.guardian.tidying.bound_names import Def


def find_method(tree: ast.Module, selector: str, receiver: str) -> Def | None:
    """Find the method of a source: the function of that name, else the only one with a receiver, else the first."""
    functions = [node for node in tree.body if isinstance(node, Def)]
    named = [node for node in functions if node.name == selector]
    if named:
        return named[-1]
    received = [node for node in functions if _receives(node, receiver)]
    return received[0] if len(received) == 1 else next(iter(functions), None)


def _receives(node: Def, receiver: str) -> bool:
    given = [*node.args.posonlyargs, *node.args.args]
    return bool(given) and given[0].arg == receiver


def gather(tree: ast.Module, method: Def, receiver: str) -> None:
    """Move what stands beside the method to its beginning, where nothing there has the same name."""
    beside = {name: node for node in tree.body if node is not method and (name := _defines(node))}
    if len(beside) != sum(1 for node in tree.body if node is not method and _defines(node)):
        return  # something is defined twice: which is meant depends on when it is asked for
    if method.name in beside:
        return  # the last of two is meant, and in the method the first would be
    _public(tree, beside, receiver)
    taken = bound_names.bound_by(method) - beside.keys()
    moved = [node for name, node in beside.items() if _fits(name, node, beside, taken, bound_names.bound_by(method))]
    used = _used_names(method, moved, beside, receiver)
    moved = [node for node in moved if not isinstance(node, Def) or _name_of(node, beside) in used]
    for node in moved:
        if isinstance(node, Def):
            _send_to_itself(tree, node, receiver)
    tree.body = [node for node in tree.body if node not in moved]
    start = 1 if ast.get_docstring(method, clean=False) is not None else 0
    method.body[start:start] = moved
    if len(method.body) == start:
        method.body.append(ast.Pass())


def _defines(node: ast.stmt) -> str:
    """Return the name that a statement beside the method gives to a helper or a constant; "" for any other one."""
    if isinstance(node, Def) and not node.decorator_list:
        return node.name
    target, value = bound_names.assignment(node)
    return target.id if isinstance(target, ast.Name) and value is not None else ""


def _name_of(node: ast.stmt, beside: dict[str, ast.stmt]) -> str:
    return next(name for name, each in beside.items() if each is node)


def _fits(name: str, node: ast.stmt, beside: dict[str, ast.stmt], taken: set[str], inside: set[str]) -> bool:
    """Test if it means the same in the method as beside it: no name of the method's hides one of its own."""
    if name in inside or (name.startswith("__") and name.endswith("__")):
        return False
    if hasattr(builtins, name):
        return False  # until it is defined the name means the builtin
    own = bound_names.bound_by(node) if isinstance(node, Def) else set()
    return not (bound_names.loaded_names(node) - own - beside.keys()) & (taken - {"self"})


def _used_names(method: Def, moved: list[ast.stmt], beside: dict[str, ast.stmt], receiver: str) -> set[str]:
    """Return the names that the method uses, itself or by others: a second method that nothing calls is no helper."""
    used: set[str] = set()
    todo: list[ast.AST] = [method, *(node for node in moved if not isinstance(node, Def))]
    while todo:
        node = todo.pop()
        fresh = (bound_names.loaded_names(node) | _sent_selectors(node, receiver)) & beside.keys() - used
        used |= fresh
        todo.extend(beside[name] for name in fresh)
    return used


def _sent_selectors(tree: ast.AST, receiver: str) -> set[str]:
    return {node.attr for node in ast.walk(tree) if _is_of_receiver(node, receiver) and isinstance(node, ast.Attribute)}


def _is_of_receiver(node: ast.AST, receiver: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == receiver


def _send_to_itself(tree: ast.Module, helper: Def, receiver: str) -> None:
    """Give a helper the receiver of the method: `self.helper(x)` and `helper(self, x)` become `helper(x)`."""
    if not _receives(helper, receiver) or helper.args.posonlyargs:
        return
    del helper.args.args[0]
    _SendRemoval(helper.name, receiver).visit(tree)


class _SendRemoval(ast.NodeTransformer):
    def __init__(self, name: str, receiver: str) -> None:
        self._name = name
        self._receiver = receiver

    def visit_Call(self, node: ast.Call) -> ast.AST:
        direct = isinstance(node.func, ast.Name) and node.func.id == self._name
        first = node.args[0] if node.args else None
        if direct and isinstance(first, ast.Name) and first.id == self._receiver:
            del node.args[0]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == self._name and _is_of_receiver(node, self._receiver) and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name(id=self._name, ctx=ast.Load()), node)
        return self.generic_visit(node)


def _public(tree: ast.Module, beside: dict[str, ast.stmt], receiver: str) -> None:
    """Rename each helper or constant that begins with an underscore to the name without it."""
    said = bound_names.all_names(tree)
    for name in [name for name in beside if name.startswith("_") and not name.startswith("__")]:
        plain = name.strip("_")
        fresh = next((each for each in (plain, f"{plain}_helper") if each.isidentifier() and each not in said), "")
        if not fresh:
            continue
        made = beside.pop(name)
        sent = isinstance(made, Def) and _receives(made, receiver)
        _RenamedImports(name, fresh, receiver if sent else "").visit(tree)
        beside[fresh] = made
        said.add(fresh)


class _RenamedImports(ast.NodeTransformer):
    def __init__(self, name: str, fresh: str, receiver: str) -> None:
        self._name = name
        self._fresh = fresh
        self._receiver = receiver

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._fresh if node.id == self._name else node.id
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr == self._name and _is_of_receiver(node, self._receiver):
            node.attr = self._fresh
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._fresh if node.name == self._name else node.name
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.name = self._fresh if node.name == self._name else node.name
        return self.generic_visit(node)
