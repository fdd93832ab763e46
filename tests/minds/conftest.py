"""A scripted mind for the tests of cognition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.minds.duets import Voices
from tests.minds.scripted import Script
from tests.minds.tool_boxes import PAGES, FolderTools

from batos.events import Events
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM


@dataclass
class Mind:
    """An open UVM, the bridge that answers it, the script by which it does, and every event so far."""

    uvm: UVM
    bridge: ScriptedBridge
    script: Script
    events: list[tuple[str, dict[str, Any]]]

    def told(self, event: str) -> list[dict[str, Any]]:
        """The keys of every event of that name."""
        return [keys for name, keys in self.events if name == event]


@pytest.fixture
async def mind(tmp_path: Path) -> AsyncIterator[Mind]:
    """A mind in memory whose genesis is done."""
    script = Script()
    bridge = ScriptedBridge(script)
    events: list[tuple[str, dict[str, Any]]] = []
    told = Events(lambda name, keys: events.append((name, dict(keys))), log=False)
    async with scripted_uvm(tmp_path / "home", bridge, events=told) as uvm:
        yield Mind(uvm, bridge, script, events)


@pytest.fixture
async def duet(tmp_path: Path) -> AsyncIterator[tuple[Mind, Voices]]:
    """A mind in memory in which every question that is no council's has two voices."""
    voices, events = Voices(), list[tuple[str, dict[str, Any]]]()
    bridge = ScriptedBridge(voices)
    told = Events(lambda name, keys: events.append((name, dict(keys))), log=False)
    async with scripted_uvm(tmp_path / "home", bridge, events=told, second_voice_margin=1.0) as uvm:
        yield Mind(uvm, bridge, voices.script, events), voices


@pytest.fixture
def pages(tmp_path: Path) -> FolderTools:
    """A folder with pages."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return FolderTools(folder)
