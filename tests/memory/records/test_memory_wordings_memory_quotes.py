"""Answers and what they quote: an answer that cites a memory is found by it, and stands only with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from batos.image import roots
from batos.memory.known_texts import Incoming
from batos.memory.records import memory_records, memory_standings, memory_wordings
from batos.protocol.brief import File, as_file
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LAMP = "Maro winds the clockwork of the lamp."
#: What only a file says, so that an answer has more than memories to rest on.
OIL = "The oil of Bremen comes by ship."


async def remember_lamp(uvm: UVM) -> str:
    """Remember a text; the name of its document."""
    digest = hashlib.sha256(LAMP.encode()).hexdigest()
    given = Incoming("tester", "default", "/lamp", "lamp", "text/plain", LAMP, digest, "external")
    return (await uvm.document_store.remember([given]))["remembered"][0]["document"]


async def ask(uvm: UVM, text: str, *files: File) -> str:
    """Ask what is answered by reflex, and remember the answer; the mission."""
    told = await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex"}, files)
    assert told["provenance"]["citations"]
    await uvm.mission_memory.write()
    return str(told["id"])


async def test_an_answer_is_found_by_what_it_cites(tmp_path: Path) -> None:
    """And has no ground any more when that is retracted; a mission that is not there has none to lose."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP)) as uvm:
        name, told = await remember_lamp(uvm), await ask(uvm, "Who winds the clockwork of the lamp?")
        with uvm.image.snapshot() as root:
            (answer,) = memory_wordings.answers_quoting(root, {name})
            assert memory_records.find_document(root, told).name == answer
            assert list(memory_wordings.answers_quoting(root, {"d-other"})) == []
            assert memory_wordings.is_grounded(root, told)
            assert memory_wordings.is_grounded(root, "m-none")
        await uvm.image.writer.apply(lambda root: memory_standings.set_standing(root, name, "retracted"))
        with uvm.image.snapshot() as root:
            assert not memory_wordings.is_grounded(root, told)


async def test_an_answer_to_an_answer_goes_the_same_way(tmp_path: Path) -> None:
    """Nobody answers from words whose source is retracted, however they came; and with the source all are forgotten."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(f"{LAMP} {OIL}")) as uvm:
        name = await remember_lamp(uvm)
        oil = as_file("oil.txt", OIL.encode())
        first = await ask(uvm, "Which keeper at the lighthouse of Ulm winds the clockwork of the lamp?", oil)
        second = await ask(uvm, "Which keeper works at the lighthouse of Ulm?")
        with uvm.image.snapshot() as root:
            answers = [memory_records.find_document(root, each).name for each in (first, second)]
            shown = roots.mission_record(root, second).thought.provenance["recalled"]
            assert [each["memory"] for each in shown] == answers[:1]
            assert sorted(memory_wordings.answers_quoting(root, {name})) == sorted(answers)
            assert memory_wordings.is_grounded(root, second)
        await uvm.image.writer.apply(lambda root: memory_standings.set_standing(root, name, "retracted"))
        with uvm.image.snapshot() as root:
            assert not memory_wordings.is_grounded(root, second)
        gone = await uvm.document_store.forget([name], "tester")
        assert {each["document"] for each in gone["forgotten"]} == {name, *answers}
