"""Reads a source as it is commonly written: helpers, `with` and logging become what the dialect has."""

from __future__ import annotations

import ast
import builtins
from typing import Final

from batos.guardian.tidying import marking, record_classes
from batos.guardian.tidying.marking import Def

#: Nothing runs beside a method, so there is nothing to lock out.
_LOCKS: Final = frozenset({"Lock", "RLock"})


def unfold(tree: ast.Module) -> None:
    """Rewrite each `with` whose parts are all of these."""
    contexts = marking.imported_names(tree, "contextlib")
    threads = marking.imported_names(tree, "threading")
    locks = _locks(tree, threads)
    for block in marking.blocks(tree):
        for index in range(len(block) - 1, -1, -1):
            node = block[index]
            if isinstance(node, ast.With):
                block[index : index + 1] = _plain(node, contexts, threads, locks)
    _remove_locks(tree, threads, locks)
    for module in ("contextlib", "threading"):
        marking.unimport(tree, module)


def _locks(tree: ast.Module, threads: dict[str, str]) -> set[str]:
    """Return the variables that hold a lock and are used for nothing but `with`."""
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and marking.member(node.value.func, threads) in _LOCKS
    ]
    found = marking.only(tree, made)
    held = {id(item.context_expr) for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items}
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return found - {node.id for node in loads if id(node) not in held}


def _remove_locks(tree: ast.Module, threads: dict[str, str], locks: set[str]) -> None:
    for block in marking.blocks(tree):
        for node in list(block):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id in locks:
                marking.remove(block, node)


def _plain(node: ast.With, contexts: dict[str, str], threads: dict[str, str], locks: set[str]) -> list[ast.stmt]:
    """Return the statements that a `with` comes to; the `with` itself where one of its parts is none of these."""
    body = list(node.body)
    for item in reversed(node.items):
        given, target = item.context_expr, item.optional_vars
        called = given if isinstance(given, ast.Call) and not given.keywords else None
        kind = marking.member(called.func, contexts) if called is not None else ""
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
        return marking.member(given.func, threads) in _LOCKS and not given.args
    return isinstance(given, ast.Name) and given.id in locks


#: The name of each level in `self.log_`.
_LEVELS: Final = {
    "debug": "debug", "info": "info", "warning": "warning", "warn": "warning", "error": "error", "exception": "error",
    "critical": "error", "fatal": "error",
}  # fmt: skip
#: Set something up that the log has already.
_SETUP: Final = frozenset({"basicConfig", "setLevel", "disable", "captureWarnings"})


def rewrite_logging(tree: ast.Module, receiver: str) -> None:
    """Rewrite every use of `logging`, if all of them can be."""
    known = marking.imported_names(tree, "logging")
    if not known:
        return
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and marking.member(node.value.func, known) == "getLogger"
        and _is_still(node.value, known)
    ]
    lines = _LogLines(known, marking.only(tree, made), receiver)
    if lines.is_understood(tree):
        for block in marking.blocks(tree):
            for index, node in enumerate(block):
                block[index] = lines.statement(node)
        marking.unimport(tree, "logging")


class _LogLines:
    """Tells statements that log from those that set logging up."""

    def __init__(self, known: dict[str, str], loggers: set[str], receiver: str) -> None:
        self._known = known
        self._loggers = loggers
        self._receiver = receiver

    def is_understood(self, tree: ast.Module) -> bool:
        """Test if no part of it is used in another way."""
        kept = {
            id(node)
            for block in marking.blocks(tree)
            for each in block
            if self._is_ours(each)
            for node in ast.walk(each)
        }
        return not any(
            isinstance(node, ast.Name) and id(node) not in kept and (node.id in self._known or node.id in self._loggers)
            for node in ast.walk(tree)
        )

    def _is_ours(self, node: ast.stmt) -> bool:
        return self._level(node) != "" or self._is_setup(node)

    def _called_member(self, node: ast.stmt) -> str:
        """Return the member of `logging`, or of a logger, that a statement calls; "" for any other statement."""
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            return ""
        called = node.value.func
        if isinstance(called, ast.Attribute):
            base = called.value
            if isinstance(base, ast.Name) and base.id in self._loggers:
                return called.attr
            if isinstance(base, ast.Call) and marking.member(base.func, self._known) == "getLogger":
                return called.attr
        return marking.member(called, self._known)

    def _level(self, node: ast.stmt) -> str:
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or not call.args or any(isinstance(each, ast.Starred) for each in call.args):
            return ""
        one_mapping = len(call.args) == 2 and isinstance(call.args[1], ast.Dict)
        if one_mapping or not all(_is_still(each, self._known) for each in call.keywords):
            return ""
        return _LEVELS.get(self._called_member(node), "")

    def _is_setup(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            return isinstance(target, ast.Name) and target.id in self._loggers
        return self._called_member(node) in _SETUP and isinstance(node, ast.Expr) and _is_still(node.value, self._known)

    def statement(self, node: ast.stmt) -> ast.stmt:
        """Return the statement that it becomes."""
        level = self._level(node)
        if level and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            log = ast.Attribute(ast.Name(self._receiver, ast.Load()), "log_", ast.Load())
            said = ast.Call(log, [ast.Constant(level), _text(node.value.args)], [])
            return ast.copy_location(ast.Expr(said), node)
        return ast.copy_location(ast.Pass(), node) if self._is_setup(node) else node


def _is_still(node: ast.AST, known: dict[str, str]) -> bool:
    """Test if an expression can go: it waits for and binds nothing, and inside it only `logging` is called."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and each is not node]
    moving = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)
    ours = all(marking.member(each.func, known) for each in calls)
    return ours and not any(isinstance(each, moving) for each in ast.walk(node))


def _text(args: list[ast.expr]) -> ast.expr:
    """Return the text that is logged: `"%d of %d", one, two` with its values in it."""
    first, *values = args
    if values:
        return ast.BinOp(first, ast.Mod(), ast.Tuple(values, ast.Load()))
    if isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return first
    return ast.Call(ast.Name("str", ast.Load()), [first], [])


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
    taken = marking.bound_by(method) - beside.keys()
    moved = [node for name, node in beside.items() if _fits(name, node, beside, taken, marking.bound_by(method))]
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
    target, value = marking.assignment(node)
    return target.id if isinstance(target, ast.Name) and value is not None else ""


def _name_of(node: ast.stmt, beside: dict[str, ast.stmt]) -> str:
    return next(name for name, each in beside.items() if each is node)


def _fits(name: str, node: ast.stmt, beside: dict[str, ast.stmt], taken: set[str], inside: set[str]) -> bool:
    """Test if it means the same in the method as beside it: no name of the method's hides one of its own."""
    if name in inside or (name.startswith("__") and name.endswith("__")):
        return False
    if hasattr(builtins, name):
        return False  # until it is defined the name means the builtin
    own = marking.bound_by(node) if isinstance(node, Def) else set()
    return not (marking.loaded_names(node) - own - beside.keys()) & (taken - {"self"})


def _used_names(method: Def, moved: list[ast.stmt], beside: dict[str, ast.stmt], receiver: str) -> set[str]:
    """Return the names that the method uses, itself or by others: a second method that nothing calls is no helper."""
    used: set[str] = set()
    todo: list[ast.AST] = [method, *(node for node in moved if not isinstance(node, Def))]
    while todo:
        node = todo.pop()
        fresh = (marking.loaded_names(node) | _sent_selectors(node, receiver)) & beside.keys() - used
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
    said = marking.all_names(tree)
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


def tidy(tree: ast.Module, selector: str, receiver: str) -> ast.Module:
    """Tidy a tree in place and return it; what has no equal in the dialect stays as it is, and is refused as such.

    Only for a source of which it is known which method is wanted: of two functions one may be the other's helper.
    Guardian and cell both read a source through this, so that what is judged is what runs.
    """
    method = find_method(tree, selector, receiver)
    if method is None:
        return tree
    kinds = {type(node) for node in ast.walk(tree)}
    if ast.Import in kinds or ast.ImportFrom in kinds:
        rewrite_logging(tree, receiver)
    if ast.ClassDef in kinds:
        record_classes.plain(tree, receiver)
    if ast.With in kinds:
        unfold(tree)
    if len(tree.body) > 1:
        gather(tree, method, receiver)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Pass)]
    return ast.fix_missing_locations(tree)
