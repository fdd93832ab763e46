"""Genesis for an image as it was: its personas keep who they were, and think with the models of today."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from batos.events import Events
from batos.genesis import persona_models
from batos.genesis.codex import codex as codices
from batos.image.past import kept_span, newest_commit, tid_of
from batos.protocol.errors import PackedAway, Refused
from batos.testing import scripted_uvm
from batos.uvm import open_past


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
