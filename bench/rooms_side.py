"""The rooms of the house in numbers: the lines, files and public names of each, held against its budget."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from prose_side import Function, statements

#: The lines, files and public names of a room.
Size: TypeAlias = Mapping[str, int]
Rooms: TypeAlias = Mapping[str, Size]

#: The most that each room may have; `house.py --write-budget` writes the sizes of now.
BUDGET = Path(__file__).with_name("rooms.json")
_UNTYPED_MAP = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")


def room_of(path: Path) -> str:
    """Return the room of a file under src/: a folder of batos, batos itself for a module beside them, or a package."""
    package, *inner = path.parts[1:-1]
    return inner[0] if package == "batos" and inner else package


def sizes(files: Iterable[tuple[Path, str]], trees: Iterable[tuple[Path, ast.Module]]) -> Rooms:
    """Return the size of every room: public names are functions, classes and constants at the top of its modules.

    `trees` are those of the files, in their order: parsing them is most of the work, and others need them too.
    """
    found: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"lines": 0, "files": 0, "names": 0})
    for (path, text), (_, tree) in zip(files, trees, strict=True):
        room = found[room_of(path)]
        room["lines"] += text.count("\n")
        room["files"] += 1
        room["names"] += sum(not name.startswith("_") for name in top_names(tree))
    return dict(sorted(found.items()))


def top_names(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines at its top."""
    for node in module.body:
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each]))
            yield from (each.id for each in parts if isinstance(each, ast.Name))


def read_budget(path: Path = BUDGET) -> Rooms:
    """Return the budget of every room."""
    found: Rooms = json.loads(path.read_text(encoding="utf-8"))
    return found


def write_budget(found: Rooms, path: Path = BUDGET) -> None:
    """Write the sizes of now as the budget, a line for each room."""
    rows = (f"  {json.dumps(room)}: {json.dumps(dict(size))}" for room, size in found.items())
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def over_budget(found: Rooms, budget: Rooms) -> list[str]:
    """List what rooms have beyond their budget, and rooms that have none."""
    nothing = dict.fromkeys(("lines", "files", "names"), 0)
    return [
        f"{room}: {have:,} {what}, budget {budget.get(room, nothing)[what]:,}"
        for room, size in found.items()
        for what, have in size.items()
        if have > budget.get(room, nothing)[what]
    ]


def untyped_maps(texts: Iterable[str]) -> int:
    """Count `dict[str, Any]` and `Mapping[str, Any]`."""
    return sum(len(_UNTYPED_MAP.findall(text)) for text in texts)


def untyped_functions(trees: Sequence[ast.Module]) -> float:
    """Return the share of functions with Any in their annotations."""
    functions = [node for tree in trees for node in statements(tree) if isinstance(node, Function)]
    return round(sum(map(_says_any, functions)) / max(len(functions), 1), 4)


def _says_any(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    notes = [each.annotation for each in arguments if each is not None and each.annotation is not None]
    notes += [function.returns] if function.returns is not None else []
    return any(isinstance(node, ast.Name) and node.id == "Any" for note in notes for node in ast.walk(note))
