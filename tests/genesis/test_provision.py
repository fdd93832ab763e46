"""Provisioning reaches what the codex says from wherever it was left, and says how far it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.genesis.conftest import HandDaemon

from batos.errors import ModelMissing, OllamaUnreachable, RequestRejected
from batos.genesis.codex import Codex
from batos.genesis.plan import plan
from batos.genesis.provision import Progress, carry_out

BASE = "llama3.1:8b-instruct-q4_K_M"


async def run(codex: Codex, daemon: HandDaemon) -> list[Progress]:
    """Plan and carry out; the progress that was told."""
    told: list[Progress] = []
    after = await carry_out(await plan(codex, "default", daemon), daemon, told.append)
    assert after.satisfied
    return told


async def test_from_nothing(codex: Codex, daemon: HandDaemon) -> None:
    """From an empty daemon: both pulls, then four models with their own text and parameters."""
    told = await run(codex, daemon)
    made = daemon.made_of
    assert [name.partition(":")[0] for name in made] == ["batos-robin", "batos-brick", "batos-babs", "batos-alfred"]
    base, system, parameters = next(iter(made.values()))
    assert (base, system) == (BASE, codex.personas["ROBIN"].system)
    assert parameters == {"num_ctx": 4096, "num_predict": 1024, "temperature": 0.8, "top_p": 0.9}
    assert Progress(f"pull {BASE}", "pulling 0a0b", 2450, 4900) in told


async def test_second_run_sends_nothing(codex: Codex, daemon: HandDaemon) -> None:
    """When everything is there, the plan's two requests are all that is sent."""
    await run(codex, daemon)
    daemon.asked.clear()
    assert await run(codex, daemon) == []
    assert daemon.asked == ["version", "list"]


async def test_cut_pull_is_taken_up(codex: Codex, daemon: HandDaemon) -> None:
    """A pull that is cut is taken up again, and the cut is told."""
    daemon.cuts[BASE] = 2
    told = await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 3
    assert sum("going on" in progress.status for progress in told) == 2


async def test_pull_that_is_always_cut(codex: Codex, daemon: HandDaemon) -> None:
    """A pull that is cut every time ends in its error; the other pull had its bytes, and nothing is made."""
    daemon.refused[BASE] = OllamaUnreachable("gone")
    with pytest.raises(OllamaUnreachable):
        await run(codex, daemon)
    assert "all-minilm:latest" in daemon.rows
    assert not daemon.made_of


async def test_refused_pull_is_not_repeated(codex: Codex, daemon: HandDaemon) -> None:
    """An unknown model is asked for once."""
    del daemon.registry[BASE]
    with pytest.raises(RequestRejected):
        await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 1


async def test_optional_pull_may_fail(codex: Codex, daemon: HandDaemon) -> None:
    """Without the embedder genesis still succeeds, and says what was left out."""
    del daemon.registry["all-minilm:latest"]
    told = await run(codex, daemon)
    assert any(progress.status.startswith("left out:") for progress in told)
    assert len(daemon.made_of) == 4


async def test_interrupted_genesis_continues(codex: Codex, daemon: HandDaemon) -> None:
    """What was made before an interruption is not made again."""
    names = list((await after_base(codex, daemon)).values())
    daemon.refused[names[2]] = OllamaUnreachable("the daemon went away")
    with pytest.raises(OllamaUnreachable):
        await run(codex, daemon)
    daemon.refused.clear()
    daemon.asked.clear()
    await run(codex, daemon)
    assert [asked for asked in daemon.asked if asked.startswith("create")] == [f"create {name}" for name in names[2:]]


async def after_base(codex: Codex, daemon: HandDaemon) -> Mapping[str, str]:
    """The names of the models once the base is there."""
    daemon.has(BASE)
    return (await plan(codex, "default", daemon)).models


async def test_what_was_reported_is_verified(codex: Codex, daemon: HandDaemon) -> None:
    """A daemon that reports success and lists no model is not believed."""
    daemon.forgets = True
    with pytest.raises(ModelMissing, match="does not list it"):
        await run(codex, daemon)
