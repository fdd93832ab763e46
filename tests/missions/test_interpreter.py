"""What messages mean while a mission runs: only a declared intent thinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.image.open_image import passed
from tests.minds.conftest import Mind
from tests.minds.scripted import GOOD, QUESTION, ask, change, stepping, submit

from batos.genesis.codex.codex import PILLARS
from batos.memory.evidence import Evidence
from batos.minds.results import PartResult
from batos.objects.method import Intent, Primitive
from batos.objects.prototype import send
from batos.protocol.errors import MessageNotUnderstood, ObjectError

SLOT = PILLARS["BRICK"][0]


async def test_a_string_in_a_slot_is_never_an_order(mind: Mind) -> None:
    """Text that reads like an intent answers itself, and no call is made."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "wish_", "Generate a method that sings."))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        assert await send(opened.interpreter, opened.context.mind.persona, "wish_") == "Generate a method that sings."
        with pytest.raises(ObjectError, match="takes no arguments"):
            await send(opened.interpreter, opened.context.mind.persona, "wish_", "now")
    assert mind.bridge.history == []


async def test_a_string_in_a_facets_slot_fails_that_part_alone(mind: Mind) -> None:
    """A facet whose intent was replaced by its text does not think any more, and is named."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], SLOT, "Be bafflingly literal."))
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["failure"]["code"] == "object"
    assert shown["cost"]["calls"] == 4


@pytest.mark.parametrize("selector", ["no_such_facet_", "_doesNotUnderstand_", "__class__", "sing_for_"])
async def test_an_undeclared_selector_costs_no_call(mind: Mind, selector: str) -> None:
    """A message that nobody declared is not understood, at once."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(MessageNotUnderstood) as raised:
            await send(opened.interpreter, opened.context.mind.persona, selector, "x")
        assert raised.value.selector == selector
    assert mind.bridge.history == []


async def test_a_method_is_refused_without_a_cell(mind: Mind) -> None:
    """Generated source is never run in the kernel: the part fails and says why, the others go on."""
    method = passed(SLOT, "def tamland_facet_(self, query): return 1/0")
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], SLOT, method))
    runner = (await mind.uvm.readiness.ready()).runner
    runner.methods = replace(runner.methods, cell=None)
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    failure = shown["voices"][0]["failure"]
    assert "there is no cell to run it in" in failure["message"]
    assert failure["remedy"]
    assert shown["status"] == "done"


async def test_an_intent_is_interpreted_through_infer(mind: Mind) -> None:
    """Sending a facet's selector thinks once under the facet's prompt and gives data."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        steps = opened.machine.steps(opened.cycle)
        assert [await anext(steps), await anext(steps)] == ["IDLE", "DECOMPOSING"]
        part = await send(opened.interpreter, opened.context.mind.persona, SLOT, "What is there?", 2)
        assert isinstance(part, PartResult)
        assert (part.number, part.slot, part.query, part.is_known) == (2, SLOT, "What is there?", True)
        (told,) = opened.context.trace.behaviour
        assert (told["selector"], told["as"]) == (SLOT, "interpreted intent")
        assert told["holder"] == f"BRICK ({told['oid']})"
        assert told["revision"].startswith("tid:0x")
    assert len(mind.bridge.history) == 1


async def test_an_intent_without_arguments_is_refused(mind: Mind) -> None:
    """An intent needs its subject."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError, match="needs its subject"):
            await send(opened.interpreter, opened.context.mind.persona, SLOT)


async def test_an_intent_of_ones_own_hides_the_personas(mind: Mind) -> None:
    """A redefined intent in the image is what the next mission's facet is told."""
    own = Intent("Answer in hexameters.", name="The Bard", inspiration="Homer", kind="facet")
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], SLOT, own))
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["name"] == "The Bard"
    assert any("Answer in hexameters." in request.messages[-1]["content"] for request in mind.bridge.history)


async def test_a_kernel_function_that_is_not_there_is_named(mind: Mind) -> None:
    """A slot that names a kernel function which this version lacks is an error that says so."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "dance_", Primitive("traits.dance")))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError, match="no kernel function") as raised:
            await send(opened.interpreter, opened.context.mind.persona, "dance_")
        assert raised.value.remedy


async def test_memory_is_added_to_without_a_model(mind: Mind) -> None:
    """`index_document_` notes a document of the person's class; `embed_` says so where nothing embeds."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        catalog = opened.context.mission.root["knowledge_catalog_obj"]
        for receiver in (catalog, opened.context.mind.persona):
            await send(opened.interpreter, receiver, "index_document_", "Lamp", "The lamp burns oil.")
        assert [(each.title, each.trust, each.is_evidence) for each in opened.context.trace.indexed] == [
            ("Lamp", "user", True)
        ]
        with pytest.raises(ObjectError, match="no embedder"):
            await send(opened.interpreter, opened.context.mind.persona, "embed_", "x")
    assert mind.bridge.history == []


async def test_recall_answers_from_attachments_and_turns_alone(mind: Mind) -> None:
    """`recall_` gives what came with the mission, within the room that it is told, and calls no model."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        found = await send(opened.interpreter, opened.context.mind.persona, "recall_", QUESTION, 10_000)
        assert isinstance(found, Evidence)
        assert [each.name for each in found.passages] == ["lamp.txt"]
        assert found.turns == ()
        nothing = await send(opened.interpreter, opened.context.mind.persona, "recall_", QUESTION, 0)
        assert (nothing.passages, nothing.omitted_passages) == ((), 1)
    assert mind.bridge.history == []


async def test_recall_that_is_redefined_to_no_evidence_fails_the_mission(mind: Mind) -> None:
    """What a mission rests on has to be evidence."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "recall_", Primitive("traits.log")))
    with pytest.raises(ObjectError, match="no evidence but a NoneType"):
        await ask(mind.uvm)


async def test_infer_can_be_put_in_a_personas_place(mind: Mind) -> None:
    """A persona's own `infer_` is what its facets think with."""

    def redefine(root: Any) -> None:
        root["brick_prototype_obj"].infer_ = Primitive("no.such.mind")

    await change(mind.uvm, redefine)
    with pytest.raises(ObjectError, match=r"no\.such\.mind"):
        await ask(mind.uvm)
    assert mind.bridge.history == []


async def test_log_takes_anything(mind: Mind) -> None:
    """`log_` is a kernel function of every object that delegates to the traits."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        assert await send(opened.interpreter, opened.context.mind.persona, "log_", "a word", 2, None) is None
