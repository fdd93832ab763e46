"""What is in memory, held against the codex: spills, windows, and whose runner it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.genesis.conftest import HandDaemon
from tests.genesis.planning import plan

from batos.genesis import budget_check
from batos.genesis.codex.codex import Codex
from batos.genesis.plan import Plan
from batos.inference.ollama.catalogue import ModelCard, RunnerRow


class Memory(HandDaemon):
    """A daemon whose models all have one base."""

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        base = "/blobs/other" if model.startswith("other") else "/blobs/base"
        return ModelCard(model, (), {}, f"FROM {base}", "", "", "", "", "")


@pytest.fixture
async def made(codex: Codex) -> tuple[Memory, Plan]:
    """A daemon that has the base and the personas' models, and the plan."""
    daemon = Memory()
    daemon.has(codex.default_model)
    for name in (await plan(codex, "default", daemon)).models.values():
        daemon.has(name)
    return daemon, await plan(codex, "default", daemon)


def row(name: str, vram: int = 100, window: int | None = 4096) -> RunnerRow:
    """A runner."""
    return RunnerRow(name, f"digest of {name}", 100, vram, window, None)


async def found(made: tuple[Memory, Plan], rows: Sequence[RunnerRow]) -> dict[str, tuple[bool, str]]:
    """What is found, by id."""
    daemon, todo = made
    return {each.id: (each.ok, each.what) for each in await budget_check.runner_findings(todo, daemon, rows)}


async def test_nothing_in_memory(made: tuple[Memory, Plan]) -> None:
    """No runner, and another program's, are no fault and no window."""
    for rows in ((), (row("other", 0),)):
        assert await found(made, rows) == {"vram.spill": (True, "no model of the personas is in memory just now")}


async def test_one_runner_for_all(made: tuple[Memory, Plan]) -> None:
    """Whoever made it load, it is one finding that names all personas."""
    seen = await found(made, [row("batos-brick:old")])
    assert seen["vram.spill"] == (True, "ROBIN, BRICK, BABS, ALFRED: batos-brick:old is wholly on the card")
    assert seen["models.window"][0]


@pytest.mark.parametrize(("vram", "ok"), [(100, True), (99, False), (0, True)])
async def test_a_spill(made: tuple[Memory, Plan], vram: int, ok: bool) -> None:
    """Less on the card than there is is wrong, unless nothing at all is on a card."""
    assert (await found(made, [row("llama", vram)]))["vram.spill"][0] is ok


async def test_a_spill_beside_others(made: tuple[Memory, Plan]) -> None:
    """Where others have the whole card, to be on the CPU is one too."""
    assert not (await found(made, [row("llama", 0), row("other")]))["vram.spill"][0]


@pytest.mark.parametrize(("window", "ok"), [(4096, True), (8192, True), (None, True), (2048, False)])
async def test_the_window(made: tuple[Memory, Plan], window: int | None, ok: bool) -> None:
    """A window that is smaller than the codex asks for is wrong; one that the daemon does not tell is not."""
    assert (await found(made, [row("llama", window=window)]))["models.window"][0] is ok


async def test_a_machine_without_a_card(made: tuple[Memory, Plan]) -> None:
    """That no card was seen is told where the budget goes on counting one."""
    _, what = (await found(made, [row("llama", 0)]))["vram.spill"]
    assert "no card was seen" in what
    assert "uses the settings" in what
