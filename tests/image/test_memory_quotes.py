"""Answers and what they quote: an answer that cites a memory is found by it, and stands only with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from batos.image import memory_quotes, memory_records, memory_standings
from batos.memory.document_store import Incoming
from batos.testing import ScriptedBridge, scripted_uvm

LAMP = "Maro winds the clockwork of the lamp."


async def test_an_answer_is_found_by_what_it_cites(tmp_path: Path) -> None:
    """And has no ground any more when that is retracted; a mission that is not there has none to lose."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP)) as uvm:
        digest = hashlib.sha256(LAMP.encode()).hexdigest()
        given = Incoming("tester", "default", "/lamp", "lamp", "text/plain", LAMP, digest, "external")
        name = (await uvm.document_store.remember([given]))["remembered"][0]["document"]
        brief = {"text": "Who winds the clockwork of the lamp?", "user": "tester", "effort": "reflex"}
        told = await uvm.missions.ask(brief)
        await uvm.mission_memory.write()
        with uvm.image.snapshot() as root:
            (answer,) = memory_quotes.answers_quoting(root, {name})
            assert memory_records.find_document(root, told["id"]).name == answer
            assert list(memory_quotes.answers_quoting(root, {"d-other"})) == []
            assert memory_quotes.is_grounded(root, told["id"])
            assert memory_quotes.is_grounded(root, "m-none")
        await uvm.image.writer.apply(lambda root: memory_standings.set_standing(root, name, "retracted"))
        with uvm.image.snapshot() as root:
            assert not memory_quotes.is_grounded(root, told["id"])
