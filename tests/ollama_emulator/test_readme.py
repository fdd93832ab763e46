"""The emulator's README: its code runs as written, its lists are complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANG

import ollama_emulator
from batos import pytest_plugin
from ollama_emulator import faults
from ollama_emulator.pulling import registry
from ollama_emulator.speech.authoring.authors import AUTHORS

TEXT = (Path(ollama_emulator.__file__).parent / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_its_tests_pass(pytester: pytest.Pytester) -> None:
    """The code for pytest and for Python is a file of tests, run with the plugin that the distribution brings."""
    pytester.makepyfile(test_readme="\n".join(_blocks("python")))
    loaded = ("-p", "no:batos", "-p", pytest_plugin.__name__, "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*loaded).assert_outcomes(passed=4)


def test_its_shell_gets_an_answer(tmp_path: Path) -> None:
    """The commands start an emulator, find its address and are answered."""
    (script,) = _blocks("sh")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-euc", script]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=HANG, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"version": "0.33.0"}


def test_its_json_is_taken() -> None:
    """The list of faults and the description of a registry are valid."""
    listed, described = map(json.loads, _blocks("json"))
    given = faults.FaultList()
    given.add(listed)
    assert len(given.orders) == len(listed)
    known = registry.shipped_registry()
    known.lay(described)
    assert known.entries["registry.ollama.ai/library/tiny:1b"].size == 1000000


@pytest.mark.parametrize("kind", sorted(faults.KINDS))
def test_it_names_every_kind_of_fault(kind: str) -> None:
    """A kind that the code takes stands in the README."""
    assert f"`{kind}`" in TEXT


def test_it_counts_the_authors() -> None:
    """The number of authors that fail is the one that it says."""
    failing = [name for name in AUTHORS if name != "good" and not name.startswith("hostile-")]
    assert len(failing) == 10
    assert "ten others" in TEXT
