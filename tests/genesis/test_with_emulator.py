"""Genesis over a real socket: the bridge and an emulated daemon, from nothing, again, and after every interruption."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from tests.genesis.planning import plan
from tests.genesis.stages import patient

from batos.genesis.codex.codex import Codex
from batos.genesis.plan import Plan
from batos.genesis.provision import StepProgress, carry_out
from batos.inference.ollama.bridge import Bridge
from batos.protocol.errors import OllamaError, OllamaUnreachable
from ollama_emulator.emulator import Emulator, Options


@pytest.fixture
async def emulator() -> AsyncIterator[tuple[Emulator, Bridge]]:
    """An emulated daemon with an empty store, and a bridge to it."""
    emulated = Emulator(Options())
    async with emulated.serving() as url, patient(url) as bridge:
        yield emulated, bridge


async def run(codex: Codex, bridge: Bridge, told: list[StepProgress] | None = None) -> Plan:
    """Plan and carry out once."""
    return await carry_out(await plan(codex, "default", bridge), bridge, (told if told is not None else []).append)


async def test_from_nothing(codex: Codex, emulator: tuple[Emulator, Bridge]) -> None:
    """An empty daemon is given the base, the embedder and four models that have their persona's text and parameters."""
    _, bridge = emulator
    told: list[StepProgress] = []
    after = await run(codex, bridge, told)
    assert after.is_satisfied
    assert not after.steps
    rows = {row.name for row in await bridge.list()}
    assert rows == {codex.default_model, "all-minilm:latest", *after.models.values()}
    card = await bridge.show(after.models["ROBIN"])
    assert "num_ctx" in card.parameters
    assert "You are ROBIN" in card.modelfile
    assert card.blob == (await bridge.show(after.models["BABS"])).blob
    counted = [progress for progress in told if progress.step == f"pull {codex.default_model}" and progress.total]
    grown = [progress.completed or 0 for progress in counted]
    assert grown == sorted(grown)
    assert counted[-1].completed == counted[-1].total


async def test_nothing_to_do(codex: Codex, emulator: tuple[Emulator, Bridge]) -> None:
    """A second genesis asks for the version and the list, and for nothing else."""
    emulated, bridge = emulator
    first = await run(codex, bridge)
    before = len(emulated.requests)
    assert await run(codex, bridge) == first
    assert [request["path"] for request in list(emulated.requests)[before:]] == ["/api/version", "/api/tags"]


async def test_deleted_behind_our_back(codex: Codex, emulator: tuple[Emulator, Bridge]) -> None:
    """A model that somebody deleted is made again, under the same name, and no other is touched."""
    emulated, bridge = emulator
    models = (await run(codex, bridge)).models
    await bridge.delete(models["ALFRED"])
    before = len(emulated.requests)
    assert (await run(codex, bridge)).models == models
    created = [request["model"] for request in list(emulated.requests)[before:] if request["path"] == "/api/create"]
    assert created == [models["ALFRED"]]


REQUESTS = [("/api/tags", 1), ("/api/pull", 1), ("/api/pull", 2), ("/api/tags", 2), ("/api/tags", 3)]
REQUESTS += [(path, nth) for nth in range(1, 5) for path in ("/api/show", "/api/create")]


@pytest.mark.parametrize("lines", [0, 2])
@pytest.mark.parametrize(("path", "nth"), REQUESTS)
async def test_cut_at_any_request(
    codex: Codex, emulator: tuple[Emulator, Bridge], path: str, nth: int, lines: int
) -> None:
    """Whichever request is cut, before its reply or inside it, the next genesis ends where an undisturbed one does."""
    emulated, bridge = emulator
    emulated.faults.add({"do": "cut", "match": {"path": path, "nth": nth}, "after": lines})
    with suppress(OllamaError):
        await run(codex, bridge)
    assert emulated.faults.orders[0].struck == 1
    made = await run(codex, bridge)
    assert made.is_satisfied
    rows = {row.name for row in await bridge.list()}
    assert rows == {codex.default_model, "all-minilm:latest", *made.models.values()}


async def test_daemon_that_is_not_there(codex: Codex) -> None:
    """Without a daemon the plan fails with how to start one."""
    async with Bridge("http://127.0.0.1:9") as bridge:
        with pytest.raises(OllamaUnreachable) as caught:
            await plan(codex, "default", bridge)
    assert "ollama serve" in caught.value.remedy
