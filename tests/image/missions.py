"""A UVM over files, with the image's seams open: whole missions for the tests of durability."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.events import Events
from batos.testing import ScriptedBridge
from batos.uvm import UVM, Seams, open_uvm


@asynccontextmanager
async def thinking(home: Path, bridge: ScriptedBridge | None = None, **opening: Any) -> AsyncIterator[UVM]:
    """A UVM over files in `home`, sixteen missions at a time, its genesis done; `opening` has the image's seams.

    What runs alone hardly waits.
    """
    settings = Settings(home=home, user="tester", missions=16, parallel=16, install="never")
    seams = Seams(bridge=bridge or ScriptedBridge(), opening=lambda given: replace(given, **opening), quiet=0.05)
    async with open_uvm(settings, Events(log=False), seams) as uvm:
        await uvm.readiness.genesis()
        yield uvm
