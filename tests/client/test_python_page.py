"""The example of docs/python.md does what the page says."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from batos.cli.verbs.serve import open_server
from batos.config import Settings
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"


async def test_the_example_asks_and_is_answered(own_home: Path) -> None:
    """As a program of its own, where a server of the default home runs: an answer, a streamed one, a later one."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    bridge = ScriptedBridge()
    async with scripted_uvm(own_home, bridge, memory=False):
        pass  # genesis is done
    anywhere = "tcp://127.0.0.1:*"
    settings = Settings(home=own_home, user="tester", bind=anywhere, events=anywhere)
    async with open_server(settings, Seams(bridge=bridge)):
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", example, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, wrong = [each.decode() for each in await program.communicate()]
    assert program.returncode == 0, wrong
    assert re.fullmatch(r"(.+\n)+\d+ calls, [\d.]+ s\nA scripted sentence\.\ndone\n", said), said
    assert not (own_home / "server.json").exists()
