"""A person redefines a method: by a wish that the coder is given, or by a source of their own, tried alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.methods.generation.learning import MESSAGE, SAID, SPEAKS, Refusing, learning

from batos.protocol.errors import CovenantViolation, GenerationFailed, NotFound, Refused, UsageError
from batos.testing import author, wanted_selector

GOOD = "async def guide_facet_(self, query):\n    return await self.infer_(f'Kindly: {query}')\n"


async def test_a_person_redefines_a_method(tmp_path: Path) -> None:
    """Of a new wish the coder writes another method; a person's own source is audited and tried as a coder's is."""
    async with learning(tmp_path) as mind:
        await mind.uvm.missions.ask(MESSAGE)
        name, selector = "brick_prototype_obj", "guide_facet_"
        wished = await mind.generator.redefine(name, selector, "ada", wish="Explain it kindly.")
        assert wished.wish == {"text": "Explain it kindly."}
        assert "Explain it kindly." in [r for r in mind.bridge.history if wanted_selector(r)][-1].messages[1]["content"]
        own = await mind.generator.redefine(name, selector, "ada", source=GOOD)
        assert (own.source, own.provenance["by"], own.provenance["trust"]) == (GOOD, "ada", "user")
        assert own.former is not None
        assert own.former["revision"] == 1
        method = await mind.uvm.lifecycle.install(own)
        assert method.revision == 2
        with pytest.raises(CovenantViolation):
            await mind.generator.redefine(
                name, selector, "ada", source="import os\ndef guide_facet_(self, query):\n    pass\n"
            )
        with pytest.raises(GenerationFailed, match="does not pass") as raised:
            await mind.generator.redefine(
                name, selector, "ada", source="def guide_facet_(self, query):\n    return query\n"
            )
        assert "--checks FILE" in raised.value.remedy


async def test_a_wish_may_be_given_again(tmp_path: Path) -> None:
    """Who wishes the same once more wants another method: each time the coder is asked anew, also after it failed."""
    coder = Refusing()
    async with learning(tmp_path, coder) as mind:
        await mind.uvm.readiness.check()
        name, selector = "brick_prototype_obj", "guide_facet_"
        for number in (1, 2):
            with pytest.raises(CovenantViolation):
                await mind.generator.redefine(name, selector, "ada", wish="Explain it kindly.")
            assert coder.count == 4 * number
        mind.bridge.respond = author(SPEAKS, SAID)
        for number in (1, 2):
            made = await mind.generator.redefine(name, selector, "ada", wish="Explain it kindly.")
            assert len(mind.coded) == 8 + number
            await mind.generator.close_redefinition(made)


async def test_what_was_written_for_a_wish_is_not_paid_twice(tmp_path: Path) -> None:
    """Where it could not be installed, or the process died before it was, the same wish gives the same method again."""
    async with learning(tmp_path) as mind:
        await mind.uvm.readiness.check()
        first = await mind.generator.redefine("brick_prototype_obj", "guide_facet_", "ada", wish="Explain it kindly.")
        again = await mind.generator.redefine("brick_prototype_obj", "guide_facet_", "ada", wish="Explain it kindly.")
        assert (again.source, len(mind.coded)) == (first.source, 1)
        assert (await mind.uvm.lifecycle.install(again)).revision == 1


async def test_a_source_needs_checks(tmp_path: Path) -> None:
    """What never had a method has no checks: a person who gives a source gives them too, and they are held to it."""
    async with learning(tmp_path) as mind:
        name, selector = "brick_prototype_obj", "guide_facet_"
        with pytest.raises(UsageError, match="no checks"):
            await mind.generator.redefine(name, selector, "ada", source=GOOD)
        own = await mind.generator.redefine(name, selector, "ada", source=GOOD, checks=SAID)
        assert own.former is None
        with pytest.raises(UsageError):
            await mind.generator.redefine(name, selector, "ada", source=GOOD, checks=[{"argument": []}])
        with pytest.raises(NotFound):
            await mind.generator.redefine("nobody_obj", selector, "ada", source=GOOD, checks=SAID)
        with pytest.raises(Refused):
            await mind.generator.redefine(name, "name", "ada", source=GOOD, checks=SAID)
        assert mind.coded == []
