"""Names that a source imports and binds, and a marker that depends on a flag, rewritten so that it can be judged."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from batos.guardian.policy import GuardianPolicy

Def = ast.FunctionDef | ast.AsyncFunctionDef
#: Nodes with a scope of their own.
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def imported_names(tree: ast.AST, module: str) -> dict[str, str]:
    """Return the local names of a module and of its imported members: name to member, "" for the module itself."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({each.asname or each.name: "" for each in node.names if each.name == module})
        elif isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            found.update({each.asname or each.name: each.name for each in node.names})
    return found


def member(node: ast.AST, known: dict[str, str]) -> str:
    """Return the module's member that an expression is, "" for none: `module.member`, or a name imported from it."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and known.get(node.value.id) == "":
        return node.attr
    return ""


def unimport(tree: ast.AST, module: str, only: str = "") -> None:
    """Take away the imports of a module, or of one member of it, that nothing uses any more."""
    known = imported_names(tree, module)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    gone = {name for name, taken in known.items() if name not in used and only in ("", taken)}
    for block in blocks(tree):
        for node in list(block):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.ImportFrom) and (node.module != module or node.level):
                continue
            node.names = [
                each
                for each in node.names
                if (each.asname or each.name) not in gone or (isinstance(node, ast.Import) and each.name != module)
            ]
            if not node.names:
                remove(block, node)


def assignment(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the only target of an assignment, annotated or not, and its value; (None, None) for anything else."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], node.value
    return (node.target, node.value) if isinstance(node, ast.AnnAssign) else (None, None)


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements; it may be changed meanwhile."""
    for node in list(ast.walk(tree)):
        for part in ("body", "orelse", "finalbody"):
            found = getattr(node, part, None)
            if isinstance(found, list) and (not found or isinstance(found[0], ast.stmt)):
                yield found


def remove(block: list[ast.stmt], node: ast.stmt) -> None:
    """Take a statement out of its block; a block that would be empty passes."""
    block[block.index(node)] = ast.copy_location(ast.Pass(), node)


def bound_by(function: Def) -> set[str]:
    """Return the names that a function binds itself: parameters, variables, imports, functions; not inner scopes'."""
    given = function.args
    found = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    found |= {each.arg for each in (given.vararg, given.kwarg) if each is not None}
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        found |= _binds(node)
        if not isinstance(node, SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return found


def _binds(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return {node.id}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(each.asname or each.name).partition(".")[0] for each in node.names}
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        return {node.name}
    return {node.rest} if isinstance(node, ast.MatchMapping) and node.rest else set()


def all_names(tree: ast.AST) -> set[str]:
    """Return every name, parameter and keyword that stands anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        found |= _binds(node)
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg) or (isinstance(node, ast.keyword) and node.arg):
            found.add(str(node.arg))
    return found


def only(tree: ast.AST, made: list[ast.Assign]) -> set[str]:
    """Return the variables of these assignments, each of one name, that nothing else binds."""
    targets = [each.targets[0] for each in made if len(each.targets) == 1]
    found = {each.id for each in targets if isinstance(each, ast.Name)}
    theirs = {id(each) for each in targets}
    return found - {name for node in ast.walk(tree) if id(node) not in theirs for name in _binds(node)}


def loaded_names(tree: ast.AST) -> set[str]:
    """Return every name that is looked up anywhere in it."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


#: Builtins that change nothing and send nothing, whatever they are given but a lazy iterator.
_STILL: Final = frozenset({
    "abs", "bool", "dict", "divmod", "float", "int", "len", "list", "max", "min", "print", "range", "repr", "round",
    "set", "sorted", "str", "sum", "tuple",
})  # fmt: skip
#: A block of statements, and the statements that it is given.
Change: TypeAlias = tuple[list[ast.stmt], list[ast.stmt]]


def is_marker(node: ast.AST, policy: GuardianPolicy) -> bool:
    """Test if a statement is the marker in its one form."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    return (
        isinstance(target, ast.Attribute)
        and target.attr == policy.marker
        and isinstance(target.value, ast.Name)
        and target.value.id == policy.receiver
        and isinstance(value, ast.Constant)
        and value.value is True
    )


@contextmanager
def _swap(changes: Iterable[Change]) -> Iterator[None]:
    """Give blocks other statements, one after the other, and their own again at the end."""
    before: list[Change] = []
    try:
        for block, new in changes:
            before.append((block, list(block)))
            block[:] = new
        yield
    finally:
        for block, old in reversed(before):
            block[:] = old


def sink_markers(method: Def, policy: GuardianPolicy) -> AbstractContextManager[None]:
    """Move each marker of the method behind what follows in its block and only speaks or computes, for a while."""
    return _swap(_sink_each(method, policy))


def _sink_each(method: Def, policy: GuardianPolicy) -> Iterator[Change]:
    for block in list(blocks(method)):
        for index, node in enumerate(block):
            rest = block[index + 1 :]
            if is_marker(node, policy) and rest and all(_is_still(each, policy) for each in rest):
                yield block, [*block[:index], *_mark_ends(rest, node)]
                break


def _mark_ends(rest: list[ast.stmt], marker: ast.stmt) -> list[ast.stmt]:
    """Put the marker before each `return` of the statements and at their end."""
    found: list[ast.stmt] = []
    for node in rest:
        if isinstance(node, ast.Return):
            return [*found, marker, node]
        if isinstance(node, ast.If):
            node = ast.copy_location(ast.If(node.test, _branch(node.body, marker), _branch(node.orelse, marker)), node)
        found.append(node)
    return [*found, marker]


def _branch(block: list[ast.stmt], marker: ast.stmt) -> list[ast.stmt]:
    """Put the marker before each `return` of a branch; where it goes on, the marker stands after it anyway."""
    return _mark_ends(block, marker) if any(isinstance(each, ast.Return | ast.If) for each in block) else block


def _is_still(node: ast.stmt, policy: GuardianPolicy) -> bool:
    """Test if a statement changes nothing but local names, and sends nothing but a line of the log."""
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.If):
        return _quiet(node.test, policy) and all(_is_still(each, policy) for each in (*node.body, *node.orelse))
    if isinstance(node, ast.Expr):
        return _quiet(node.value, policy)
    if isinstance(node, ast.Return):
        return node.value is None or _quiet(node.value, policy)
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Name) for each in node.targets) and _quiet(node.value, policy)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.value is not None and _quiet(node.value, policy)
    added = isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant | ast.JoinedStr)
    return (
        added and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and _quiet(node.value, policy)
    )


def _quiet(node: ast.expr, policy: GuardianPolicy) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda | ast.GeneratorExp):
            return False
        if isinstance(each, ast.Call) and not _quiet_call(each, policy):
            return False
    return True


def _quiet_call(node: ast.Call, policy: GuardianPolicy) -> bool:
    called = node.func
    if isinstance(called, ast.Name):
        return called.id in _STILL and not any(each.arg == "key" for each in node.keywords)
    if not isinstance(called, ast.Attribute):
        return False
    if isinstance(called.value, ast.Name) and called.value.id == policy.receiver:
        return called.attr == "log_"
    return called.attr in policy.plain_methods - policy.mutators


class Flag:
    """`changed = False`, `changed = True` where something is changed, and at the end `if changed:` the marker."""

    def __init__(self, method: Def, policy: GuardianPolicy) -> None:
        self._method = method
        self._policy = policy
        self.name = next((node.test.id for _, node in self._guards("") if isinstance(node.test, ast.Name)), "")
        self.found = bool(self.name) and self._is_plain()

    def _guards(self, name: str) -> list[tuple[list[ast.stmt], ast.If]]:
        """Find every `if flag: marker`, also with a `return` behind the marker, each with its block."""
        return [
            (block, node)
            for block in blocks(self._method)
            for node in block
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and name in ("", node.test.id)
            and not node.orelse
            and is_marker(node.body[0], self._policy)
            and (len(node.body) == 1 or (len(node.body) == 2 and isinstance(node.body[1], ast.Return)))
        ]

    def _is_plain(self) -> bool:
        """Test if the flag starts once, at the top of the method, and is then only set, and never elsewhere."""
        begun = [node for node in self._method.body if self._sets(node) is False]
        stores = [
            node for node in ast.walk(self._method) if isinstance(node, ast.Assign) and self._sets(node) is not None
        ]
        said = [
            node
            for node in ast.walk(self._method)
            if isinstance(node, ast.Name) and node.id == self.name and not isinstance(node.ctx, ast.Load)
        ]
        lowered = [node for node in stores if self._sets(node) is False]
        outward = any(
            isinstance(node, ast.Nonlocal | ast.Global) and self.name in node.names for node in ast.walk(self._method)
        )
        return (
            len(begun) == len(lowered) == 1 and len(stores) == len(said) and not outward and begun[0] is self._first()
        )

    def _first(self) -> ast.stmt | None:
        """Return the first statement of the method that names the flag."""
        return next((node for node in self._method.body if self.name in all_names(node)), None)

    def _sets(self, node: ast.AST) -> bool | None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Constant):
            return None
        target, value = node.targets[0], node.value.value
        return value if isinstance(target, ast.Name) and target.id == self.name and isinstance(value, bool) else None

    def as_marker(self) -> AbstractContextManager[None]:
        """Put the marker wherever the flag is set, and nothing where it is asked for, for a while."""
        return _swap(self._with_marks())

    def _with_marks(self) -> Iterator[Change]:
        marker = self._guards(self.name)[0][1].body[0]
        guards = {id(node) for _, node in self._guards(self.name)}
        for block in list(blocks(self._method)):
            new = [_without_marker(node) if isinstance(node, ast.If) and id(node) in guards else node for node in block]
            for index in range(len(new) - 1, -1, -1):
                if self._sets(new[index]) is True:
                    new.insert(_behind(new, index), marker)
            if new != block:
                yield block, new

    def mark_at_guards(self) -> AbstractContextManager[None]:
        """Put the marker where the flag is asked for, whatever its value, for a while."""
        guards = self._guards(self.name)
        return _swap(
            (block, [_marked_always(node) if each is node else each for each in block]) for block, node in guards
        )


def _without_marker(node: ast.If) -> ast.stmt:
    """Remove the marker from `if flag: marker`."""
    rest = node.body[1:] or [ast.copy_location(ast.Pass(), node)]
    return ast.copy_location(ast.If(node.test, rest, []), node)


def _marked_always(node: ast.If) -> ast.stmt:
    """Make `if flag: marker` come by the marker whatever the flag says."""
    marker, *rest = node.body
    return ast.copy_location(ast.If(node.test, node.body, [marker]), node) if rest else marker


def _behind(block: list[ast.stmt], index: int) -> int:
    """Return the end of the row of statements that are always done together with the one at this index."""
    end = index + 1
    while end < len(block) and isinstance(
        block[end], ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Delete
    ):
        end += 1
    return end
