"""The verb `emulator`: what it refuses before it listens, and what it was told."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.cli.processes import User, emulator


@pytest.mark.parametrize(
    ("flag", "text", "field"),
    [
        ("--faults", '[{"do": "cut", "after": "soon"}]', "faults[0].after"),
        ("--faults", '[{"do": "cut"}, {"do": "dance"}]', "faults[1].do"),
        ("--faults", '[{"do": "cut", "when": 3}]', "faults[0].when"),
        ("--faults", "{", "faults"),
        ("--registry", "[", "registry"),
        ("--registry", '{"offlin": true}', "offlin"),
        ("--registry", '{"models": [{"name": "x:1b", "siz": 5}]}', "siz"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(tmp_path: Path, flag: str, text: str, field: str) -> None:
    """Exit 2, the place in the file, and what to write there; nothing was started."""
    file = tmp_path / "given.json"
    file.write_text(text, encoding="utf-8")
    ran = User(tmp_path, "http://127.0.0.1:1").run("emulator", "--port", "0", flag, str(file))
    assert ran.code == 2
    assert ran.out == ""
    assert field in ran.err


def test_its_flags_are_the_machine_that_it_is(tmp_path: Path) -> None:
    """What was given is what its state says, and its log is a file of lines."""
    faults = tmp_path / "faults.json"
    faults.write_text('{"faults": [{"do": "slow_load", "seconds": 0}]}', encoding="utf-8")
    log = tmp_path / "log"
    flags = ["--vram", "4", "--parallel", "3", "--control", "--faults", str(faults), "--log", str(log)]
    with (
        emulator(*flags, "--model", "all-minilm", "--speaks-as", "0.31.0") as url,
        httpx.Client(base_url=url, trust_env=False, verify=False) as client,  # no TLS
    ):
        state = client.get("/_emulator/state").json()
        assert (state["vram"], state["settings"]["parallel"]) == (4 << 30, 3)
        assert [fault["do"] for fault in client.get("/_emulator/fault").json()["faults"]] == ["slow_load"]
        assert client.get("/api/version").json() == {"version": "0.31.0"}
    assert [json.loads(line)["path"] for line in log.read_text("utf-8").splitlines()] == ["/api/version"]
