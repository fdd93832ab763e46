"""One process holds the image, and whatever changes around it (codex, Ollama) acts at its next mission."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.stages import BASE, Stage, models_of, patient, registry_in
from tests.methods.lifecycle.brick import seeded
from tests.test_events import EventRecorder
from tests.waiting import until

from batos.config import Settings
from batos.events import Events
from batos.genesis import persona_models
from batos.image import roots
from batos.image.roots import connection_of
from batos.protocol.errors import BatosError, CodexError, ModelMissing, OllamaUnreachable, RequestRejected
from batos.uvm import Seams, open_uvm
from ollama_emulator.emulator import Emulator, Options


async def test_a_changed_codex_acts_at_the_next_mission(stage: Stage) -> None:
    """An edited file makes another model, and its words stand in the next mission's prompt; no process begins anew."""
    first = await stage.ask()
    before = stage.model()
    stage.edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    stage.edit("robin.toml", "You are ROBIN, warm", "You are ROBIN, the warm heart, warm")
    second = await stage.ask()
    assert models_of(first) == [before]
    assert models_of(second) == [stage.model()] != [before]
    assert "the warm heart" not in stage.prompt(first)
    assert "the warm heart" in stage.prompt(second)
    assert models_of(await stage.ask()) == models_of(second)


async def test_an_intent_that_is_declared_anew_retires_its_method(stage: Stage) -> None:
    """At the next mission the new intent is there, and that the method went is told; the other methods stay."""
    await stage.ask()
    uvm, told = stage.uvm, EventRecorder()
    for slot in ("sage_facet_", "joyful_spark_facet_"):
        await uvm.lifecycle.install(
            seeded(uvm, "robin_prototype_obj", slot, "async def SELECTOR(self, query):\n    return query\n")
        )
    uvm.events.subscribe(told)
    stage.edit("robin.toml", "Give acceptance and company, no solution and no lesson.", "Offer company.")
    await stage.ask()
    (gone,) = [keys for event, keys in told if event == "method.retired"]
    assert (gone["receiver"], gone["selector"], gone["revision"]) == ("robin_prototype_obj", "sage_facet_", 1)
    states = {line["selector"]: line["state"] for line in uvm.lifecycle.list_methods("robin_prototype_obj")}
    assert states == {"sage_facet_": "intent", "joyful_spark_facet_": "active"}
    with uvm.image.snapshot() as root:
        assert "Offer company." in root["robin_prototype_obj"].sage_facet_.text
    changes = uvm.lifecycle.history("robin_prototype_obj.sage_facet_")["changes"]
    assert (changes[-1]["event"], changes[-1]["by"]) == ("declared", "genesis")
    assert changes[-1]["at"]


async def test_a_codex_that_changes_nothing_of_a_model(stage: Stage) -> None:
    """House rules are in the prompt and in no model: they act at the next mission, and nothing is made."""
    await stage.ask()  # the first call of a model looks at what it was made from
    stage.edit("mind.toml", "- Answer every", "- Be brief.\n- Answer every")
    requests = await stage.asked_for(stage.ask())
    assert requests == ["GET /api/tags"]
    assert "- Be brief." in stage.prompt(stage.uvm.readings.mission(stage.uvm.readings.newest()[0]["id"]))


async def test_a_wrong_codex_refuses_the_next_mission(stage: Stage) -> None:
    """What cannot be read is told with its file and line, by every mission until it is mended; none runs on the old."""
    stage.edit("brick.toml", "core_identity", "core_identety")
    for _ in range(2):
        with pytest.raises(CodexError, match=r"brick\.toml"):
            await stage.ask()
    assert [line["status"] for line in stage.uvm.readings.newest()] == ["failed", "failed"]
    stage.edit("brick.toml", "core_identety", "core_identity")
    assert (await stage.ask())["status"] == "done"


async def test_a_model_deleted_behind_our_back_is_made_again(stage: Stage) -> None:
    """Between two missions somebody deletes a model: the second makes it again, the same, and thinks with it."""
    first = await stage.ask()
    await stage.other.delete(stage.model())
    requests = await stage.asked_for(stage.ask())
    assert requests.count("POST /api/create") == 1
    second = stage.uvm.readings.mission(stage.uvm.readings.newest()[0]["id"])
    assert second["provenance"]["models"] == first["provenance"]["models"]


async def test_a_model_that_somebody_changed_is_made_again(stage: Stage) -> None:
    """One of our names with other words in it is found by its digest, and is again what was made."""
    first = await stage.ask()
    async for _ in stage.other.create(stage.model(), from_=BASE, system="You are somebody else."):
        pass
    row = next(row for row in await stage.other.list() if row.name == stage.model())
    assert row.digest != first["provenance"]["models"][stage.model()]
    second = await stage.ask()
    assert second["provenance"]["models"] == first["provenance"]["models"]
    assert "somebody else" not in (await stage.other.show(stage.model())).modelfile


async def test_what_a_mission_asks_for_when_nothing_changed(stage: Stage) -> None:
    """One request before it thinks; genesis and a process' first mission take two, and a model's first call one."""
    assert await stage.asked_for(stage.ask()) == ["GET /api/tags", "POST /api/show"]
    assert await stage.asked_for(stage.ask()) == ["GET /api/tags"]
    assert await stage.genesis_asks() == ["GET /api/version", "GET /api/tags"]
    settings = stage.uvm.settings.model_copy(update={"image": "memory://other"})
    async with open_uvm(settings, Events(log=False)) as uvm:
        await uvm.readiness.genesis()
        uvm.reconciler._version = None
        assert await stage.asked_for(uvm.readiness.check()) == ["GET /api/version", "GET /api/tags"]


async def test_missions_that_begin_together_share_a_look(stage: Stage) -> None:
    """Of eight at once the first looks, and one of those that came meanwhile looks for all of them."""
    await stage.ask()  # the first call of a model looks at what it was made from
    turn = stage.uvm.reconciler.turn
    stage.stall("/api/tags")

    async def ask_at_once() -> None:
        asking = [asyncio.create_task(stage.ask()) for _ in range(8)]
        await until(lambda: len(turn._waiters or ()) == 7, "those that came meanwhile")
        stage.clock.goes_on.set()
        await asyncio.gather(*asking)

    assert await stage.asked_for(ask_at_once()) == ["GET /api/tags"] * 2


async def test_a_mission_keeps_what_it_began_with(stage: Stage) -> None:
    """While one thinks the codex changes: it ends on the model it began with, and the next one has the new one."""
    old = stage.model("BRICK")
    stage.stall("/api/chat", 2)
    running = asyncio.create_task(
        stage.uvm.missions.ask({"text": "How do I build a shed that lasts?", "persona": "BRICK", "effort": "cycle"})
    )
    await stage.stalled()
    stage.edit("brick.toml", "temperature = 0.4", "temperature = 0.5")
    since = len(stage.emulator.requests)
    asking = asyncio.create_task(stage.ask("BRICK"))
    await stage.sent("/api/chat", since)  # it has to wait for the daemon, which answers one at a time
    stage.clock.goes_on.set()
    quick, shown = await asking, await running
    assert models_of(quick) == [stage.model("BRICK")] != [old]
    assert models_of(shown) == [old]
    assert shown["status"] == "done"


async def test_nobody_waits_for_a_pull(stage: Stage) -> None:
    """While genesis pulls, missions go on; what it writes in the end is the codex as it is then."""
    await stage.other.delete("all-minilm:latest")
    stage.stall("/api/pull")
    running = asyncio.create_task(stage.uvm.readiness.genesis())
    await stage.stalled()
    stage.edit("robin.toml", "You are ROBIN, warm", "You are ROBIN, the warm heart, warm")
    mission = await stage.ask()
    assert not running.done()
    stage.clock.goes_on.set()
    assert "the warm heart" in stage.prompt(mission)
    assert (await running).changes == ()
    assert models_of(await stage.ask()) == models_of(mission)


async def test_a_base_deleted_in_the_middle(tmp_path: Path) -> None:
    """Somebody deletes the base when one model is made: it comes down again, and all is made in the same run."""
    home = tmp_path / "home"
    emulated = Emulator(Options(registry=registry_in(home)))
    async with emulated.serving() as url, patient(url) as other, patient(url) as own:
        deleting: list[asyncio.Task[None]] = []

        def on_event(event: str, keys: Mapping[str, Any]) -> None:
            if keys.get("status") == "success" and keys["step"].startswith("create") and not deleting:
                deleting.append(asyncio.create_task(other.delete(BASE)))

        settings = Settings(home=home, user="tester", ollama_host=url)
        async with open_uvm(settings, Events(on_event), Seams(bridge=own)) as uvm:
            report = await uvm.readiness.genesis()
            assert all(finding.ok for finding in report.findings), report.findings
            await deleting[0]
            assert not [step for step in (await uvm.reconciler.plan()).steps if step.kind != "pull"]
        assert len([row for row in await other.list() if row.name.startswith("batos-")]) == 4


async def test_without_its_base_a_model_still_thinks(stage: Stage) -> None:
    """Somebody deletes the base's name: missions go on; once a model is gone too, the base is asked for by name."""
    await stage.other.delete(BASE)
    assert (await stage.ask())["status"] == "done"
    await stage.other.delete(stage.model("BABS"))
    with pytest.raises(ModelMissing, match="with which BABS thinks") as raised:
        await stage.ask("BABS")
    assert raised.value.model == BASE
    assert "batos genesis" in raised.value.remedy
    assert not any(each["path"] == "/api/pull" for each in list(stage.emulator.requests)[30:])
    await stage.uvm.readiness.genesis()
    assert (await stage.ask("BABS"))["status"] == "done"


async def test_a_daemon_that_comes_back_is_asked_what_it_is(stage: Stage) -> None:
    """While Ollama is away a new question fails with how to start it; the next one asks for the version again."""
    stage.emulator.faults.add({"do": "cut", "match": {"path": "/api/tags"}, "after": 0})
    stage.emulator.faults.add({"do": "cut", "match": {"path": "/api/chat"}, "after": 0})
    with pytest.raises(BatosError) as raised:
        await stage.ask()
    assert raised.value.remedy
    assert (await stage.asked_for(stage.ask()))[0] == "GET /api/version"


async def test_the_audit_is_kept(stage: Stage) -> None:
    """The last audit is in ALFRED's slot with its time, and a second genesis writes nothing."""
    with stage.uvm.image.snapshot() as root:
        first = persona_models.last_audit(root)
        serial = connection_of(root).db().lastTransaction()
    assert first is not None
    assert {"codex.digest", "image.root", "models.digests"} <= {each["id"] for each in first["findings"]}
    shown = stage.uvm.readings.inspect("alfred_prototype_obj.last_audit")
    assert first["at"] in json.dumps(shown)
    report = await stage.uvm.readiness.genesis()
    assert (report.changes, report.audited_at) == ((), first["at"])
    with stage.uvm.image.snapshot() as root:
        assert connection_of(root).db().lastTransaction() == serial


async def test_the_audit_is_about_this_image_alone(stage: Stage) -> None:
    """Models that another home makes on the same daemon are none of its findings, and no reason to write anything."""
    before = (await stage.uvm.readiness.genesis()).audited_at
    async for _ in stage.other.create("batos-robin:0123456789ab", from_=BASE, system="Another's."):
        pass
    report = await stage.uvm.readiness.genesis()
    assert report.audited_at == before
    assert not any("0123456789ab" in finding.what for finding in report.findings)
    stage.edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    (told,) = [each for each in (await stage.uvm.readiness.genesis()).findings if each.id == "models.stale"]
    assert "0123456789ab" not in told.what


async def test_digests_are_recorded(stage: Stage) -> None:
    """Each model is written down with its own digest, its base's, its recipe's, and when."""
    rows = {row.name: row.digest for row in await stage.other.list()}
    with stage.uvm.image.snapshot() as root:
        made = dict(root[roots.GENESIS]["models"])
    assert made.keys() == {name for name in rows if name.startswith("batos-")}
    for name, entry in made.items():
        assert entry["digest"] == rows[name]
        assert entry["base_digest"] == rows[BASE]
        assert entry["recipe"][:12] == name.partition(":")[2]
        assert entry["at"].endswith("Z")


async def test_a_refused_create_changes_nothing(stage: Stage) -> None:
    """When a model cannot be made the mission fails with the step and its remedy, and the image is as it was."""
    with stage.uvm.image.snapshot() as root:
        before = dict(root[roots.GENESIS])
    stage.edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    stage.emulator.faults.add(
        {"do": "error_line", "match": {"path": "/api/create"}, "error": "no space left on device"}
    )
    with pytest.raises(RequestRejected, match="create batos-robin:") as raised:
        await stage.ask()
    assert "OLLAMA_MODELS" in raised.value.remedy
    with stage.uvm.image.snapshot() as root:
        assert dict(root[roots.GENESIS]) == before
    assert (await stage.ask())["status"] == "done"


async def test_nothing_is_known_without_a_genesis(tmp_path: Path) -> None:
    """An image that never met Ollama has nothing to serve."""
    settings = Settings(home=tmp_path / "home", user="tester", ollama_host="http://127.0.0.1:9", image="memory://new")
    async with open_uvm(settings, Events(log=False)) as uvm:
        assert uvm.reconciler.baseline() is None
        with pytest.raises(OllamaUnreachable):
            await uvm.missions.ask({"text": "Why?"})
