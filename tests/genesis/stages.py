"""A home after its genesis, in an open image, with the daemon that it thinks with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.genesis.genesis_processes import REGISTRY
from tests.genesis.short_codex import short_codex
from tests.inference.conftest import PATIENT
from tests.waiting import until

from batos.config import Settings
from batos.events import Events
from batos.genesis import persona_models
from batos.inference.ollama.bridge import Bridge
from batos.protocol.mission_documents import MissionDocument
from batos.uvm import UVM, Seams, open_uvm
from ollama_emulator.clocks import SystemClock
from ollama_emulator.emulator import Emulator, Options

BASE = "llama3.1:8b-instruct-q4_K_M"
#: The seconds of a stall that lasts until the test ends it.
_STALL = 7_654_321.0


class StallClock(SystemClock):
    """The machine's clock, but for stalls: they last until the test ends them."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Sleep so long, or until the test says so."""
        if seconds == _STALL:
            await self.goes_on.wait()
        else:
            await super().sleep(seconds)


@dataclass(frozen=True, slots=True)
class Stage:
    """An open image after its genesis, the emulator it thinks with, and a bridge of somebody else's."""

    uvm: UVM
    emulator: Emulator
    clock: StallClock
    other: Bridge
    home: Path

    async def ask(self, persona: str = "ROBIN", **brief: Any) -> MissionDocument:
        """A mission of one call."""
        asked = {"text": "Why do I worry?", "persona": persona, "effort": "reflex", **brief}
        return await self.uvm.missions.ask(asked)

    def prompt(self, mission: Mapping[str, Any]) -> str:
        """Everything that was said to the model in a mission's first call."""
        return "\n".join(message["content"] for message in self.uvm.readings.prompts(mission["id"])[0]["messages"])

    def edit(self, file: str, old: str, new: str) -> None:
        """Change a file of the home's codex."""
        path = self.home / "codex" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    def model(self, persona: str = "ROBIN") -> str:
        """The model that the image knows for a persona."""
        with self.uvm.image.snapshot() as root:
            return persona_models.read_record(root).used[persona]

    def stall(self, path: str, nth: int = 1) -> None:
        """Let the reply to a request of this path stand still after its first line, until `clock.goes_on` is set."""
        match = {"path": path, "nth": nth}
        self.emulator.faults.add({"do": "stall", "match": match, "seconds": _STALL, "after": 1})

    async def stalled(self) -> None:
        """Wait until the request that is to stand still has come."""
        await until(lambda: self.emulator.faults.orders[-1].struck, "the request that stands still")

    async def sent(self, path: str, since: int = 0) -> None:
        """Wait until the daemon was sent such a request, `since` so many others."""
        await until(lambda: any(each["path"] == path for each in list(self.emulator.requests)[since:]), path)

    async def asked_for(self, work: Any) -> list[str]:
        """The requests that something takes, without the answers and vectors of models."""
        before = len(self.emulator.requests)
        await work
        found = [f"{each['method']} {each['path']}" for each in list(self.emulator.requests)[before:]]
        return [each for each in found if each not in ("POST /api/chat", "POST /api/embed", "GET /api/ps")]

    async def genesis_asks(self) -> list[str]:
        """The requests of a genesis that changes nothing, but for looks at models: one each at most."""
        before = len(self.emulator.requests)
        await self.uvm.readiness.genesis()
        asked = list(self.emulator.requests)[before:]
        looks = [each["model"] for each in asked if each["path"] == "/api/show"]
        assert len(looks) == len(set(looks)) <= len(await self.other.list())
        return [f"{each['method']} {each['path']}" for each in asked if each["path"] != "/api/show"]


def registry_in(home: Path) -> Path:
    """The small registry as a file in a home, which is made."""
    home.mkdir(exist_ok=True)
    registry = home / "registry.json"
    registry.write_text(json.dumps(REGISTRY), encoding="utf-8")
    return registry


def patient(url: str) -> Bridge:
    """A bridge to which nothing is late."""
    return Bridge(url, deadlines=PATIENT)


@asynccontextmanager
async def staged(home: Path) -> AsyncIterator[Stage]:
    """A home after its genesis, with a short codex: what a router learns of the whole one is no matter here."""
    registry = registry_in(home)
    short_codex(home)
    clock = StallClock()
    emulated = Emulator(Options(registry=registry), clock)
    async with emulated.serving() as url, patient(url) as other, patient(url) as own:
        # The staged models are small; the tests look at prompts in full form.
        settings = Settings(home=home, user="tester", ollama_host=url, lean_parameters=0)
        async with open_uvm(settings, Events(log=False), Seams(bridge=own)) as uvm:
            report = await uvm.readiness.genesis()
            assert all(finding.ok for finding in report.findings), report.findings
            yield Stage(uvm, emulated, clock, other, home)


def models_of(mission: Mapping[str, Any]) -> list[str]:
    """The models that a mission thought with."""
    return list(mission["provenance"]["models"])
