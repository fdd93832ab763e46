"""Names that stand for two things, for the bench that counts them and the test that holds them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Files whose name is given by Python.
GIVEN = frozenset({"__init__", "__main__"})
#: The heading in docs/words.md under which the table of file names stands.
HEADING = "## Files of the same name"
#: The most rows that the table may have.
ROWS = 25

Places = Mapping[str, list[str]]


def classes(files: Iterable[tuple[Path, str]]) -> Places:
    """List where each class name of these files stands, nested classes too: two places are two things."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, text in files:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path}:{node.lineno}")
    return found


def stems(paths: Iterable[Path]) -> Places:
    """List where each file name stands."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        if path.stem not in GIVEN:
            found[path.stem].append(str(path))
    return found


def twice(places: Places) -> Places:
    """Return the names that stand in more than one place."""
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def table(page: str) -> dict[str, frozenset[str]]:
    """Read the table of docs/words.md: file names that may stand twice, each with its folders under src/."""
    allowed = {}
    _, _, section = page.partition(HEADING)
    for line in section.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            allowed[cells[0].strip("`")] = frozenset(folder.strip().strip("`") for folder in cells[1].split(","))
    return allowed


def _folders(places: Iterable[str]) -> frozenset[str]:
    """Return the folders of these files, without src/."""
    return frozenset(Path(place).parent.relative_to("src").as_posix() for place in places)


def ambiguous(files: Iterable[tuple[Path, str]], page: str) -> Places:
    """Return the class names and file names that stand for two things, without the pairs that the table allows."""
    files, allowed = list(files), table(page)
    found = {f"class {name}": where for name, where in twice(classes(files)).items()}
    for name, where in twice(stems(path for path, _ in files)).items():
        folders = _folders(where)
        if folders != allowed.get(name):
            found[f"file {name}"] = where
    return found


def stale(paths: Iterable[Path], page: str) -> list[str]:
    """List the rows of the table that name a file name which no longer stands twice in these folders."""
    found = twice(stems(paths))
    return [name for name, folders in table(page).items() if _folders(found.get(name, ())) != folders]
