"""What a coder is asked: who, what and with what, and nothing of what the message that failed was about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.methods.generation.generation_setup import WISH, wish

from batos.genesis import graph
from batos.genesis.codex import codex, declarations, value_checks
from batos.guardian import policy
from batos.image.image import LivingImage
from batos.image.roots import named_objects
from batos.methods.generation import dialogue
from batos.methods.generation import method_spec as wants
from batos.methods.generation.method_checks import REPLY
from batos.minds import prompt
from batos.objects.prototype import UvmObject

#: A text that no codex has.
SECRET = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=8, max_size=40).map(
    lambda text: f"§{text}§"
)
VALUE = SECRET | st.lists(SECRET, max_size=2) | st.dictionaries(SECRET, SECRET, max_size=2)
SLOTS = ("diary", "mood", "last_answer")

SHIPPED = codex.parse(codex.read_shipped()).sound()
WITH_CODER = {
    **codex.read_shipped(),
    "mind.toml": codex.read_shipped()["mind.toml"].replace('# coder = "', 'coder = "'),
}
OTHER = codex.parse(WITH_CODER).sound()


def asked(wanted: wants.MethodSpec) -> str:
    """The whole request as text."""
    return "\n".join(message["content"] for message in dialogue.messages(wanted, policy.dialect_text(), REPLY.guide))


async def minded(image: LivingImage) -> None:
    """Let the image have the shipped mind."""
    await image.writer.apply(lambda root: graph.build(root, SHIPPED))


def test_a_request_has_the_lines_that_its_page_promises() -> None:
    """docs/generation.md is what the emulator reads by: each heading stands where it says, in its order."""
    whole = wish(
        kind="facet",
        title="The Guide",
        inspiration="a book",
        examples=("Why?",),
        arguments=("str",),
        given={"name": "B"},
    )
    system, user = dialogue.messages(whole, policy.dialect_text(), REPLY.guide)
    assert system["content"].splitlines()[0] == dialogue.HEAD
    lines = user["content"].splitlines()
    headings = ["Owner:", "Receiver: ", "Selector: ", "Signature: ", "Kind: ", "Name: ", "Inspiration: ", "Arguments: "]
    headings += ["Intent:", "Examples:", "Slots:", "Messages:", "Task:", "Reply with:"]
    places = [next(place for place, line in enumerate(lines) if line.startswith(heading)) for heading in headings]
    assert places == sorted(places)
    assert "- count: int" in lines
    assert lines[0] == "Owner:"


def test_sections_that_have_nothing_are_left_out() -> None:
    """An object without slots, examples or arguments is not asked about with empty headings."""
    bare = wish(slots=(), messages=(), examples=(), arguments=())
    text = dialogue.messages(bare, policy.dialect_text(), REPLY.guide)[1]["content"]
    assert not any(heading in text for heading in ("\nSlots:", "\nMessages:", "\nExamples:", "\nArguments:", "\nName:"))


async def test_every_request_of_the_shipped_codex_fits_its_window() -> None:
    """Each facet and protocol is asked for within the smallest window, with room for the answer and one repair."""
    async with open_image(None) as image:
        await minded(image)
        with image.snapshot() as root:
            for name in codex.PILLARS:
                persona = named_objects(root)[declarations.prototype_name(name)]
                for slot in (*persona.facets, *persona.protocols):
                    intent = vars(persona)[slot]
                    wanted = wants.spec_of_intent(root, persona, slot, intent, args=("str",), digests={})
                    assert wanted.owner.startswith("You are")
                    # A quarter of a token for a byte is what models of this family need for such text.
                    assert len(asked(wanted).encode()) / 4 + REPLY.num_predict + prompt.MARGIN < 4096, slot


async def test_nothing_of_a_message_or_a_slot_is_in_a_request() -> None:
    """Law 8: of arguments only the types are told, of slots only names and types; whatever they hold, no text of it is.

    So no document, no recalled passage and no earlier answer can tell a coder what to write.
    """
    async with open_image(None) as image:
        await minded(image)
        with image.snapshot() as root:
            await asyncio.to_thread(_nothing_is_told, root)


def _nothing_is_told(root: Any) -> None:
    brick = root["brick_prototype_obj"]

    @given(st.lists(VALUE, min_size=1, max_size=3), st.dictionaries(st.sampled_from(SLOTS), VALUE, min_size=1))
    def told(args: list[Any], slots: dict[str, Any]) -> None:
        for name in SLOTS:
            vars(brick).pop(name, None)
        for name, value in slots.items():
            setattr(brick, name, value)  # in a snapshot, so it is nobody else's
        wanted = wants.spec_for(root, brick, "guide_facet_", tuple(map(wants.type_name, args)), {})
        assert isinstance(wanted, wants.MethodSpec)
        text = asked(wanted)
        for secret in _texts([args, list(slots.values())]):
            assert secret not in text
        for name, value in slots.items():
            assert f"- {name}: {type(value).__name__}" in text.splitlines()
        assert f"Arguments: {wants.type_name(args[0])}" in text.splitlines()

    told()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return [text for each in inner for text in _texts(each)]


async def test_what_is_wanted_is_known_by_its_digest() -> None:
    """Another wish, another coder and another dialect have another log; the same has the same, in any process."""
    one = WISH.log("dialect")
    assert one == wish().log("dialect")
    assert one.startswith("g-")
    assert len(one) == 28
    others = [wish(intent="1" * 64), wish(selector="other_"), wish(holder="oid:0x2b")]
    others.append(wish(coder=wants.Coder("coder:1", "e" * 64, {"num_ctx": 4096})))
    logs = {each.log("dialect") for each in others} | {WISH.log("another")}
    assert len(logs) == 5
    assert one not in logs


async def test_the_coder_thinks_as_who_shares_its_base() -> None:
    """A coder of the personas' base has their runner options, so that nothing reloads; another has its own."""
    async with open_image(None) as image:
        await minded(image)
        with image.snapshot() as root:
            persona = root["brick_prototype_obj"]
            coder = wants.coder(root, {root["pLLM_obj"].coder: "d" * 64})
            assert coder.digest == "d" * 64
            for name in value_checks.RUNNER:
                assert coder.options.get(name) == persona.options.get(name)
            assert not set(coder.options) & set(value_checks.OURS)
            assert coder.window == 4096
        await image.writer.apply(lambda root: graph.build(root, OTHER))
        with image.snapshot() as root:
            coder = wants.coder(root, {})
            assert (coder.model, coder.digest, coder.window) == ("qwen2.5-coder:7b-instruct-q4_K_M", "", 4096)


async def test_an_object_from_outside_makes_what_is_from_outside() -> None:
    """The trust of a method is the least of all that its coder was told: of an object made from documents, external."""
    async with open_image(None) as image:
        await minded(image)

        def given(root: Any) -> None:
            brick = root["brick_prototype_obj"]
            outside = UvmObject({"lineage_trust": "external", "guide_facet_": vars(brick)["guide_facet_"]}, (brick,))
            root["brick_prototype_obj"].tool = outside

        await image.writer.apply(given)
        with image.snapshot() as root:
            brick = root["brick_prototype_obj"]
            inside = wants.spec_for(root, brick, "guide_facet_", (), {})
            outside = wants.spec_for(root, brick.tool, "guide_facet_", (), {})
            assert isinstance(inside, wants.MethodSpec)
            assert isinstance(outside, wants.MethodSpec)
            assert (inside.trust, outside.trust) == ("model", "external")


@pytest.mark.parametrize("slot", ["name", "infer_", "nothing_"])
async def test_only_a_declared_intent_is_wanted(slot: str) -> None:
    """A slot that holds anything else, or nothing, is never written for."""
    async with open_image(None) as image:
        await minded(image)
        with image.snapshot() as root:
            found = wants.spec_for(root, root["brick_prototype_obj"], slot, (), {})
            assert found == "its intent is another by now"
