"""Remembering missions: what was said in one is known in the next, and a model's word is no evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from batos.image import roots
from batos.image.roots import Root
from batos.memory.corrections import Corrections
from batos.memory.exchanges import IndexedDocument, pack
from batos.memory.known_texts import Incoming
from batos.memory.passages import document_chunks
from batos.memory.records import memory_standings
from batos.memory.records.memory_records import NewDocument
from batos.memory.records.memory_standings import Standing
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import NotFound
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

SAID = "My cat is called Miso. What may she eat?"
ASKED = "What is the name of my cat?"


async def ask(uvm: UVM, text: str, **brief: Any) -> dict[str, Any]:
    """The report of a mission that is done and remembered."""
    told = await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **brief})
    await uvm.mission_memory.write()
    return dict(told)


def kinds(uvm: UVM) -> list[str]:
    """The kinds of all that is remembered, the oldest first."""
    return [each["kind"] for each in reversed(uvm.readings.memories(99)["memories"])]


async def test_what_was_said_in_one_mission_is_known_in_the_next(tmp_path: Path) -> None:
    """As the person's word, quoted; the model's own answer is remembered and is no evidence."""
    bridge = ScriptedBridge.saying("She may eat raisins and chocolate.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await ask(uvm, SAID)
        assert sorted(kinds(uvm)) == ["mission", "turn"]
        told = await ask(uvm, ASKED)
        (found,) = told["provenance"]["recalled"]
        assert (found["trust"], "cat" in found["why"]) == ("user", True)
        asked = bridge.history[-1].messages
        assert "My cat is called Miso." in "\n".join(each["content"] for each in asked)
        assert "raisins" not in "\n".join(each["content"] for each in asked)
        listed = uvm.readings.memories(99)["memories"]
        assert {each["mission"] for each in listed} == {first["id"], told["id"]}


async def test_another_user_and_a_mission_without_memory_know_nothing_of_it(tmp_path: Path) -> None:
    """And nothing of that mission is remembered."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        await ask(uvm, SAID)
        assert (await ask(uvm, ASKED, user="bob"))["provenance"]["recalled"] == []
        before = kinds(uvm)
        assert (await ask(uvm, ASKED, policy={"memory": "none"}))["provenance"]["recalled"] == []
        assert kinds(uvm) == before


async def test_a_mission_is_forgotten_by_its_id(tmp_path: Path) -> None:
    """What was said in it, and the answer."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        first = await ask(uvm, SAID)
        with pytest.raises(NotFound):
            await uvm.document_store.forget([first["id"]], "bob")
        gone = await uvm.document_store.forget([first["id"]], "tester")
        assert len(gone["forgotten"]) == 2
        assert kinds(uvm) == []
        with pytest.raises(NotFound):
            await uvm.document_store.forget([first["id"]], "tester")


async def test_missions_that_wait_are_remembered_at_the_end_or_by_the_next_process(tmp_path: Path) -> None:
    """They wait in the image, so that nothing is lost where the process dies first."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        told = await uvm.missions.ask({"text": SAID, "user": "tester", "effort": "reflex"})
        with uvm.image.snapshot() as root:
            assert list(root[roots.UNREMEMBERED]) == [told["id"]]
            assert len(root[roots.DOCUMENTS]) == 0
        await uvm.mission_memory.job.stop()
        with uvm.image.snapshot() as root:
            assert list(root[roots.UNREMEMBERED]) == []
            assert len(root[roots.DOCUMENTS]) == 2
        await uvm.image.writer.apply(lambda root: root[roots.UNREMEMBERED].insert("m-gone"))
        await uvm.mission_memory.write()
        with uvm.image.snapshot() as root:
            assert list(root[roots.UNREMEMBERED]) == []


async def test_many_missions_are_one_commit(tmp_path: Path) -> None:
    """Written together after a pause; who waits for that is told once."""
    written: list[None] = []
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        uvm.image.signals.remembered.call(lambda: written.append(None))
        for number in range(3):
            await uvm.missions.ask({"text": f"What do {number} cats eat?", "user": "tester", "effort": "reflex"})
        await uvm.mission_memory.write()
        assert len(written) == 1
        assert kinds(uvm) == ["mission"] * 3


async def test_what_was_stated_is_known_to_the_question_right_after_it(tmp_path: Path) -> None:
    """Both asked at once, before the pause in which memories gather; another user's question does not wait."""
    written: list[None] = []
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        uvm.image.signals.remembered.call(lambda: written.append(None))
        brief = {"user": "tester", "effort": "reflex"}
        await uvm.missions.ask({**brief, "text": SAID})
        await uvm.missions.ask({**brief, "text": ASKED, "user": "bob"})
        assert not written
        told = await uvm.missions.ask({**brief, "text": ASKED})
        (found,) = told["provenance"]["recalled"]
        assert (found["trust"], len(written)) == ("user", 1)


async def test_a_question_waits_for_memories_no_longer_than_its_patience(tmp_path: Path) -> None:
    """A write that does not end keeps no answer back."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        brief = {"user": "tester", "effort": "reflex"}
        await uvm.missions.ask({**brief, "text": SAID})
        async with uvm.document_store.exclusively():
            told = await uvm.missions.ask({**brief, "text": ASKED})
        assert told["provenance"]["recalled"] == []


async def remember(uvm: UVM, text: str) -> str:
    """Remember a text of the tester's; the name of its document."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    given = Incoming("tester", "default", "/lamp", "lamp", "text/plain", text, digest, "external")
    return (await uvm.document_store.remember([given]))["remembered"][0]["document"]


async def test_an_answer_stands_with_the_memories_that_it_was_made_from(tmp_path: Path) -> None:
    """Forgotten with them; where its source changed, it is no evidence any more."""
    question = "Who winds the clockwork of the lamp?"
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("Maro winds the clockwork of the lamp.")) as uvm:
        name = await remember(uvm, "Maro winds the clockwork of the lamp.")
        assert (await ask(uvm, question))["provenance"]["citations"]
        assert kinds(uvm) == ["document", "mission"]
        await remember(uvm, "The oil is dear this year, and gulls cry.")
        recalled = (await ask(uvm, question, effort="reflex"))["provenance"]["recalled"]
        assert [each["why"].partition(";")[0] for each in recalled] == ["perhaps"]
        changed = await remember(uvm, "Maro winds the clockwork of the lamp.")
        assert changed != name
        again = await ask(uvm, question)
        assert [each["memory"] for each in again["provenance"]["recalled"]] == [changed]
        gone = await uvm.document_store.forget(["/lamp"], "tester")
        assert again["id"] in {each["mission"] for each in gone["forgotten"]}


async def test_an_answer_from_a_file_that_was_attached_once_is_evidence(tmp_path: Path) -> None:
    """Where nothing else bears on the question, and the file carried all of it."""
    question = "Who winds the clockwork of the lamp?"
    file = as_file("lamp.txt", b"Maro winds the clockwork of the lamp. Gulls cry.")
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("Maro winds the clockwork of the lamp.")) as uvm:
        first = await uvm.missions.ask({"text": question, "user": "tester", "effort": "reflex"}, [file])
        await uvm.mission_memory.write()
        (found,) = (await ask(uvm, question))["provenance"]["recalled"]
        assert (found["trust"], found["name"]) == ("external", question)
        assert first["trust"]["lineage"] == "external"


@pytest.mark.parametrize("is_forgotten", [True, False])
async def test_what_a_person_takes_back_before_an_answer_is_written_is_not_in_it(
    tmp_path: Path, is_forgotten: bool
) -> None:
    """An answer that cites what was forgotten is not kept; of a cascade it is part, and comes back with it."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("Maro winds the clockwork of the lamp.")) as uvm:
        await remember(uvm, "Maro winds the clockwork of the lamp.")
        brief = {"text": "Who winds the clockwork of the lamp?", "user": "tester", "effort": "reflex"}
        assert (await uvm.missions.ask(brief))["provenance"]["citations"]
        work = Corrections(uvm.image, uvm.document_store, uvm.clock)
        if is_forgotten:
            await uvm.document_store.forget(["/lamp"], "tester")
        else:
            await work.retract(["/lamp"], "tester", cascade=True)
        await uvm.mission_memory.write()
        assert kinds(uvm) == []
        if not is_forgotten:
            await work.restore(["/lamp"], "tester")
            assert sorted(kinds(uvm)) == ["document", "mission"]


async def test_what_a_method_gave_is_forgotten_with_its_mission(tmp_path: Path) -> None:
    """And not what another mission's method gave."""
    message = {"receiver": "knowledge_catalog_obj", "selector": "index_document_"}
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        one = await ask(uvm, "Index.", message={**message, "arguments": ["Lamp", "Oil."]})
        await ask(uvm, "Index.", message={**message, "arguments": ["Lamp", "Gas."]})
        gone = await uvm.document_store.forget([one["id"]], "tester")
        assert [each["mission"] for each in gone["forgotten"]] == [one["id"]]
        assert kinds(uvm) == ["document"]


OIL = "The oil of the lamp stands in the cellar."


@pytest.mark.parametrize(
    ("trust", "is_evidence", "standing", "left"),
    [
        ("model", False, "current", ["user"]),
        ("external", False, "current", ["user"]),
        ("model", True, "retracted", ["model", "user"]),
        ("model", True, "current", ["model"]),
        ("user", False, "current", ["user"]),
        ("user", True, "retracted", ["user"]),
    ],
)
async def test_a_person_says_what_a_method_stored_before(
    tmp_path: Path, trust: str, is_evidence: bool, standing: Standing, left: list[str]
) -> None:
    """The person's word takes the place of a text that nothing is answered from, and of no other."""
    given = IndexedDocument("Oil", OIL, trust, is_evidence)
    chunks = document_chunks("Oil", OIL)
    older = NewDocument(
        "d-older", "tester", "default", given.source, "Oil", "text/plain", given.digest, len(OIL), trust,
        "2026-01-01", chunks, mission="m-older", is_evidence=is_evidence,
    )  # fmt: skip
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        await uvm.document_store.add([older], lambda root: memory_standings.set_standing(root, "d-older", standing))
        message = {"receiver": "knowledge_catalog_obj", "selector": "index_document_", "arguments": ["Oil", OIL]}
        await ask(uvm, "Index.", message=message)
        with uvm.image.snapshot() as root:
            documents = [own_slots(each) for each in root[roots.DOCUMENTS].values()]
        assert sorted(each["trust"] for each in documents) == left
        is_new = [each["trust"] for each in documents if each["name"] != "d-older"] == ["user"]
        assert is_new == (trust != "user" and (not is_evidence or standing == "retracted"))
        told = await ask(uvm, "Where does the oil of the lamp stand?")
        shown = [each["trust"] for each in told["provenance"]["recalled"]]
        assert shown == (["user"] if is_new else [trust] if is_evidence and standing == "current" else [])


async def test_of_a_text_that_several_missions_gave_at_once_the_better_counts(tmp_path: Path) -> None:
    """Whichever is written first."""
    message = {"receiver": "knowledge_catalog_obj", "selector": "index_document_", "arguments": ["Oil", OIL]}
    worse = pack([IndexedDocument("Oil", OIL, "model", is_evidence=False)])
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        for turn in (0, 1):
            brief = {"text": "Index.", "user": "tester", "effort": "reflex", "message": message}
            missions = [(await uvm.missions.ask(brief))["id"] for _ in range(2)]

            def make_worse(root: Root, mission: str = missions[turn]) -> None:
                roots.mission_record(root, mission).thought.indexed_documents = worse

            await uvm.image.writer.apply(make_worse)
            await uvm.mission_memory.write()
            with uvm.image.snapshot() as root:
                (found,) = map(own_slots, root[roots.DOCUMENTS].values())
            assert (found["trust"], found["mission"]) == ("user", missions[1 - turn])
            await uvm.document_store.forget([found["name"]], "tester")
