"""Why: the reasons for effects, folds and retirements, what undoes each, and what an older version did not record."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agency.acting import BRIEF, acting, by_hand
from tests.autotelic.test_curator import BEGIN, DAY, Days, wish
from tests.memory.test_document_store import incoming
from tests.memory.test_fold_store import logs
from tests.methods.lifecycle.brick import NAME, receiver
from tests.server.dispatch.test_reads_why import kinds, the

from batos.agency.records import effect_records
from batos.history.why_missions import explain_method
from batos.history.why_nodes import Asking
from batos.image.roots import Root
from batos.inference.journal import Journal
from batos.memory.records.memories_set_aside import FOLDED_FOR
from batos.methods.lifecycle.method_reports import find_lineage
from batos.protocol.errors import NotFound
from batos.server.dispatch.reads import explain
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams


async def test_an_effect_leads_to_its_mission_step_and_grant(tmp_path: Path) -> None:
    """A method's effect names the method; what went out, what came back, and that nothing takes it back."""
    async with acting(tmp_path, hold=by_hand()) as mind:
        told = await mind.uvm.missions.ask(BRIEF)
        (effect,) = (await mind.ask("effects"))["effects"]
        waits = explain(mind.uvm.readings, effect["effect"], "tester")
        assert the(waits, "undo")["text"] == f"`batos undo {told['id']}` takes it back before it happens"
        assert await mind.states() == ["released"]
        found = explain(mind.uvm.readings, effect["effect"], "tester")
        assert kinds(found) == ["mission", "step", "grant", "sent", "returned", "undo"]
        assert found["text"] == f"{effect['what']} by notes: released (1 attempts)"
        assert the(found, "mission")["ref"] == told["id"]
        assert "tamland_facet_ at " in the(found, "step")["text"]
        assert str(mind.folder) in the(found, "grant")["text"]
        assert the(found, "approval")["text"].startswith("tester named the grant")
        assert "Asked: " in the(found, "sent")["text"]
        assert the(found, "undo")["text"].startswith("nothing takes it back")
        with pytest.raises(NotFound, match="no effect"):
            explain(mind.uvm.readings, effect["effect"], "bob")
        with pytest.raises(NotFound) as refused:
            explain(mind.uvm.readings, "e-none-01", "tester")
        assert "batos effects" in refused.value.remedy


async def test_an_effect_of_an_older_version_says_what_is_not_recorded(tmp_path: Path) -> None:
    """A person's message is one; a grant that was revoked is told; of an erased one nothing that was sent."""
    async with acting(tmp_path, hold=by_hand()) as mind:
        await mind.send("notes", "log.txt", "A line.")
        (effect,) = (await mind.ask("effects"))["effects"]
        assert the(explain(mind.uvm.readings, effect["effect"]), "step")["text"].endswith("message that its mission is")

        def make_older(root: Root) -> None:
            del effect_records.find_effect(root, effect["effect"])["asked_by"]
            effect_records.revoke_capability(root, "notes")

        await mind.uvm.image.writer.apply(make_older)
        found = explain(mind.uvm.readings, effect["effect"])
        assert the(found, "step")["text"] == "the step that asked for it was not recorded by that version"
        assert "which is revoked" in the(found, "grant")["text"]
        await mind.ask("erase", target=effect["mission"], user="tester")
        gone = explain(mind.uvm.readings, effect["effect"])
        assert "A line." not in str(gone)
        assert "something that was erased" in gone["text"]


async def test_a_fold_leads_to_its_rule_its_memories_and_its_undo(tmp_path: Path) -> None:
    """What was measured of each memory is told; a memory that was folded names what stands for it."""
    clock = Days()
    async with scripted_uvm(tmp_path, ScriptedBridge(), seams=Seams(clock=clock), user="ann") as uvm:
        given = [incoming(text, f"/notes/{n}") for n, text in enumerate(logs(20))]
        await uvm.document_store.remember(given)
        clock.now = BEGIN + 31 * DAY
        folded = (await uvm.curator.curate(wish()))["regions"][0]
        found = explain(uvm.readings, folded["summary"], "ann")
        fold = the(found, "fold")
        assert fold["text"].startswith("nobody had recalled its memories since ")
        assert "(cold, written by rule)" in fold["text"]
        assert the(fold, "undo")["text"].startswith(f"`batos curate --undo {folded['summary']}`")
        inner = [each for each in found["because"] if each["kind"] == "memory"]
        assert len(inner) == len(folded["documents"])
        assert all(each["text"].startswith("summarises (last used 20") for each in inner)
        memory = explain(uvm.readings, inner[0]["ref"], "ann")
        assert "brings it back" in the(memory, "fold")["text"]
        assert the(memory, "fold")["ref"] == folded["summary"]

        def make_older(root: Root) -> None:
            delattr(root["documents"][folded["summary"]], FOLDED_FOR)

        await uvm.image.writer.apply(make_older)
        older = explain(uvm.readings, folded["summary"], "ann")
        assert "a time that was not recorded by that version" in the(older, "fold")["text"]
        with pytest.raises(NotFound):
            explain(uvm.readings, folded["summary"], "bob")


async def test_a_retired_method_leads_to_its_uses_and_the_way_back() -> None:
    """The rule with its counts, by whom and when; another user sees no person's mission."""
    async with receiver(least=5) as brick:
        await brick.learn("plan_facet_")
        for _ in range(5):
            await brick.use("plan_facet_", outcome="fault", control=False)
        with brick.image.snapshot() as root:
            lineage = find_lineage(root, f"{NAME}.plan_facet_")
            asking = Asking(root, Journal(brick.image.journal_db, brick.image.journal_writer), None)
            found = explain_method(asking, lineage)
            assert found["text"].endswith("revision 1, out of use")
            gone = the(found, "retired")
            assert gone["text"] == "revision 1 went: it failed in 5 of 5 uses (by the ledger)"
            assert gone["at"]
            assert the(gone, "uses")["text"] == "5 uses, of which 5 failed and 5 ended badly"
            assert len(the(gone, "uses")["because"]) == 5
            assert the(gone, "undo")["text"] == f"`batos method rollback {NAME}.plan_facet_ --revision 1`"
        await brick.lifecycle.roll_back(f"{NAME}.plan_facet_", 1, "ann")
        with brick.image.snapshot() as root:
            lineage = find_lineage(root, f"{NAME}.plan_facet_")
            again = explain_method(Asking(root, asking.journal, None), lineage)
            assert not [each for each in again["because"] if each["kind"] == "retired"]
