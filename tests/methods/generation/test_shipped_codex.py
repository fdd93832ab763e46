"""The shipped codex: the first message to each facet and key protocol that learns compiles it."""

from __future__ import annotations

from pathlib import Path

from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.image.roots import named_objects
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.protocol.mission_documents import ProvenanceDocument
from batos.testing import emulated_uvm
from batos.uvm import UVM
from ollama_emulator.options import Options

GADGET = "gadget_generation_protocol_"
PERSONAS = tuple(map(prototype_name, PILLARS))


def slots(uvm: UVM, kind: type) -> set[tuple[str, str]]:
    """Each slot of a persona that holds a facet or protocol as an intent or, by now, as a method.

    But BRICK's gadget generation: what it makes is a tool, and it is that tool that is compiled. And but ALFRED's two
    audits: a cycle tells them what the kernel measured, which no method is given.
    """
    with uvm.image.snapshot() as root:
        return {
            (name, slot)
            for name in PERSONAS
            for slot, value in own_slots(named_objects(root)[name]).items()
            if isinstance(value, kind) and slot.endswith(("_facet_", "_protocol_"))
            if slot != GADGET and not slot.endswith("_audit_protocol_")
        }


async def test_every_facet_and_protocol_is_compiled_on_first_use(tmp_path: Path) -> None:
    """Each is a method after one message, made and run in that mission; the second message makes nothing."""
    options = Options(embedder=lambda text: [1.0, float(len(text))])
    async with emulated_uvm(tmp_path, options, install="now", method_control=0, hour_generations=100) as (uvm, _):
        await uvm.readiness.genesis()
        declared = slots(uvm, Intent)
        assert {name for name, _ in declared} == set(PERSONAS)
        assert {slot for _, slot in declared} >= {slot for pillars in PILLARS.values() for slot in pillars}
        assert {name for name, slot in declared if slot.endswith("_protocol_")} == set(PERSONAS)
        for name, slot in sorted(declared):
            first, second = [await told(uvm, name, slot) for _ in range(2)]
            assert [each["outcome"] for each in first["generated"]] == ["installed"], slot
            assert [each["as"] for each in first["methods"]] == ["method, made in this mission"], slot
            assert second["generated"] == []
            assert [each["as"] for each in second["methods"]] == ["method"], slot
        assert slots(uvm, Method) == declared
        assert slots(uvm, Intent) == set()


async def told(uvm: UVM, receiver: str, selector: str) -> ProvenanceDocument:
    """Where the answer to a message to a slot came from."""
    message = {"receiver": receiver, "selector": selector, "arguments": ["The pier is of granite, and it is wet."]}
    mission = await uvm.missions.ask({"text": selector, "message": message})
    return mission["provenance"]
