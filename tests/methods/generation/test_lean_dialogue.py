"""The dialogue with a small coder: a method, then its checks; each reply that is of no use is asked for anew."""

from __future__ import annotations

import pytest
from tests.methods.generation.generation_setup import GOOD, bench, wish

from batos.errors import BatosError, CovenantViolation, GenerationFailed, OllamaUnreachable, Runaway
from batos.methods.generation import lean_request
from batos.methods.generation.lean_dialogue import BY_RULE, TOKENS
from batos.methods.generation.method_spec import Coder

LEAN = Coder("coder:1", "d" * 64, {"num_ctx": 2048, "temperature": 0.2}, form="lean")
WANTED = wish(coder=LEAN, kind="tool")
METHOD = lean_request.fence(GOOD)
CHECKS = "```python\nassert add_up_([1, 2, 3]) == 6\nassert add_up_([5, -1]) == 4\n```"
FACET = wish(coder=LEAN, kind="facet", selector="sage_facet_", signature="sage_facet_(self, query)")
SPEAKS = 'async def sage_facet_(self, query):\n    return await self.infer_(f"Say it wisely: {query}")\n'


async def test_a_method_and_then_its_checks() -> None:
    """Two calls of one task each, as free text, in few tokens."""
    async with bench(METHOD, CHECKS) as found:
        candidate = await found.make(WANTED)
        assert candidate.source == GOOD
        assert len(candidate.checks) == 2
        assert [request.messages[0]["content"] for request in found.asked] == [
            lean_request.HEAD,
            lean_request.CHECKS_HEAD,
        ]
        assert all(request.schema is None for request in found.asked)
        assert all(request.options["num_predict"] == TOKENS for request in found.asked)
        assert "written" not in candidate.provenance
        assert found.names("method.repair") == []


async def test_a_facet_is_checked_by_rule() -> None:
    """It asks the model and returns what that answers; who wrote the checks is told."""
    async with bench(lean_request.fence(SPEAKS)) as found:
        candidate = await found.make(FACET)
        assert candidate.source == SPEAKS
        assert candidate.provenance["written"] == [BY_RULE]
        assert len(found.asked) == 1


REFUSED = "def add_up_(self, items):\n    return sum(item) + eval('1')\n"


async def test_faults_are_told_one_a_line_behind_the_method() -> None:
    """The method is shown as it was read, not the words around it."""
    async with bench(f"Sure!\n{lean_request.fence(REFUSED)}\nDone.", METHOD, CHECKS) as found:
        assert (await found.make(WANTED)).source == GOOD
        _, second, _ = found.asked
        shown, told = second.messages[-2:]
        assert shown["content"] == lean_request.fence(REFUSED)
        assert [line.startswith("line 2") for line in told["content"].splitlines()] == [True, True, False]


@pytest.mark.parametrize("useless", ["I cannot.", "", Runaway("blanks", 400), REFUSED * 2])
async def test_what_is_of_no_use_is_asked_for_anew(useless: str | BatosError) -> None:
    """Without being shown, with another seed and temperature; the second time of the same reply too."""
    async with bench(useless, useless, METHOD, CHECKS) as found:
        assert (await found.make(WANTED)).source == GOOD
        first, _, third, _ = found.asked
        assert third.options["seed"] > first.options.get("seed", 0)
        assert third.options["temperature"] != first.options["temperature"]


@pytest.mark.parametrize(
    "useless", ["They are right.", "assert add_up_([1]) == 1\n", "assert add_up_([0]) == None\n" * 2]
)
async def test_checks_of_no_use_are_asked_for_anew(useless: str) -> None:
    """Too few, or such that doing nothing passes: they are not shown."""
    async with bench(METHOD, useless, CHECKS) as found:
        assert (await found.make(WANTED)).source == GOOD
        _, second, third = found.asked
        assert second.messages == third.messages
        assert second.options["temperature"] != third.options["temperature"]


async def test_a_method_that_fails_its_checks_is_told_and_then_the_checks_are_doubted() -> None:
    """Whoever insists on the method may be right: other checks decide then."""
    wrong = CHECKS.replace("== 6", "== 7")
    async with bench(METHOD, wrong, METHOD, CHECKS) as found:
        assert (await found.make(WANTED)).source == GOOD
        told = found.asked[2].messages[-1]["content"]
        assert "it returned 6, not 7" in told
        assert found.asked[3].messages[0]["content"] == lean_request.CHECKS_HEAD


async def test_it_is_bounded() -> None:
    """Four calls at most, whatever is wrong; the last fault is the reason."""
    async with bench(lean_request.fence(REFUSED)) as found:
        with pytest.raises(CovenantViolation, match="eval"):
            await found.make(WANTED)
        assert len(found.asked) == 4
    async with bench(METHOD, "They are right.") as found:
        with pytest.raises(GenerationFailed, match="0 of its 0 checks"):
            await found.make(WANTED)
        assert len(found.asked) == 4


async def test_an_interrupted_dialogue_goes_on() -> None:
    """Every paid answer is used again, that of a reply which was not shown too."""
    async with bench("I cannot.", METHOD, OllamaUnreachable("killed"), CHECKS) as found:
        with pytest.raises(OllamaUnreachable):
            await found.make(WANTED)
        assert (await found.make(WANTED)).source == GOOD
        assert len(found.asked) == 4
