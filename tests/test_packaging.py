"""What is packed, pinned and promised agrees: versions, dependencies with their reasons, and what the wheel needs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG

import batos
from prose_side import statements

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"^[A-Za-z0-9._-]+")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def plain(requirement: str) -> str:
    """The name that a requirement asks for, as registries compare it."""
    found = NAME.match(requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {plain(name): version for name, version in found}


def test_the_version_has_one_source() -> None:
    """The installed distribution and the changelog's newest entry name the version of the package."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == batos.__version__ == metadata.version("batos")


@pytest.mark.parametrize("group", ["run time", "test", "dev", "bench", "real", "zeo", "postgres"])
def test_every_dependency_is_pinned(group: str) -> None:
    """constraints.txt has an exact version of all that the project asks for by name, so of all that make installs."""
    wanted = PROJECT["dependencies"] if group == "run time" else PROJECT["optional-dependencies"][group]
    assert [name for name in map(plain, wanted) if name not in {*pins(), "batos"}] == []


def test_pins_name_no_place() -> None:
    """A pin is a name and an exact version: no address, no range, no marker."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line)] == []


def test_every_dependency_has_its_reason() -> None:
    """The table of decision 0001 lists the runtime dependencies, no more and no fewer."""
    decision = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    table = decision.partition("## Refused")[0]
    assert sorted(map(plain, re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))) == sorted(
        map(plain, PROJECT["dependencies"])
    )


def test_the_extra_for_a_real_model_has_its_reasons() -> None:
    """The table of extras in decision 0001 lists what `real` asks for."""
    decision = (ROOT / "docs/decisions/0001-dependencies.md").read_text(encoding="utf-8")
    table = decision.partition("## The extra `real`")[2].partition("\n## ")[0]
    wanted = {plain(name) for name in PROJECT["optional-dependencies"]["real"]}
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == wanted


def test_the_extras_for_servers_have_their_reasons() -> None:
    """The table of decision 0077 lists what both extras ask for."""
    decision = (ROOT / "docs/decisions/0077-storage-servers.md").read_text(encoding="utf-8")
    extras = PROJECT["optional-dependencies"]
    wanted = {plain(name) for extra in ("zeo", "postgres") for name in extras[extra]}
    assert set(map(plain, re.findall(r"^\| `([^`]+)` \|", decision, re.MULTILINE))) == wanted


def imported() -> set[str]:
    """Every module that the package imports and that is neither ours nor the standard library's.

    The plugin of pytest is left out: pytest loads it.
    """
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        if path.name == "pytest_plugin.py":
            continue
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return {
        name
        for name in found
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "batos", "model_files", "ollama_emulator"}
    }


def test_what_is_imported_is_declared() -> None:
    """No import rests on a package that is there only because another one wants it."""
    declared = set(map(plain, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["real"]]))
    owners = metadata.packages_distributions()
    missing = set()
    for name in imported():
        top, _, rest = name.partition(".")
        # a dependency may be a package that only names the parts it is made of
        named = plain(f"{top}.{rest.partition('.')[0]}".rstrip("."))
        possible = {plain(one) for one in owners.get(top, [])} | {named}
        if not possible & declared:
            missing.add(name)
    assert missing == set()


def test_the_package_carries_its_data() -> None:
    """The codex and the marker of typed packages lie inside the package, where a wheel finds them."""
    package = resources.files("batos")
    assert (package / "py.typed").is_file()
    texts = {file.name for file in (package / "genesis" / "codex" / "shipped").iterdir() if file.name.endswith(".toml")}
    assert texts == {"mind.toml", "robin.toml", "brick.toml", "babs.toml", "alfred.toml"}


def test_the_licence_is_whole() -> None:
    """LICENSE is the full text of the Apache License 2.0, which the metadata name."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_importing_the_package_loads_no_library() -> None:
    """`import batos` is free; what it offers is loaded when it is asked for, and a wrong name is told as ever."""
    script = (
        "import sys, batos; print(*sys.modules); "
        "assert all(getattr(batos, name) for name in batos.__all__); batos.Clientele"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=HANG)
    assert not {"zmq", "pydantic", "ZODB", "click", "asyncio"} & set(done.stdout.split())
    assert "AttributeError: module 'batos' has no attribute 'Clientele'" in done.stderr
