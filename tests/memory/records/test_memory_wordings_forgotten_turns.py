"""What was forgotten does not come back by a turn, its answer, a later answer that repeats it, or a method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import FACET
from tests.image.installing import install

from batos.conversations import conversations
from batos.image import roots
from batos.memory.records import memory_records
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

NUMBER = "My locker number is 4417, please note it."


async def tell(uvm: UVM, text: str, conversation: str = "new") -> dict[str, Any]:
    """A mission of the user that is done and remembered."""
    brief = {"text": text, "user": "tester", "effort": "reflex", "conversation": conversation}
    told = await uvm.missions.ask(brief)
    await uvm.mission_memory.write()
    return dict(told)


def turns(uvm: UVM, conversation: str) -> list[tuple[str, str]]:
    """The question and answer of each turn, as a prompt has them."""
    with uvm.image.snapshot() as root:
        found = conversations.backwards(root, root[roots.CONVERSATIONS][conversation])
        return [(each.question, each.answer) for each in found][::-1]


def all_names(uvm: UVM) -> list[str]:
    """The names of all that is remembered."""
    with uvm.image.snapshot() as root:
        return list(root[roots.DOCUMENTS])


async def test_who_forgets_what_was_said_forgets_the_turn(tmp_path: Path) -> None:
    """And the turn that repeats it; another one of the conversation stays, and nothing says the number again."""
    bridge = ScriptedBridge.saying("Your locker number is 4417.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await tell(uvm, NUMBER)
        conversation = first["brief"]["conversation"]
        second = await tell(uvm, "What is my locker number?", conversation)
        assert "4417" in str(turns(uvm, conversation))
        (said, *_) = all_names(uvm)
        told = await uvm.document_store.forget([said], "tester")
        assert set(told["turns"]) == {first["id"], second["id"]}
        assert told["methods"] == []
        assert "4417" not in str(turns(uvm, conversation))
        with uvm.image.snapshot() as root:
            assert not [each for each in root[roots.DOCUMENTS].values() if "4417" in text_of(root, each)]
        prompts = len(bridge.history)
        await tell(uvm, "What did I tell you about my locker?", conversation)
        assert "4417" not in str([each.messages for each in bridge.history[prompts:]])


@pytest.mark.parametrize("named", ["My cat is called Miso.", "my cat  is called miso", "My cat is called Miso!"])
async def test_what_was_said_is_forgotten_by_its_words(tmp_path: Path, named: str) -> None:
    """All that says it, in a question or given; another's words stay, and words that nothing says name nothing."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("So it is.")) as uvm:
        await tell(uvm, "My cat is called Miso.")
        await tell(uvm, "Why is that? My cat is called Miso.")
        await tell(uvm, "My dog is called Miso.")
        with pytest.raises(NotFound, match="no document"):
            await uvm.document_store.forget([named], "somebody")
        with pytest.raises(NotFound, match="no document"):
            await uvm.document_store.forget(["My cat is called"], "tester")
        await uvm.document_store.forget([named], "tester")
        with uvm.image.snapshot() as root:
            left = " ".join(text_of(root, each) for each in root[roots.DOCUMENTS].values())
    assert "cat" not in left
    assert "My dog is called Miso." in left


def text_of(root: Any, document: Any) -> str:
    """The words of a document."""
    return " ".join(own_slots(each)["text"] for each in memory_records.chunks_of(root, document))


async def test_a_turn_about_something_else_stays(tmp_path: Path) -> None:
    """A year, a common word or one word of a sentence is not what was said."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("It is so.")) as uvm:
        first = await tell(uvm, "I bought the boat Aurora in 2019.")
        conversation = first["brief"]["conversation"]
        other = await tell(uvm, "Was the flood of 2019 bad for any boat?", conversation)
        told = await uvm.document_store.forget([all_names(uvm)[0]], "tester")
        assert told["turns"] == [first["id"]]
        assert turns(uvm, conversation)[1][0] == other["brief"]["text"]


@pytest.mark.parametrize(("source", "goes"), [("4417", True), ("5521", False)])
async def test_a_method_that_holds_the_words_is_retired(tmp_path: Path, source: str, goes: bool) -> None:
    """Its reason names the memory; one with other words stays."""
    method = f"async def {FACET}(self, query):\n    return await self.infer_(f'Locker {source}: {{query}}')\n"
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("It is so.")) as uvm:
        await uvm.image.writer.apply(lambda root: install(root, root["brick_prototype_obj"], FACET, method))
        await tell(uvm, NUMBER)
        told = await uvm.document_store.forget([all_names(uvm)[0]], "tester")
        assert told["methods"] == ([f"BRICK.{FACET}"] if goes else [])
