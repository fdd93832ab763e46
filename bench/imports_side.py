"""The imports of the house as a graph: cycles, and arrows that point upward in the order of the layers."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from prose_side import Source, parse, statements

Graph = Mapping[str, frozenset[str]]

#: Lines below which a module needs two importers, and the most modules of a folder.
SMALL, WIDE = 60, 25


def module_of(path: Path) -> str:
    """Return the dotted name of a file under src/."""
    parts = path.relative_to("src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(files: Iterable[tuple[Path, Source]]) -> Graph:
    """Return each module with those it imports: imports inside functions and for type checking count as well."""
    known = {module_of(path): source for path, source in files}
    return {name: frozenset(_imported_modules(source, known)) - {name} for name, source in known.items()}


def _imported_modules(source: Source, known: Container[str]) -> Iterable[str]:
    """Yield the known modules that a source imports; all imports of the house are absolute, which ruff holds."""
    for node in statements(parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def cycles(imports: Graph) -> list[list[str]]:
    """List the groups of modules that import each other in a circle (strongly connected components, Kosaraju)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(imports):
        _visit(start, imports, seen, order)
    backward: dict[str, set[str]] = {name: set() for name in imports}
    for name, targets in imports.items():
        for target in targets:
            backward[target].add(name)
    seen.clear()
    groups = []
    for start in reversed(order):
        group: list[str] = []
        _visit(start, backward, seen, group)
        groups.append(sorted(group))
    return [group for group in groups if len(group) > 1]


def _visit(start: str, imports: Mapping[str, Iterable[str]], seen: set[str], order: list[str]) -> None:
    """Append to `order` each module that is reached from `start` and not yet seen, after all that it reaches."""
    if start in seen:
        return
    seen.add(start)
    stack = [(start, iter(sorted(imports[start])))]
    while stack:
        name, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            order.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(sorted(imports[following]))))


def small_single_importers(imports: Graph, lengths: Mapping[str, int]) -> list[str]:
    """List the modules of fewer than SMALL lines that one module alone imports: each is a paragraph of that one."""
    importers = {name: [each for each, targets in imports.items() if name in targets] for name in imports}
    return [name for name in sorted(imports) if lengths[name] < SMALL and len(importers[name]) == 1]


def wide_folders(paths: Iterable[Path]) -> list[str]:
    """List the folders with more than WIDE modules; what opens a package is none."""
    counts = Counter(path.parent.as_posix() for path in paths if not path.name.startswith("__"))
    return sorted(folder for folder, count in counts.items() if count > WIDE)


def longest_chain(imports: Graph) -> int:
    """Return the number of modules in the longest chain of imports; a graph with a cycle has none that ends."""
    lengths: dict[str, int] = {}
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(imports):
        _visit(start, imports, seen, order)
    for name in order:  # after all that it imports
        lengths[name] = 1 + max((lengths.get(target, 0) for target in imports[name]), default=0)
    return max(lengths.values(), default=0)


def contracts(pyproject: Path) -> list[tuple[str, list[list[str]], list[bool]]]:
    """Read the contracts of layers: for each container its layers from the top, and if a layer's rooms may not meet."""
    found = []
    linter = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]
    for contract in linter["contracts"]:
        if contract["type"] != "layers":
            continue
        layers = [[name.strip(" ()") for name in re.split("[|:]", layer)] for layer in contract["layers"]]
        apart = ["|" in layer for layer in contract["layers"]]
        found += [(container, layers, apart) for container in contract.get("containers", [""])]
    return found


def upward(imports: Graph, pyproject: Path) -> list[str]:
    """List the imports that point upward, or sideways between rooms that are to know nothing of each other."""
    faults = []
    for container, layers, apart in contracts(pyproject):
        floor = {name: number for number, layer in enumerate(layers) for name in layer}
        for name, targets in sorted(imports.items()):
            for target in sorted(targets):
                rooms = _room(name, container, floor), _room(target, container, floor)
                if rooms[0] is None or rooms[1] is None or rooms[0] == rooms[1]:
                    continue
                above, below = floor[rooms[0]], floor[rooms[1]]
                if above > below or (above == below and apart[above]):
                    faults.append(f"{name} imports {target}")
    return faults


def _room(module: str, container: str, floor: Mapping[str, int]) -> str | None:
    """Return the layer of a contract that a module belongs to, if the contract has one for it."""
    prefix = f"{container}." if container else ""
    if not module.startswith(prefix):
        return None
    inner = module.removeprefix(prefix).split(".")
    names: Sequence[str] = [".".join(inner[:length]) for length in range(len(inner), 0, -1)]
    return next((name for name in names if name in floor), None)
