"""What methods add to memory, and whose word that is; vectors of texts, from the journal the second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.memory.test_document_store import incoming
from tests.methods.execution.method_mind import MethodMind, open_method_mind

from batos.approvals.documents import list_approvals
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError
from batos.testing import ScriptedBridge

KEEPER = "The keeper of Holm Light is Anna Berg."


async def remembered(mind: MethodMind) -> list[tuple[str, str, str]]:
    """Title, trust class and mission of all that is remembered, after what waits was written."""
    await mind.uvm.mission_memory.write()
    return [(each["title"], each["trust"], each["mission"]) for each in mind.uvm.readings.memories(99)["memories"]]


async def test_a_method_adds_documents_that_later_missions_find(mind: MethodMind) -> None:
    """They belong to the mission, are of no better class than a model's word, and are found in the same mission too."""
    await mind.learn(
        note_=f"""
        async def note_(self):
            await self.index_document_("Keepers", "{KEEPER}")
            await self.index_document_(title="The same", text="{KEEPER}")
            return await self.recall_("keeper Holm Light", 2000)
        """
    )
    told = await mind.send("note_")
    assert told["provenance"]["message"]["result"] == [f"Keepers: {KEEPER}"]
    assert await remembered(mind) == [("Keepers", "model", told["id"])]
    asked = await mind.uvm.missions.ask({"text": "Who is the keeper of Holm Light?", "effort": "reflex"})
    assert [each["trust"] for each in asked["provenance"]["recalled"]] == ["model"]


async def test_a_text_that_a_model_had_a_part_in_is_recalled_and_is_no_evidence(mind: MethodMind) -> None:
    """So a model does not take its own word for a fact."""
    await mind.learn(
        note_=f"""
        async def note_(self):
            said = await self.infer_("Who keeps Holm Light?")
            await self.index_document_("Keepers", "{KEEPER}")
            return said
        """
    )
    await mind.send("note_")
    assert len(await remembered(mind)) == 1
    asked = await mind.uvm.missions.ask({"text": "Who is the keeper of Holm Light?", "effort": "reflex"})
    assert asked["provenance"]["recalled"] == []
    reach = MemoryReach(mind.uvm.settings.asker)
    page = mind.uvm.readings.recall(RecallQuery("keeper of Holm Light"), 9, reach)
    assert "Keepers" in {each["title"] for each in page["recalled"]}


async def test_what_was_made_of_a_file_has_its_class(mind: MethodMind) -> None:
    """The least of everything that the method saw."""
    await mind.learn(
        note_="""
        async def note_(self):
            found = await self.recall_("hawser", 2000)
            await self.index_document_("Hawser", found[0])
        """
    )
    await mind.send("note_", files=(as_file("log.txt", b"A hawser weighs 8,800 g."),))
    assert [(title, trust) for title, trust, _ in await remembered(mind)] == [("Hawser", "external")]


async def test_a_message_of_a_person_adds_their_word(mind: MethodMind) -> None:
    """`batos send knowledge_catalog_obj.index_document_ TITLE TEXT`."""
    await mind.send("index_document_", "Keepers", KEEPER, receiver="knowledge_catalog_obj")
    assert [(title, trust) for title, trust, _ in await remembered(mind)] == [("Keepers", "user")]


async def test_a_mission_without_memory_adds_nothing(mind: MethodMind) -> None:
    """The method is told so."""
    with pytest.raises(BatosError, match="keeps nothing in memory"):
        await mind.send("index_document_", "a", "b", receiver="knowledge_catalog_obj", policy={"memory": "none"})
    assert await remembered(mind) == []


@pytest.mark.parametrize(
    ("selector", "arguments"),
    [
        ("index_document_", ()),
        ("index_document_", ("title",)),
        ("index_document_", ("", "text")),
        ("index_document_", ("title", " ")),
        ("index_document_", ("title", 7)),
        ("index_document_", ("t" * 201, "text")),
        ("embed_", ()),
        ("embed_", ([],)),
        ("embed_", (["a"] * 65,)),
        ("embed_", ([7],)),
        ("embed_", ("x" * 8_001,)),
    ],
)
async def test_wrong_arguments_are_refused_by_name(mind: MethodMind, selector: str, arguments: tuple[Any, ...]) -> None:
    """Nothing is kept then."""
    with pytest.raises(BatosError, match=selector):
        await mind.send(selector, *arguments)
    assert await remembered(mind) == []


async def test_the_same_text_of_a_later_mission_is_not_stored_again(mind: MethodMind) -> None:
    """A method that runs in each mission does not fill the memory."""
    for _ in range(2):
        await mind.send("index_document_", "Keepers", KEEPER, receiver="knowledge_catalog_obj")
        assert len(await remembered(mind)) == 1


async def test_texts_have_vectors(tmp_path: Path) -> None:
    """A vector for a text, a list of them for a list; each is asked for once."""
    bridge = ScriptedBridge(vectors=lambda text: [float(len(text)), 1.0])
    async with open_method_mind(tmp_path / "home", bridge=bridge) as mind:
        await mind.learn(
            near_="""
            async def near_(self):
                one = await self.embed_("abc")
                two = await self.embed_(["abc", "ab"])
                return [one, two]
            """
        )
        one, (same, two) = await mind.sent("near_")
        assert one == same
        assert [len(each) for each in (one, two)] == [2, 2]
        assert bridge.embedded.count("ab") == 1


async def test_a_person_is_asked_before_anything_is_forgotten(mind: MethodMind) -> None:
    """The question is bound to exactly the documents that were named; only a yes forgets them."""
    await mind.uvm.document_store.remember([incoming(KEEPER, "/keeper", mind.uvm.settings.asker)])
    await mind.learn(
        tidy_="""
        async def tidy_(self):
            return await self.forget_("/keeper")
        """
    )
    assert await mind.sent("tidy_") == "asked"
    assert len(await remembered(mind)) == 1
    with mind.uvm.image.snapshot() as root:
        (line,) = list_approvals(root, "2026", 9)["approvals"]
    assert [keys["selector"] for keys in mind.told("approval.asked")] == ["forget_"]
    answered = await mind.uvm.approvals.approve([line["id"]], "ada")
    assert [each.word for each in answered.answers] == ["approved"]
    assert await remembered(mind) == []


async def test_a_yes_does_not_count_for_what_has_changed_since(mind: MethodMind) -> None:
    """A document of another content has another id: nothing is forgotten then."""
    owner = mind.uvm.settings.asker
    await mind.uvm.document_store.remember([incoming(KEEPER, "/keeper", owner)])
    await mind.send("forget_", "/keeper", receiver="knowledge_catalog_obj")
    await mind.uvm.document_store.remember([incoming("Ole Dahl keeps it.", "/keeper", owner)])
    with mind.uvm.image.snapshot() as root:
        (line,) = list_approvals(root, "2026", 9)["approvals"]
    answered = await mind.uvm.approvals.approve([line["id"]], "ada")
    assert [each.word for each in answered.answers] == ["outdated"]
    assert len(await remembered(mind)) == 1


@pytest.mark.parametrize("named", ["/none", "/bobs", "/work", [], 7, [7]])
async def test_only_what_the_mission_may_use_can_be_named(mind: MethodMind, named: Any) -> None:
    """Another user's documents and those of another scope are as if they were not there."""
    owner = mind.uvm.settings.asker
    given = [incoming(KEEPER, "/bobs", "bob"), incoming(KEEPER, "/work", owner, "work")]
    await mind.uvm.document_store.remember(given)
    with pytest.raises(BatosError, match="forget_"):
        await mind.send("forget_", named)
    with mind.uvm.image.snapshot() as root:
        assert list_approvals(root, "2026", 9)["approvals"] == []
