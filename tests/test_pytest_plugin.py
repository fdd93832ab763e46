"""The plugin of pytest, used as docs/testing.md says, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.waiting import HANG

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "testing.md"
NAME = "batos.pytest_plugin"
#: By its module, since an environment that was made before knows no entry point.
LOADED = ("-p", "no:batos", "-p", NAME)


def test_the_page_is_a_file_of_tests_that_pass(pytester: pytest.Pytester) -> None:
    """As written: a program with `Client`, what the model was asked, an ill Ollama, the mind itself, a set answer."""
    (tests,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    pytester.makepyfile(test_page=tests)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n")
    pytester.runpytest_subprocess(*LOADED, "-p", "no:cacheprovider").assert_outcomes(passed=6)


def test_without_pytest_asyncio_the_asynchronous_one_says_what_to_install(pytester: pytest.Pytester) -> None:
    """The others work without it."""
    pytester.makepyfile(test_it="def test_mind(uvm): ...\n\ndef test_daemon(ollama): assert ollama.requests == []")
    script = f"import sys; sys.modules['pytest_asyncio'] = None; import pytest; pytest.main(['-p', '{NAME}'])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=pytester.path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert "1 passed, 1 error" in done.stdout
    assert "pip install pytest-asyncio" in done.stdout


def test_pytest_finds_it_by_itself() -> None:
    """The distribution's entry point names a module that has the fixtures."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"batos": NAME}
    assert {"ollama", "uvm", "batos_server"} <= set(vars(import_module(NAME)))


def test_nothing_else_needs_pytest() -> None:
    """Who uses the client, the command line or the means for tests needs no pytest."""
    script = "import sys; sys.modules['pytest'] = None; import batos.testing, batos.cli.entry; from batos import Client"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANG)
