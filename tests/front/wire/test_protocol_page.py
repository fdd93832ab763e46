"""The example of docs/protocol.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from batos.config import Settings
from batos.front.verbs.serve import served
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"


async def test_the_example_asks_and_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As written, given a home with a server: events as they happen, two missions that are done."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, str(PAGE), "exec"), names)
    home = tmp_path / "home"
    home.mkdir()
    bridge = ScriptedBridge()
    async with scripted_uvm(home, bridge, memory=False):
        pass  # genesis is done
    anywhere = "tcp://127.0.0.1:*"
    settings = Settings(home=home, user="tester", bind=anywhere, events=anywhere)
    async with served(settings, Seams(bridge=bridge)):
        await names["main"](str(home))
    said = capsys.readouterr().out.splitlines()
    assert "mission.state IDLE" in said
    assert any(re.fullmatch(r"m-\w{26} done .+", line) for line in said)
    assert "done" in said
    assert not (home / "server.json").exists()
