"""Tests mirror modules: each has a test file of its name in the folder of its room, or a row that names another."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC, TESTS = ROOT / "src", ROOT / "tests"
_TABLE = json.loads((TESTS / "mirrors.json").read_text(encoding="utf-8"))
#: A module without a test file of its name, and the one that tests it.
ELSEWHERE: Mapping[str, str] = _TABLE["modules"]
#: Test files of more than a module: laws, kills, whole runs, pages. Each opens with its subject.
WIDER: Sequence[str] = _TABLE["others"]
_FUNCTION = re.compile(r"^[ \t]*(?:async )?def ", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:from (\S+) import (\([^)]*\)|[^\n(]+)|import (\S+))", re.MULTILINE)


def rooms() -> dict[str, Path]:
    """Each module of src/ that has a function, by its path there, with its place in tests/ (without batos)."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        module = path.relative_to(SRC)
        if not path.name.startswith("__") and _FUNCTION.search(path.read_text(encoding="utf-8")):
            found[module.as_posix()] = module.relative_to("batos") if module.parts[0] == "batos" else module
    return found


@cache
def files_of_tests() -> frozenset[str]:
    """The path of each file of tests under tests/."""
    return frozenset(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))


@cache
def names_by_folder() -> Mapping[str, list[str]]:
    """The names of the test files of each folder, without their suffix."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in files_of_tests():
        folder, _, name = each.rpartition("/")
        found[folder or "."].append(name.removesuffix(".py"))
    return found


def mirrors(place: Path) -> set[str]:
    """The test files of a module: that of its name, those of its name and a subject; else that of its package."""
    name = f"test_{place.stem}"
    own = names_by_folder().get(place.parent.as_posix(), [])
    found = {(place.parent / f"{each}.py").as_posix() for each in own if f"{each}_".startswith(f"{name}_")}
    package = (place.parent.parent / f"test_{place.parent.name}.py").as_posix()
    return found or ({package} & files_of_tests() if place.parent.name else set())


@cache
def imports(path: Path) -> frozenset[Path]:
    """The files of ours that a file imports."""
    return frozenset(_imported(path.read_text(encoding="utf-8")))


def _imported(text: str) -> Iterator[Path]:
    for package, names, module in _IMPORT.findall(text):
        inner = [f"{package}.{name}" for name in re.findall(r"\w+", names)] if package else []
        for dotted in (package or module, *inner):
            parts = dotted.split(".")
            path = (ROOT if parts[0] == "tests" else SRC).joinpath(*parts).with_suffix(".py")
            if path.is_file():
                yield path


@cache
def reached(test: str) -> frozenset[Path]:
    """All files that a test file imports, and what these import."""
    path = TESTS / test
    beside = [path.parents[number] / "conftest.py" for number in range(len(Path(test).parts))]
    found, waiting = set[Path](), [path, *(each for each in beside if each.is_file())]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(imports(each))
    return frozenset(found)


def test_each_module_has_its_tests() -> None:
    """A test file of its name, or a row; no row is left of a module that has one or is gone."""
    without = {module for module, place in rooms().items() if not mirrors(place)}
    assert without == ELSEWHERE.keys()


def test_a_row_names_a_file_that_comes_to_the_module() -> None:
    """The file is there, and it imports the module, or what does. A verb is loaded by its name when it is called."""
    files = files_of_tests()
    wrong = [
        f"{module}: {test}"
        for module, test in ELSEWHERE.items()
        if test not in files or not (module.startswith("batos/cli/") or SRC / module in reached(test))
    ]
    assert wrong == []


def test_each_test_file_has_its_subject() -> None:
    """A module or package of its name, a row of a module that it tests, a bench, or more than a module."""
    files = files_of_tests()
    mirroring = {test for place in rooms().values() for test in mirrors(place)} | {*ELSEWHERE.values()}
    benches = {f"bench/test_{path.stem}.py" for path in (ROOT / "bench").glob("*.py")}
    assert sorted(files - mirroring - benches) == list(WIDER)
