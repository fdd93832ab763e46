"""The `logging` of a source becomes `self.log_`; loggers, and what only sets them up, go."""

from __future__ import annotations

import ast
from typing import Final

from batos.guardian.tidying import bound_names

#: The name of each level in `self.log_`.
_LEVELS: Final = {
    "debug": "debug", "info": "info", "warning": "warning", "warn": "warning", "error": "error", "exception": "error",
    "critical": "error", "fatal": "error",
}  # fmt: skip
#: Set something up that the log has already.
_SETUP: Final = frozenset({"basicConfig", "setLevel", "disable", "captureWarnings"})


def rewrite_logging(tree: ast.Module, receiver: str) -> None:
    """Rewrite every use of `logging`, if all of them can be."""
    known = bound_names.imported_names(tree, "logging")
    if not known:
        return
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and bound_names.member(node.value.func, known) == "getLogger"
        and _is_still(node.value, known)
    ]
    lines = _LogLines(known, bound_names.only(tree, made), receiver)
    if lines.is_understood(tree):
        for block in bound_names.blocks(tree):
            for index, node in enumerate(block):
                block[index] = lines.statement(node)
        bound_names.unimport(tree, "logging")


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
            for block in bound_names.blocks(tree)
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
            if isinstance(base, ast.Call) and bound_names.member(base.func, self._known) == "getLogger":
                return called.attr
        return bound_names.member(called, self._known)

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
    ours = all(bound_names.member(each.func, known) for each in calls)
    return ours and not any(isinstance(each, moving) for each in ast.walk(node))


def _text(args: list[ast.expr]) -> ast.expr:
    """Return the text that is logged: `"%d of %d", one, two` with its values in it."""
    first, *values = args
    if values:
        return ast.BinOp(first, ast.Mod(), ast.Tuple(values, ast.Load()))
    if isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return first
    return ast.Call(ast.Name("str", ast.Load()), [first], [])
