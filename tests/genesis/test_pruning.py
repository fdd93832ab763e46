"""What `--prune` deletes, and what it leaves because somebody needs it or made it."""

from __future__ import annotations

import asyncio

from tests.genesis.stages import BASE, Stage

from batos.genesis import persona_models


async def test_prune_leaves_what_a_mission_thinks_with(stage: Stage) -> None:
    """The model of a running mission is kept; when nobody uses it any more it is taken out of memory and deleted."""
    old = stage.model("BRICK")
    await stage.other.unload(
        stage.model("ROBIN")
    )  # with which genesis measured: the runner has the name of who loads it
    stage.stall("/api/chat", 2)
    running = asyncio.create_task(
        stage.uvm.missions.ask({"text": "How do I build a shed that lasts?", "persona": "BRICK", "effort": "cycle"})
    )
    await stage.stalled()
    stage.edit("brick.toml", "temperature = 0.4", "temperature = 0.5")
    report = await stage.uvm.readiness.genesis(prune=True)
    assert report.plan.stale == (old,)
    assert not report.plan.steps_of("delete")
    assert not running.done()
    stage.clock.goes_on.set()
    assert (await running)["status"] == "done"
    assert old in {row.name for row in await stage.other.ps()}
    before = len(stage.emulator.requests)
    report = await stage.uvm.readiness.genesis(prune=True)
    assert [step.name for step in report.done] == [old]
    paths = [each["path"] for each in list(stage.emulator.requests)[before:]]
    assert paths.index("/api/chat") < paths.index("/api/delete")
    assert old not in {row.name for row in await stage.other.ps()}
    with stage.uvm.image.snapshot() as root:
        assert old not in persona_models.read_record(root).models
    assert await stage.genesis_asks() == ["GET /api/version", "GET /api/tags"]


async def test_prune_leaves_what_a_mission_was_begun_with(stage: Stage) -> None:
    """A mission that its process left undone is paid for by its model's digest: that model stays until it has ended."""
    old = stage.model("BRICK")
    stage.stall("/api/chat")
    running = asyncio.create_task(
        stage.uvm.missions.ask({"text": "How do I build a shed that lasts?", "persona": "BRICK", "effort": "reflex"})
    )
    await stage.stalled()
    mission = stage.uvm.readings.newest(1)[0]["id"]
    running.cancel()
    await asyncio.wait([running])
    await stage.uvm.image.move(mission, "queued", None)
    stage.edit("brick.toml", "temperature = 0.4", "temperature = 0.5")
    await stage.uvm.readiness.genesis(prune=True)
    assert old in {row.name for row in await stage.other.list()}
    await stage.uvm.image.move(mission, "cancelled", None)
    await stage.uvm.readiness.genesis(prune=True)
    assert old not in {row.name for row in await stage.other.list()}


async def test_a_model_that_somebody_else_pruned(stage: Stage) -> None:
    """A model that is gone when it is to be deleted is as well deleted; the others are, too."""
    old = {stage.model(), stage.model("BABS")}
    for file in ("robin.toml", "babs.toml"):
        stage.edit(file, "temperature = ", "top_k = 7\ntemperature = ")
    gone = {"do": "status", "match": {"path": "/api/delete"}, "status": 404, "error": "model 'x' not found"}
    stage.emulator.faults.add(gone)
    report = await stage.uvm.readiness.genesis(prune=True)
    assert {step.name for step in report.plan.steps_of("delete")} == old
    assert len(old & {row.name for row in await stage.other.list()}) == 1
    await stage.uvm.readiness.genesis(prune=True)
    assert not old & {row.name for row in await stage.other.list()}


async def test_models_of_others_are_never_pruned(stage: Stage) -> None:
    """What somebody else made, under a name like ours too, is left; ours alone goes."""
    for name in ("mine:latest", "batos-robin:0123456789ab"):
        async for _ in stage.other.create(name, from_=BASE, system="Mine."):
            pass
    old = stage.model()
    stage.edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    await stage.uvm.readiness.genesis(prune=True)
    names = {row.name for row in await stage.other.list()}
    assert {"mine:latest", "batos-robin:0123456789ab"} <= names
    assert old not in names
