"""The house budget as a test: what docs/decisions/0003-house-budget.md promises is measured here, file by file."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.fixed_seconds import fixed_seconds

import house
from batos.cli.imports import pause_collector
from prose_side import all_nodes, statements

ROOT = Path(__file__).resolve().parents[1]
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "core", "manager", "engine", "base", "common", "misc"}
LATER = ("TO" + "DO", "FIX" + "ME")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """One file of ours: its path from the checkout, its text, its tree, and the nodes of that (walked once for all)."""

    path: Path
    text: str
    tree: ast.Module
    nodes: Sequence[ast.AST]
    functions: Sequence[Function]

    @property
    def in_tests(self) -> bool:
        return self.path.parts[0] == "tests"


Rule = Callable[[Source], Iterator[str]]

#: Files that are lists of one kind of thing, which is looked up in one place: they may be longer.
LONGER = {"errors.py": 500}


def read(path: Path, text: str) -> Source:
    tree = ast.parse(text)
    nodes = list(all_nodes(tree))
    return Source(path, text, tree, nodes, [node for node in nodes if isinstance(node, Function)])


def file_length(source: Source) -> Iterator[str]:
    limit = 500 if source.in_tests else LONGER.get(source.path.name, 400)
    lines = source.text.count("\n")
    if lines > limit:
        yield f"{lines} lines, at most {limit}"


def function_length(source: Source) -> Iterator[str]:
    for function in source.functions:
        first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
        lines = (function.end_lineno or 0) - first.lineno + 1 + (function.body[0].lineno - function.lineno)
        if lines > 50:
            yield f"line {function.lineno}: {function.name} has {lines} lines, at most 50"


def parameter_count(source: Source) -> Iterator[str]:
    for function in source.functions:
        given = function.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > 6 and not (source.in_tests and function.name.startswith("test_")):
            yield f"line {function.lineno}: {function.name} takes {count} parameters, at most 6"


def opening_sentence(source: Source) -> Iterator[str]:
    opening = (ast.get_docstring(source.tree) or "").partition("\n")[0]
    if not opening.endswith("."):
        yield "a module opens with one sentence on one line"


def telling_name(source: Source) -> Iterator[str]:
    for part in source.path.with_suffix("").parts:
        if part.strip("_") in EMPTY_NAMES:
            yield f"the name {part!r} says nothing"


def imports_at_top(source: Source) -> Iterator[str]:
    if not source.in_tests and source.path.as_posix().startswith(("src/batos/cli/", "src/batos/pytest_plugin.py")):
        return  # a command loads its part of the system when it is called
    for function in source.functions:
        for node in statements(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"line {node.lineno}: an import inside {function.name}"


def swallowed_errors(source: Source) -> Iterator[str]:
    lines = source.text.splitlines()
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler) or "#" in lines[node.lineno - 1]:
            continue
        caught = [] if node.type is None else [one.id for one in all_nodes(node.type) if isinstance(one, ast.Name)]
        broad = not caught or bool({"Exception", "BaseException"} & set(caught))
        if broad and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in all_nodes(node)):
            yield f"line {node.lineno}: catches every error, raises it no further as it is, and does not say why"


def left_for_later(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if any(word in line for word in LATER):
            yield f"line {number}: left for later"


def given_lazily(node: ast.stmt) -> bool:
    """Whether a statement is the version, or belongs to names that are loaded when they are asked for (PEP 562)."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in {"__version__", "__all__", "TYPE_CHECKING", "_PLACES"}
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse
    if isinstance(node, ast.FunctionDef):
        return node.name == "__getattr__"
    return ast.unparse(node) == "from importlib import import_module"


def bare_package(source: Source) -> Iterator[str]:
    if source.path.name != "__init__.py":
        return
    rest = source.tree.body[1:]
    if source.path == Path("src/batos/__init__.py"):
        rest = [node for node in rest if not given_lazily(node)]
    if rest:
        yield f"line {rest[0].lineno}: more than a docstring"


def no_patching(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if any("mock" in name for name in (*(one.name for one in node.names), module)):
                yield f"line {node.lineno}: a mock: the seam should be an argument"
        if not isinstance(node, ast.Attribute) or node.attr not in {"setattr", "setitem"}:
            continue
        if ast.unparse(node.value) == "monkeypatch":
            yield f"line {node.lineno}: patches an attribute: the seam should be an argument"


#: Objects whose fields others assign: what the image and a cycle keep, and what libraries set by attributes.
STATE = {"thought", "conversation", "synthesis"}
FOREIGN = {"socket", "_socket", "router", "sys", "root", "request", "response"}


def _made_in(class_: ast.ClassDef) -> set[str]:
    """The fields that a class declares: in its body, its slots, its constructor, and what the constructor calls."""
    bodies = {each.name: each for each in class_.body if isinstance(each, Function)}
    builders = [bodies[name] for name in ("__init__", "__post_init__") if name in bodies]
    for builder in builders:
        calls = [node.func for node in all_nodes(builder) if isinstance(node, ast.Call)]
        named = {each.attr for each in calls if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"}
        builders += [bodies[name] for name in sorted(named) if name in bodies and bodies[name] not in builders]
    own = {ast.unparse(node.target) for node in class_.body if isinstance(node, ast.AnnAssign)}
    for node in class_.body:
        if isinstance(node, ast.Assign):
            own |= {each.id for each in node.targets if isinstance(each, ast.Name)}
            own |= {str(each.value) for each in all_nodes(node.value) if isinstance(each, ast.Constant)}
    fields = (node for builder in builders for node in all_nodes(builder) if isinstance(node, ast.Attribute))
    return own | {node.attr for node in fields if ast.unparse(node.value) == "self"}


def fields_set_later(source: Source) -> Iterator[str]:
    """A field is declared by its class, and assigned by its object or where that is made, or in its class's module.

    Modules that rewrite syntax trees are left out, and the rooms of records, which are what changes.
    """
    path = source.path.as_posix()
    imported = {name.name for node in source.nodes if isinstance(node, ast.Import) for name in node.names}
    if not path.startswith("src/batos/") or {"image", "records"}.intersection(source.path.parts) or "ast" in imported:
        return
    classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
    declared = set().union(*map(_made_in, classes))
    for function in source.functions:
        made = {
            ast.unparse(target)
            for node in all_nodes(function)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
        }
        for node in all_nodes(function):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store) or node.attr in declared:
                continue
            owner = ast.unparse(node.value)
            if owner not in made and owner.rpartition(".")[2] not in STATE | FOREIGN:
                yield f"line {node.lineno}: {function.name} sets {ast.unparse(node)}, which its own class does not"


def stated_facts(source: Source) -> Iterator[str]:
    if not source.in_tests:
        return
    for function in source.functions:
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"line {function.lineno}: {function.name} states no fact"


def no_fixed_seconds(source: Source) -> Iterator[str]:
    if source.in_tests:
        for number, fault in fixed_seconds(source.tree, source.nodes, source.text):
            yield f"line {number}: {fault}: see tests/waiting.py, or say at the line why it holds at any pace"


def own_folders(source: Source) -> Iterator[str]:
    """A folder that all tests of a worker share: one finds what another left there, in some orders alone."""
    if source.in_tests and source.path.name != "conftest.py":
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "getbasetemp":
                yield f"line {node.lineno}: a folder shared by all tests: take tmp_path or reused_folder"


RULES: tuple[Rule, ...] = (
    file_length,
    function_length,
    parameter_count,
    opening_sentence,
    telling_name,
    imports_at_top,
    swallowed_errors,
    left_for_later,
    bare_package,
    no_patching,
    fields_set_later,
    stated_facts,
    no_fixed_seconds,
    own_folders,
)


def sources() -> Iterator[Source]:
    for top in ("src", "tests", "bench"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield read(path.relative_to(ROOT), path.read_text(encoding="utf-8"))


def test_the_house_is_within_its_budget() -> None:
    """No file of src, tests or bench breaks a rule; a file is read once for all rules, as reading it is the work."""
    with pause_collector():  # which would look through the trees again and again
        faults = [
            f"{source.path}: {rule.__name__}: {fault}"
            for source in sources()
            for rule in RULES
            for fault in rule(source)
        ]
    assert faults == []


def body(lines: int) -> str:
    return "def long():\n" + "    pass\n" * lines


BAD: tuple[tuple[Rule, str, str], ...] = (
    (file_length, "src/a.py", "\n" * 401),
    (file_length, "tests/a.py", "\n" * 501),
    (function_length, "src/a.py", body(51)),
    (function_length, "src/a.py", "class A:\n    async def long(self):\n" + "        pass\n" * 51),
    (parameter_count, "src/a.py", "def f(a, b, c, /, d, e, *, g, h): ..."),
    (parameter_count, "src/a.py", "class A:\n    def f(self, a, b, c, d, e, f, g): ..."),
    (opening_sentence, "src/a.py", "import os"),
    (opening_sentence, "src/a.py", '"""A sentence that is broken\nover two lines."""'),
    (telling_name, "src/batos/memory_/utils.py", ""),
    (telling_name, "src/batos/core/a.py", ""),
    (imports_at_top, "src/a.py", "def f():\n    import os"),
    (imports_at_top, "tests/cli/a.py", "async def f():\n    from os import path"),
    (swallowed_errors, "src/a.py", "try: ...\nexcept Exception:\n    pass"),
    (swallowed_errors, "src/a.py", "try: ...\nexcept (OSError, BaseException) as error:\n    print(error)"),
    (swallowed_errors, "src/a.py", "try: ...\nexcept:\n    pass"),
    (swallowed_errors, "src/a.py", "try: ...\nexcept Exception as error:\n    raise ValueError from error"),
    (left_for_later, "src/a.py", f"# {LATER[0]}: think"),
    (bare_package, "src/batos/objects/__init__.py", '"""Objects."""\nfrom os import path'),
    (bare_package, "src/batos/objects/__init__.py", '"""Objects."""\n__version__ = "1"'),
    (bare_package, "src/batos/__init__.py", '"""BAT OS."""\nfrom batos.uvm import UVM'),
    (bare_package, "src/batos/__init__.py", '"""BAT OS."""\nif TYPE_CHECKING: ...\nelse:\n    import zmq'),
    (fields_set_later, "src/batos/a.py", "def wire(door):\n    door.hears = 1"),
    (fields_set_later, "src/batos/a.py", "class A:\n    def begin(self):\n        self.task = 1"),
    (fields_set_later, "src/batos/a.py", "class A:\n    def begin(self):\n        self.mind.name: str = ''"),
    (no_patching, "tests/a.py", "from unittest.mock import patch"),
    (no_patching, "tests/a.py", "from unittest import mock"),
    (no_patching, "tests/a.py", "import unittest.mock"),
    (no_patching, "tests/a.py", "monkeypatch.setattr('os.sep', 'x')"),
    (stated_facts, "tests/a.py", "async def test_it(): ..."),
    (no_fixed_seconds, "tests/a.py", "await asyncio.sleep(0.05)"),
    (no_fixed_seconds, "tests/a.py", "async def f():\n    async with asyncio.timeout(10): ..."),
    (no_fixed_seconds, "tests/a.py", "await asyncio.wait_for(it, 2 * 5 + 1)"),
    (no_fixed_seconds, "tests/a.py", "process.communicate(timeout=20)"),
    (no_fixed_seconds, "tests/a.py", "thread.join(5)"),
    (no_fixed_seconds, "tests/a.py", "open_image(lease=1.0)"),
    (no_fixed_seconds, "tests/a.py", "LEASE, LONGER = 1.0, 2.0\nopen_image(lease=LONGER)"),
    (no_fixed_seconds, "tests/a.py", "assert time.monotonic() - began < LEASE"),
    (own_folders, "tests/a.py", "path = tmp_path_factory.getbasetemp() / 'any'"),
)
GOOD: tuple[tuple[Rule, str, str], ...] = (
    (function_length, "src/a.py", 'def f():\n    """' + "\n" * 60 + '    """\n    return 1'),
    (parameter_count, "src/a.py", "class A:\n    def f(self, a, b, c, d, e, f): ..."),
    (imports_at_top, "src/batos/cli/entry.py", "def f():\n    import os"),
    (
        swallowed_errors,
        "src/a.py",
        "try: ...\nexcept Exception:  # an observer must not break what it observes\n    pass",
    ),
    (swallowed_errors, "src/a.py", "try: ...\nexcept BaseException:\n    close()\n    raise"),
    (fields_set_later, "src/batos/a.py", "class A:\n    done: bool = False\ndef end(a):\n    a.done = True"),
    (fields_set_later, "src/batos/a.py", "def make():\n    door = Door()\n    door.hears = 1\n    return door"),
    (fields_set_later, "src/batos/a.py", "class A:\n    def __init__(self):\n        self.name: str"),
    (fields_set_later, "src/batos/records/a.py", "def retire(lineage):\n    lineage.retired = True"),
    (bare_package, "src/batos/__init__.py", '"""BAT OS."""\n__version__ = "1"'),
    (bare_package, "src/batos/__init__.py", '"""BAT OS."""\nif TYPE_CHECKING:\n    from batos.uvm import UVM'),
    (no_fixed_seconds, "tests/a.py", "await asyncio.sleep(0)"),
    (no_fixed_seconds, "tests/a.py", "process.wait(timeout=HANG)"),
    (no_fixed_seconds, "tests/a.py", "','.join(['a', *(f'{n} of 5' for n in names)])"),
    (no_fixed_seconds, "tests/a.py", "sink(timeout=0.2)  # any pace: the server never answers"),
    (no_fixed_seconds, "src/a.py", "await asyncio.sleep(0.05)"),
)


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_a_rule_finds_what_it_forbids(rule: Rule, path: str, text: str) -> None:
    """Each rule can fail: it finds the fault in a source that has it."""
    assert list(rule(read(Path(path), text)))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_a_rule_lets_pass_what_it_allows(rule: Rule, path: str, text: str) -> None:
    """What the decision allows by name is not a fault."""
    assert list(rule(read(Path(path), text))) == []


def test_every_rule_is_shown_to_fail() -> None:
    """No rule stands without a source that breaks it."""
    assert {rule for rule, _, _ in BAD} == set(RULES)


#: Paragraphs of a neighbour that would be too long with them: none may come to these.
PARAGRAPHS = frozenset[str]()


def test_a_module_is_no_paragraph_of_its_only_reader() -> None:
    """A module under 60 lines has two importers, and a folder at most 25 modules; what does not hold yet is listed.

    No room goes beyond its lines, files and public names of bench/rooms.json without others gone elsewhere.
    """
    with pause_collector():
        found = house.layout_now()
    assert {figure: frozenset(each) for figure, each in found.items()} == {
        "single_importer_small": PARAGRAPHS,
        "wide_folders": frozenset(),
        "over_budget": frozenset(),
    }


def test_imports_point_downward() -> None:
    """The contracts in pyproject.toml hold: layers, no cycles, who may know the daemon's client and the database."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
