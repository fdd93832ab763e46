"""Names in a source: imports by their local names, names that a function binds, and free names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
