"""What a coder is told of grants: the messages to those that the intent names, and no others."""

from __future__ import annotations

import pytest
from tests.image.open_image import open_image
from tests.methods.generation.generation_setup import wish

from batos.agency.records import effect_records
from batos.cell.cell import Cell
from batos.cell.program import prepare
from batos.genesis import graph
from batos.genesis.codex import codex
from batos.guardian import policy
from batos.guardian.audit import Context, audit
from batos.image.roots import Root
from batos.methods.generation import dialogue, lean_request, method_spec
from batos.methods.generation.method_checks import LIMITS, REPLY, Check, Rehearsal
from batos.objects.method import Intent

SHIPPED = codex.parse(codex.read_shipped()).sound()
APPENDS = "await (await self.capability_('notes')).append_(path, text)"
#: A method as a coder writes it that was told of the grant.
SOURCE = (
    "async def keep_(self, text):\n"
    "    notes = await self.capability_('notes')\n"
    "    return await notes.append_('kept.txt', text)\n"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Append the text to `notes`, and return what that answers.", [APPENDS, APPENDS.replace("append_", "write_")]),
        ("Append the text to a list.", []),
        ("Post the count to inbox.", ["await (await self.capability_('inbox')).post_(data)"]),
    ],
)
async def test_an_intent_that_names_a_grant_gets_its_messages(text: str, told: list[str]) -> None:
    """In both forms of the request; another intent's request has no word of them."""
    async with open_image(None) as image:

        def change(root: Root) -> method_spec.MethodSpec:
            graph.build(root, SHIPPED)
            effect_records.add_capability(root, "notes", "file", "/x", "queryable", ("ada", ""))
            effect_records.add_capability(root, "inbox", "http", "http://127.0.0.1:9/x", "keyed", ("ada", ""))
            intent = Intent(text, "keep_(self, text)")
            return method_spec.spec_of_intent(root, root["brick_prototype_obj"], "keep_", intent, digests={})

        wanted = await image.writer.apply(change)
    assert list(wanted.granted) == told
    full = dialogue.messages(wanted, policy.dialect_text(), REPLY.guide)[1]["content"]
    lean = lean_request.method_messages(wanted)[-1]["content"]
    assert [each for each in told if each in full and each in lean] == told
    assert ("Grants:" in full, "Granted:" in lean) == (bool(told), bool(told))


async def test_a_method_that_acts_passes_its_rehearsal() -> None:
    """In which nothing is staged: a capability says that each effect is."""
    cell = Cell(1, LIMITS)
    try:
        verdict = audit(SOURCE, Context("keep_"))
        assert verdict.accepted
        program = prepare(SOURCE, verdict.slots)
        check = Check(arguments=["A line."], result="staged")
        assert await Rehearsal(cell).all(program, [check, Check(arguments=["B."], result="staged")]) == []
        assert await Rehearsal(cell).all(program, [Check(arguments=["A line."], result="released")]) != []
    finally:
        await cell.aclose()


def test_a_wish_without_grants_is_asked_for_as_before() -> None:
    """No heading stands alone."""
    assert "Grant" not in dialogue.messages(wish(), policy.dialect_text(), REPLY.guide)[1]["content"]
