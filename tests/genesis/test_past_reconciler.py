"""Genesis for an image as it was: its personas keep who they were, and think with the models of today."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from tests.genesis.loras import gguf_adapter
from tests.genesis.stages import Stage, models_of

from batos.autotelic import slot_values
from batos.autotelic.slot_values import SlotWrite
from batos.events import Events
from batos.genesis import persona_models
from batos.genesis.adapters import repository
from batos.genesis.codex import codex as codices
from batos.image.past import kept_span, newest_commit, tid_of
from batos.protocol.errors import PackedAway, Refused
from batos.records.redefinitions import ChangeOrigin
from batos.testing import scripted_uvm
from batos.uvm import open_past

ANN = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "I want it")


async def test_the_personas_of_then_think_with_the_models_of_today(tmp_path: Path) -> None:
    """Their codex is that of then, as the image kept it; the home's is another by now."""
    async with scripted_uvm(tmp_path) as uvm:
        tid = newest_commit(uvm.image.db)
        mind = tmp_path / "codex" / codices.MIND
        with uvm.image.snapshot() as root:
            before = persona_models.read_record(root)
        person = next(path for path in sorted((tmp_path / "codex").glob("*brick*")))
        person.write_text(person.read_text().replace("temperature", "temperature ", 1) + "\n# Later.\n")
        mind.write_text(mind.read_text() + "\n# Later.\n")
        baseline = await uvm.readiness.ready()
        async with open_past(uvm, tid, Events(log=False)) as past:
            found = await past.reconciler.check()
            with past.image.snapshot() as root, uvm.image.snapshot() as now:
                assert persona_models.read_record(root).used == persona_models.read_record(now).used
                assert persona_models.read_record(root).codex_digest == before.codex_digest
            assert found.codex.digest == before.codex_digest
            assert found.digests == baseline.baseline.digests
            for refused in (past.reconciler.run(), past.reconciler.plan()):
                with pytest.raises(Refused, match="present"):
                    await refused


async def test_an_adapter_that_is_chosen_in_a_copy_acts_there(stage: Stage) -> None:
    """As a trial of it does: nobody thinks with it in the mind itself. Who chose nothing has the model of today."""
    await stage.uvm.image.shared.apply(lambda root: repository.choose(root, "ROBIN", None))
    gguf_adapter(stage.home / "adapters" / "robin" / "warm")
    plain = models_of(await stage.ask())
    asked = {"text": "Why do I worry?", "effort": "reflex"}
    async with open_past(stage.uvm, newest_commit(stage.uvm.image.db), Events(log=False)) as copy:
        await copy.image.writer.apply(lambda root: slot_values.try_out(root, (SlotWrite("ROBIN.adapter", "warm"),)))
        (warm,) = models_of(await copy.missions.ask({**asked, "persona": "ROBIN"}))
        assert warm.startswith("batos-robin-warm:")
        assert models_of(await copy.missions.ask({**asked, "persona": "BABS"})) == [stage.model("BABS")]
    assert models_of(await stage.ask()) == plain == [stage.model("ROBIN")]
    await stage.uvm.image.shared.apply(lambda root: slot_values.redefine(root, "ROBIN.adapter", "warm", ANN))
    assert models_of(await stage.ask()) == [warm]


async def test_before_genesis_there_was_no_mind(tmp_path: Path) -> None:
    """The image has commits that are older than its personas; the remedy is a moment that can be asked about."""
    async with scripted_uvm(tmp_path) as uvm:
        with pytest.raises(Refused, match="had not been made") as refused:
            async with open_past(uvm, kept_span(uvm.image.db).oldest, Events(log=False)):
                pass
        at = str(refused.value.remedy).partition("--as-of ")[2].partition(" or later")[0]
        async with open_past(uvm, tid_of(datetime.fromisoformat(at)), Events(log=False)) as past:
            assert past.reconciler.codex().digest


async def test_a_moment_is_refused_if_only_a_part_of_it_is_kept(tmp_path: Path) -> None:
    """The root did not change since, and is there; the list of missions did, and that of then is packed away."""
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        for text in ("What holds?", "What else holds?"):
            tid = newest_commit(uvm.image.db)
            mission = (await uvm.missions.ask({"text": text, "effort": "reflex"}))["id"]
            await uvm.missions.wait_for_end(mission)
        uvm.image.db.pack()
        with pytest.raises(PackedAway, match="packed away"):
            async with open_past(uvm, tid, Events(log=False)):
                pass
