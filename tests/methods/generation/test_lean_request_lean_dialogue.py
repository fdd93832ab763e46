"""The dialogue with a small coder: a method, then its checks; each reply that is of no use is asked for anew."""

from __future__ import annotations

import pytest
from tests.methods.generation.generation_setup import GOOD, bench, wish

from batos.methods.generation import lean_request
from batos.methods.generation.lean_request import BY_RULE, BY_WISH, LEAN_REPAIRS, TOKENS, whole_method
from batos.methods.generation.method_spec import Coder
from batos.protocol.errors import BatosError, CovenantViolation, GenerationFailed, OllamaUnreachable, Runaway

LEAN = Coder("coder:1", "d" * 64, {"num_ctx": 2048, "temperature": 0.2}, form="lean")
WANTED = wish(coder=LEAN, kind="tool")
METHOD = lean_request.fence(GOOD)
CHECKS = "```python\nassert add_up_([1, 2, 3]) == 6\nassert add_up_([5, -1]) == 4\n```"
FACET = wish(
    coder=LEAN, kind="facet", selector="sage_facet_", signature="sage_facet_(self, query)", text="Say it wisely."
)
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


async def test_a_facet_that_failed_is_told_to_ask_once() -> None:
    """The same request with that line, by another seed; the method that failed is not shown."""
    twice = f"{SPEAKS.splitlines()[0]}\n    return [await self.infer_(query), await self.infer_(query)]\n"
    async with bench(lean_request.fence(twice), lean_request.fence(SPEAKS)) as found:
        candidate = await found.make(FACET)
        assert candidate.source == SPEAKS
        first, second = found.asked
    assert second.messages[:-1] == first.messages[:-1]
    told = second.messages[-1]["content"]
    assert told.replace(f"\n{lean_request.ONCE}", "") == first.messages[-1]["content"]
    assert told.splitlines()[-1] == first.messages[-1]["content"].splitlines()[-1]


async def test_a_facet_that_copies_the_example_is_asked_for_anew() -> None:
    """What the example says is not what was asked for."""
    copied = lean_request.FACET.source.replace("brother_facet_", "sage_facet_")
    async with bench(lean_request.fence(copied), lean_request.fence(SPEAKS)) as found:
        assert (await found.make(FACET)).source == SPEAKS
        assert len(found.asked) == 2


async def test_an_object_is_made_in_small_requests() -> None:
    """A small coder is asked for one method of it at a time, each with the bounds and the words of one."""
    api = "add_up_(items)\n    It answers the sum of the items.\ntwice_(number)\n    It answers twice the number.\n"
    twice = "def twice_(self, number):\n    return 2 * number\n"
    wanted = wish(coder=LEAN, kind="prototype", selector="sums_agent", signature="", text=api)
    async with bench(METHOD, CHECKS, lean_request.fence(twice), "twice_(2) == 4\ntwice_(5) == 10") as found:
        candidate = await found.make(wanted)
        assert [each.selector for each in candidate.methods] == ["add_up_", "twice_"]
        assert (candidate.methods[0].source, candidate.methods[1].source) == (GOOD, twice)
        assert len(found.asked) == 4
        assert all(sum(len(each["content"]) for each in request.messages) < 700 for request in found.asked)
        assert all(request.options["num_predict"] == TOKENS for request in found.asked)


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


async def test_a_method_that_fails_its_checks_is_asked_for_anew_and_then_the_checks_are_doubted() -> None:
    """Whoever insists on the method may be right: other checks decide then."""
    wrong = CHECKS.replace("== 6", "== 7")
    async with bench(METHOD, wrong, METHOD, CHECKS) as found:
        assert (await found.make(WANTED)).source == GOOD
        assert found.asked[2].messages == found.asked[0].messages
        assert found.asked[3].messages[0]["content"] == lean_request.CHECKS_HEAD


SHOWN = wish(coder=LEAN, kind="tool", examples=("add_up_([1, 2, 3]) == 6", "add_up_([5, -1]) == 4"))
OTHER = "def add_up_(self, items):\n    return sum(items)\n"
BY_CHANCE = "def add_up_(self, items):\n    return 6 if len(items) == 3 else 4\n"


async def test_checks_of_the_wish_are_enough() -> None:
    """Nobody is asked for others, and the coder is not shown them; a second method that does the same confirms."""
    async with bench(METHOD, OTHER) as found:
        candidate = await found.make(SHOWN)
        assert candidate.source == GOOD
        assert [check["result"] for check in candidate.checks] == [6, 4]
        assert candidate.provenance["written"] == [BY_WISH]
        first, second = found.asked
        assert first.messages == second.messages
        assert first.options["temperature"] != second.options["temperature"]
        assert "add_up_([1, 2, 3])" not in str(first.messages)


async def test_what_passes_the_wish_by_chance_does_not_stand() -> None:
    """Another method that passes too does something else in other calls; two that agree stand, whenever they come."""
    async with bench(BY_CHANCE, METHOD, OTHER) as found:
        assert (await found.make(SHOWN)).source == GOOD
    async with bench(BY_CHANCE, METHOD, BY_CHANCE.replace("6 if", "(6) if")) as found:
        assert (await found.make(SHOWN)).source == BY_CHANCE
    async with bench(BY_CHANCE, METHOD, "def add_up_(self, items):\n    return 0\n") as found:
        with pytest.raises(GenerationFailed, match="returned 0"):
            await found.make(SHOWN)
    async with bench(*(f"No {n}." for n in range(LEAN_REPAIRS)), METHOD) as found:
        with pytest.raises(GenerationFailed, match="no second method"):
            await found.make(SHOWN)


async def test_a_wrong_result_is_asked_for_anew_without_being_shown() -> None:
    """A small model that is told what its method returned writes the same one again."""
    wrong = "def add_up_(self, items):\n    return 7\n"
    async with bench(wrong, METHOD, OTHER) as found:
        assert (await found.make(SHOWN)).source == GOOD
        assert found.asked[0].messages == found.asked[1].messages


async def test_the_method_before_a_loop_stands() -> None:
    """What a small model adds to its method again and again is left out; checks that repeat themselves are not kept."""
    text = f"{GOOD}\n# It adds up.\n# It adds up.\n# It adds up.\n"
    assert whole_method(text, text.index("# It", len(GOOD) + 5)).startswith(GOOD)
    assert whole_method("def add_up_(self, items):\n    total = 0\n" * 9, 80) == ""
    assert whole_method("I cannot. I cannot. I cannot.", 12) == ""
    async with bench(METHOD, CHECKS) as found:
        await found.make(WANTED)
        assert [request.keep for request in found.asked] == [whole_method, None]


async def test_it_is_bounded() -> None:
    """Four calls at most, eight if the wish has checks, whatever is wrong; the last fault is the reason."""
    async with bench(lean_request.fence(REFUSED)) as found:
        with pytest.raises(CovenantViolation, match="eval"):
            await found.make(WANTED)
        assert len(found.asked) == 4
    async with bench(lean_request.fence(REFUSED)) as found:
        with pytest.raises(CovenantViolation, match="eval"):
            await found.make(SHOWN)
        assert len(found.asked) == LEAN_REPAIRS + 1 == 8
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
