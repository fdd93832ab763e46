"""Reads a model's reply as the source of one method; corrections that change no meaning are made and reported.

A small model calls the method something else, forgets `self`, or writes an example of its use below it. Each change is
one of those listed here, so that whoever reads the method knows what the model wrote.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from batos.guardian.policy import SHIPPED
from batos.guardian.tidying import marking
from batos.guardian.tidying.marking import Def
from batos.methods.generation.coder_replies import find_code, tree_of

RECEIVER: Final = SHIPPED.receiver
_BUILTINS: Final = frozenset(dir(builtins))
_HEADER: Final = re.compile(
    r"^(?P<before>[ \t]*)(?P<kind>(?:async[ \t]+)?def[ \t]+)(?P<name>\w+)[ \t]*\((?P<inside>.*)$"
)
#: Changes are made one after the other until nothing is left to change; no reply needs more.
_MOST: Final = 12
#: The most statements that a change names.
_SHOWN: Final = 3
#: Statements that are no example of use: at the outermost level they have lost their place.
_LOST: Final = (ast.Return, ast.Raise, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """The source of a method as it was read from a reply, and what was changed, as short sentences."""

    source: str
    changes: tuple[str, ...] = ()


def read_source(text: str, selector: str, signature: str) -> WrittenSource:
    r"""Return the source of the method in a reply; what cannot be read as one is returned for the guardian to refuse.

    >>> read_source("def count(text):\n    return len(text)\n", "size_", "size_(self, text)").changes
    ('`count` was renamed to `size_`', '`self` was put first')
    """
    found = find_code(text, selector, f"def {signature}:" if signature else "")
    source, changes = found.code, list(found.changes)
    for _ in range(_MOST):
        changed = _change(source, selector, _parameters(signature))
        if changed is None:
            break
        source, told = changed
        changes.append(told)
    return WrittenSource(source, tuple(dict.fromkeys(changes)))


def _change(source: str, selector: str, wanted: list[str] | None) -> tuple[str, str] | None:
    """Return the source after the first change that it needs, and what this was; None if it needs none."""
    tree = tree_of(source)
    if tree is None:
        return None
    found = _unwrap_class(source, tree)
    if found is not None:
        return found
    method = _find(tree, selector, wanted)
    if method is None:
        return None
    return (
        _rename(source, tree, method, selector)
        or _put_receiver(source, method, wanted)
        or _rename_parameter(source, method, wanted)
        or _make_async(source, method)
        or _leave_out(source, tree, method)
        or _import_module(source, tree)
    )


def _find(tree: ast.Module, selector: str, wanted: list[str] | None) -> Def | None:
    """Return the function that is meant: of this name, else the only one, else the only one of these parameters."""
    functions = [node for node in tree.body if isinstance(node, Def)]
    named = [node for node in functions if node.name == selector]
    if named:
        return named[0] if len(named) == 1 else None
    alike = [node for node in functions if wanted is not None and _names(node) in (wanted, wanted[1:])]
    for chosen in (functions, alike):
        if len(chosen) == 1:
            return chosen[0]
    return None


def _unwrap_class(source: str, tree: ast.Module) -> tuple[str, str] | None:
    """Take the only function of a source out of a class that has nothing else."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if len(classes) != 1 or any(isinstance(node, Def) for node in tree.body):
        return None
    inside = [node for node in classes[0].body if not _is_text(node)]
    if len(inside) != 1 or not isinstance(inside[0], Def) or classes[0].decorator_list or inside[0].decorator_list:
        return None
    lines, method = source.split("\n"), inside[0]
    body = lines[method.lineno - 1 : method.end_lineno]
    indent = " " * method.col_offset
    if not all(line.startswith(indent) or not line.strip() for line in body):
        return None
    out = [line.removeprefix(indent) for line in body]
    whole = [*lines[: classes[0].lineno - 1], *out, *lines[classes[0].end_lineno :]]
    return "\n".join(whole), f"the method was taken out of the class `{classes[0].name}`"


def _rename(source: str, tree: ast.Module, method: Def, selector: str) -> tuple[str, str] | None:
    """Give the function the name that was asked for; where it calls itself, it sends the message."""
    if method.name == selector or method.decorator_list or selector in marking.all_names(tree):
        return None
    lines, old = source.split("\n"), method.name
    own = marking.bound_by(method)
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == old]
    if old in own or (calls and _in_format(method, old)):
        return None
    for node in sorted(calls, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        lines[node.lineno - 1] = _replace_at(lines[node.lineno - 1], node.col_offset, old, f"{RECEIVER}.{selector}")
    header = _HEADER.match(lines[method.lineno - 1])
    if header is None:
        return None
    lines[method.lineno - 1] = f"{header['before']}{header['kind']}{selector}({header['inside']}"
    return "\n".join(lines), f"`{old}` was renamed to `{selector}`"


def _put_receiver(source: str, method: Def, wanted: list[str] | None) -> tuple[str, str] | None:
    """Put the receiver before parameters that lack only it."""
    names = _names(method)
    lacks = wanted is not None and (wanted == [RECEIVER, *names] or (len(names) == 1 and len(wanted) == 2))
    if not lacks or RECEIVER in names or method.args.posonlyargs or method.decorator_list:
        return None
    lines = source.split("\n")
    header = _HEADER.match(lines[method.lineno - 1])
    if header is None:
        return None
    inside = header["inside"]
    glue = "" if inside.lstrip().startswith(")") else ", "
    lines[method.lineno - 1] = f"{header['before']}{header['kind']}{header['name']}({RECEIVER}{glue}{inside}"
    return "\n".join(lines), f"`{RECEIVER}` was put first"


def _rename_parameter(source: str, method: Def, wanted: list[str] | None) -> tuple[str, str] | None:
    """Give the only parameter the name that was asked for; the method's own name for it stands for the same."""
    names = _names(method)
    if wanted is None or len(names) != 2 or len(wanted) != 2 or names[0] != RECEIVER or names[1] == wanted[1]:
        return None
    old, new = names[1], wanted[1]
    if "*" in f"{old}{new}" or new in marking.all_names(method) or method.args.posonlyargs or method.args.kwonlyargs:
        return None
    lines, first = source.split("\n"), method.body[0]
    given = method.args.args[1]
    at, line = given.lineno - 1, lines[given.lineno - 1]
    if first.lineno == method.lineno or not line.encode()[given.col_offset :].decode().startswith(old):
        return None
    lines[at] = _replace_at(line, given.col_offset, old, new)
    place = first.end_lineno if _is_text(first) and len(method.body) > 1 else first.lineno - 1
    if isinstance(first, Def | ast.ClassDef) and first.decorator_list:
        return None
    indent = " " * first.col_offset
    lines.insert(place or 0, f"{indent}{old} = {new}")
    return "\n".join(lines), f"the parameter `{old}` was renamed to `{new}`"


def _make_async(source: str, method: Def) -> tuple[str, str] | None:
    """Write `async def` where the method itself awaits."""
    if isinstance(method, ast.AsyncFunctionDef) or not any(_awaits(node) for node in method.body):
        return None
    lines = source.split("\n")
    line = lines[method.lineno - 1]
    at = len(line) - len(line.lstrip())
    lines[method.lineno - 1] = f"{line[:at]}async {line[at:]}"
    return "\n".join(lines), "`def` became `async def`"


def _leave_out(source: str, tree: ast.Module, method: Def) -> tuple[str, str] | None:
    """Leave out what stands beside the method and has no part in it: examples of its use, other functions, imports."""
    used = _find_uses(tree, method)
    gone = [node for node in tree.body if node is not method and not _has_part(node, used, method)]
    lines = source.split("\n")
    places = {at for node in gone for at in range(_first_line(node), (node.end_lineno or node.lineno) + 1)}
    kept = {at for node in tree.body if node not in gone for at in range(_first_line(node), (node.end_lineno or 0) + 1)}
    if not gone or places & kept:
        return None
    left = [line for at, line in enumerate(lines, 1) if at not in places]
    what = ", ".join(f"`{_short(ast.unparse(node))}`" for node in gone[:_SHOWN])
    more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
    return "\n".join(left).strip("\n") + "\n", f"left out, because the method does not use it: {what}{more}"


def _import_module(source: str, tree: ast.Module) -> tuple[str, str] | None:
    """Import a module of the dialect of which the source uses names, and which nothing else is called."""
    bound = {name for node in ast.walk(tree) for name in _bindings(node)}
    uses: dict[str, set[str]] = {}
    bases = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(node.value.id, set()).add(node.attr)
            bases.add(id(node.value))
    alone = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in bases}
    for name, taken in sorted(uses.items()):
        if name in SHIPPED.modules and name not in bound | alone and taken <= SHIPPED.modules[name]:
            return f"import {name}\n\n{source}", f"`import {name}` was added"
    return None


# -- the tree


def _find_uses(tree: ast.Module, method: Def) -> set[str]:
    """Return the names that the method uses and does not bind, itself or by what stands beside it."""
    used: set[str] = set()
    beside: Mapping[str, list[ast.stmt]] = _definitions(tree, method)
    todo: list[ast.AST] = [method]
    outward = {name for node in ast.walk(method) if isinstance(node, ast.Global) for name in node.names}
    hidden = marking.bound_by(method) - outward
    while todo:
        node = todo.pop()
        fresh = _names_in(node) - used - (hidden if node is method else set())
        used |= fresh
        todo.extend(each for name in fresh for each in beside.get(name, ()))
    return used


def _definitions(tree: ast.Module, method: Def) -> dict[str, list[ast.stmt]]:
    found: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _defines(node) if node is not method else ():
            found.setdefault(name, []).append(node)
    return found


def _names_in(tree: ast.AST) -> set[str]:
    """Return every name that stands in a tree, as a name or behind the receiver."""
    nodes = list(ast.walk(tree))
    own = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == RECEIVER
    }
    return own | {node.id for node in nodes if isinstance(node, ast.Name)}


def _has_part(node: ast.stmt, used: set[str], method: Def) -> bool:
    """Test if a statement beside the method is needed by it, or may change what it needs."""
    names = _defines(node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "*" in names or bool(names & used)
    if names:
        return bool(names & used) or (bool(names & {method.name}) and not _names_in(node) & {method.name})
    if _is_text(node) or isinstance(node, _LOST):
        return True
    loads = _names_in(node) - {method.name}
    is_main = isinstance(node, ast.If) and "__name__" in _names_in(node.test)
    return bool(loads & used - _BUILTINS) and not is_main


def _defines(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds at its own level."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    return {name for each in ast.walk(node) for name in _bindings(each)}


def _bindings(node: ast.AST) -> Iterable[str]:
    """Return the names that a node binds by itself."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(each.asname or each.name).partition(".")[0] for each in node.names]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    return (node.arg,) if isinstance(node, ast.arg) else ()


def _awaits(node: ast.AST) -> bool:
    """Test if a statement awaits, in the method's own scope."""
    if isinstance(node, marking.SCOPES):
        return False
    if isinstance(node, ast.Await | ast.AsyncFor):
        return True
    if isinstance(node, ast.comprehension) and node.is_async:
        return True
    return any(map(_awaits, ast.iter_child_nodes(node)))


def _names(method: Def) -> list[str]:
    given = method.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [each.arg for each in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def _parameters(signature: str) -> list[str] | None:
    """Return the names of a signature's parameters, the receiver first; None if there is no signature."""
    tree = tree_of(f"def {signature}: ...")
    made = tree.body[0] if tree else None
    return _names(made) if isinstance(made, ast.FunctionDef) else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _in_format(tree: ast.AST, name: str) -> bool:
    """Test if a name stands in an f-string, whose parts have no places of their own."""
    return any(name in _names_in(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr))


def _first_line(node: ast.stmt) -> int:
    decorated: Iterator[ast.expr] = iter(getattr(node, "decorator_list", ()))
    return min([node.lineno, *(each.lineno for each in decorated)])


def _replace_at(line: str, column: int, old: str, new: str) -> str:
    """Replace a name in a line at a column, which counts bytes."""
    raw = line.encode()
    head, tail = raw[:column].decode(), raw[column:].decode()
    return f"{head}{new}{tail.removeprefix(old)}"


def _short(code: str) -> str:
    first = " ".join(code.split())
    return first if len(first) <= 40 else f"{first[:37]}..."
