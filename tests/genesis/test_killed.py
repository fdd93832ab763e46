"""Genesis killed at every write of its own or of the daemon converges to what an undisturbed one makes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fork_server import forking
from tests.genesis.genesis_processes import World, world
from tests.genesis.loras import gguf_adapter
from tests.genesis.recording import Place, Recording
from tests.genesis.short_codex import short_codex

from batos.protocol.server_documents import PlanDocument

#: The states are taken by as many tests, so that several workers share them.
PARTS = 2


@dataclass(frozen=True, slots=True)
class UndisturbedGenesis:
    """What a genesis makes that nobody disturbs: its plan, its requests, what it leaves; and all states on its way."""

    plan: PlanDocument
    paths: list[str]
    held: dict[str, Any]
    states: list[Place]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> UndisturbedGenesis:
    """A genesis that is recorded."""
    return asyncio.run(recorded(tmp_path_factory.mktemp("undisturbed")))


async def recorded(folder: Path) -> UndisturbedGenesis:
    """Run genesis and note every state."""
    place = Place(folder)
    short_codex(place.home)
    warm(place.home)
    recording = Recording(place, folder / "states")
    async with place.daemon() as (emulator, url):
        report = await recording.genesis(url)
        paths = [each["path"] for each in emulator.requests]
        held = await place.held(url)
    return UndisturbedGenesis(report.plan.as_dict(), paths, held, recording.places)


def warm(home: Path) -> None:
    """Put an adapter for ROBIN there."""
    gguf_adapter(home / "adapters" / "robin" / "warm")


async def converges(place: Place, undisturbed: UndisturbedGenesis) -> None:
    """Once more, and there is what an undisturbed genesis makes; a third one changes nothing."""
    async with place.daemon() as (_, url):
        await place.genesis(url)
    await assert_converged(place.folder, undisturbed)


async def changes_nothing(place: Place, url: str, requests: Any, undisturbed: UndisturbedGenesis) -> None:
    """A genesis after which all is as it was, and which only looked; `requests` grows by what it asks."""
    before = len(requests)
    image = await asyncio.to_thread((place.home / "live_image.fs").read_bytes)
    report = await place.genesis(url)
    assert (report.plan.steps, report.changes) == ((), ())
    first, second, *looks, last = list(requests)[before:]
    # The last is a mission's own look: had the router anything to learn, it would learn it now.
    assert [each["path"] for each in (first, second, last)] == ["/api/version", "/api/tags", "/api/tags"]
    assert {request["path"] for request in looks} <= {"/api/show"}
    assert len(looks) == len({request["model"] for request in looks}) <= len(undisturbed.held["tags"])
    assert await asyncio.to_thread((place.home / "live_image.fs").read_bytes) == image


def test_an_undisturbed_genesis(undisturbed: UndisturbedGenesis) -> None:
    """It pulls two models, sends an adapter, makes five models and writes the image."""
    kinds = [step["kind"] for step in undisturbed.plan["steps"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {"pull": 2, "upload": 1, "create": 5, "graph": 1}
    assert len(undisturbed.held["tags"]) == 7
    assert undisturbed.held["image"]["models"].keys() <= undisturbed.held["tags"].keys()
    assert all(finding["ok"] for finding in undisturbed.held["image"]["audit"])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_killed_at_every_write(subtests: pytest.Subtests, undisturbed: UndisturbedGenesis, part: int) -> None:
    """Whatever was written of image, journal and store when both died, the next genesis ends as an undisturbed one."""
    assert len(undisturbed.states) > 30
    for number, state in enumerate(undisturbed.states):
        if number % PARTS == part:
            with subtests.test(f"state {number}"):
                await converges(state, undisturbed)
            await asyncio.to_thread(shutil.rmtree, state.folder)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/pull", "/api/create"])
async def test_killed_in_a_request(tmp_path: Path, undisturbed: UndisturbedGenesis, path: str) -> None:
    """A process that is killed while a daemon answers it, which lives on: the next one ends where it would have."""
    stalls = {"do": "stall", "match": {"path": path}, "after": 1, "seconds": 86_400}
    await asyncio.to_thread(killed, tmp_path, lambda where: where.killed_in(path), stalls)
    await assert_converged(tmp_path, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
async def test_killed_at_a_commit(tmp_path: Path, undisturbed: UndisturbedGenesis, after: bool) -> None:
    """A process that kills itself before or after a commit in the middle: the next one ends where it would have."""
    await asyncio.to_thread(killed, tmp_path, lambda where: where.died(4, after=after))
    await assert_converged(tmp_path, undisturbed)


def killed(folder: Path, kill: Callable[[World], None], *faults: Any) -> None:
    """A genesis that is killed, and another one."""
    with world(folder, forking(), faults=faults) as where:
        warm(where.home)
        kill(where)
        where.converged()


async def assert_converged(folder: Path, undisturbed: UndisturbedGenesis) -> None:
    """The same is there as after an undisturbed genesis, and another changes nothing."""
    place = Place(folder)
    async with place.daemon() as (emulator, url):
        assert await place.held(url) == undisturbed.held
        await changes_nothing(place, url, emulator.requests, undisturbed)
