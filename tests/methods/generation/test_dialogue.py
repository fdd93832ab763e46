"""The dialogue with a coder: each way in which its reply can be wrong is told to it, and at most three times."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.methods.generation.generation_setup import CHECKS, GOOD, RIGHT, bench, wish

from batos.methods.generation.dialogue import REFUSED, REPAIRS
from batos.methods.generation.generation_limits import GenerationLimits
from batos.protocol.errors import (
    BatosError,
    ContextOverflow,
    CovenantViolation,
    GenerationFailed,
    MethodFailed,
    ModelMissing,
    OllamaUnreachable,
    Runaway,
    StreamCut,
)
from batos.testing import method_reply

COUNTING = "def tick_(self):\n    self.count += 1\n    self._p_changed = True\n"
UNMARKED = "def tick_(self):\n    self.count += 1\n"
TICKS = ({"before": {"count": 0}, "slots": {"count": 1}}, {"before": {"count": 4}, "slots": {"count": 5}})
TICK = wish(selector="tick_", signature="tick_(self)", text="Count.", arguments=())
ASKING = 'async def add_up_(self, items):\n    return await self.infer_(f"What is {items}?")\n'
#: Replies that are wrong, each with what its author is told.
WRONG = {
    "checks that are no JSON": (RIGHT.replace("[[1, 2, 3]]", "one, two"), "JSON is broken"),
    "checks that doing nothing passes": (method_reply(GOOD, [{}, {}]), "returns None and changes nothing"),
    "a check that fails": (
        method_reply(GOOD, [CHECKS[0], {"arguments": [[1]], "result": 2}]),
        "check 2: it returned 1, not 2",
    ),
    "a method that raises": (method_reply(GOOD.replace("+= item", "+= item['x']"), CHECKS), "it failed"),
    "another selector": (
        method_reply(GOOD.replace("add_up_", "one_") + GOOD.replace("add_up_", "two_"), CHECKS),
        "its name must be `add_up_`",
    ),
    "another signature": (method_reply(GOOD.replace("items)", "items, more)"), CHECKS), "must be (self, items)"),
    "a message that nobody answers": (method_reply(ASKING, CHECKS), "`replies` has no answer"),
    "hostile": (method_reply("import os\ndef add_up_(self, items):\n    return os.getcwd()\n", CHECKS), "os"),
    "endless": (
        method_reply(GOOD.replace("total += item", "while True:\n            total += item"), CHECKS),
        "its limit of",
    ),
}

#: Replies in which nothing can be read.
UNREADABLE: dict[str, tuple[str | BatosError, str]] = {
    "broken JSON": ('{"checks": [', "it stops in the middle"),
    "nothing": ("", "it is empty"),
    "no checks": (json.dumps({"checks": [], "source": GOOD}), "checks"),
    "without end": (Runaway("blanks", 400), "the answer was stopped"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_wrong_is_told_and_mended(wrong: str) -> None:
    """Each fault goes back to the coder in words, behind its own reply; a reply that mends it is accepted."""
    reply, said = WRONG[wrong]
    async with bench(reply, RIGHT) as found:
        candidate = await found.make()
        first, second = found.asked
        assert second.messages[: len(first.messages)] == first.messages
        assistant, told = second.messages[len(first.messages) :]
        assert assistant == {"role": "assistant", "content": reply}
        assert told["content"].startswith(REFUSED)
        assert said in told["content"]
        assert candidate.source == GOOD
        assert candidate.provenance["attempts"] == 2
        (repair,) = found.names("method.repair")
        assert repair["attempt"] == 1


@pytest.mark.parametrize("wrong", UNREADABLE)
async def test_a_reply_that_cannot_be_read_is_never_shown(wrong: str) -> None:
    """The same is asked anew, each time with another seed and temperature; the reason is told to people."""
    reply, said = UNREADABLE[wrong]
    async with bench(reply, reply, RIGHT) as found:
        assert (await found.make()).source == GOOD
        assert all(request.messages == found.asked[0].messages for request in found.asked)
        assert [request.options.get("seed", 0) for request in found.asked] == [0, 1, 2]
        assert [request.options.get("temperature") for request in found.asked] == [None, 0.7, 0.3]
        assert all(said in keys["why"] for keys in found.names("method.repair"))


async def test_a_model_is_not_shown_its_own_loop() -> None:
    """A reply that it has given before, or that says the same lines over and over, is asked for anew."""
    wrong = WRONG["a check that fails"][0]
    loop = method_reply(GOOD.replace("    return", "    total += 1\n" * 20 + "    return"), CHECKS)
    async with bench(wrong, wrong, loop, RIGHT) as found:
        assert (await found.make()).source == GOOD
        assert [len(request.messages) for request in found.asked] == [2, 4, 4, 4]
        assert [request.options.get("seed", 0) for request in found.asked] == [0, 0, 1, 2]


@pytest.mark.parametrize("wrong", ["a check that fails", "checks that doing nothing passes"])
async def test_it_is_given_up_after_three_repairs(wrong: str) -> None:
    """A coder that never mends it is asked four times, and the message ends in GenerationFailed with why."""
    reply, said = WRONG[wrong]
    async with bench(reply) as found:
        with pytest.raises(GenerationFailed) as failed:
            await found.make()
        assert len(found.asked) == REPAIRS + 1
        assert said in failed.value.message
        assert len(found.names("method.repair")) == REPAIRS


async def test_what_the_guardian_refuses_to_the_end_is_a_violation() -> None:
    """A method that writes and never marks it ends in CovenantViolation, with the guardian's faults as data."""
    async with bench(method_reply(UNMARKED, TICKS)) as found:
        with pytest.raises(CovenantViolation) as refused:
            await found.make(TICK)
        assert [fault["rule"] for fault in refused.value.faults] == ["covenant"]
        assert all(not keys["accepted"] for keys in found.names("guardian.verdict"))


async def test_a_method_that_marks_what_it_writes_passes() -> None:
    """Slots are compared after the call; what its checks are worth is in its provenance."""
    async with bench(method_reply(COUNTING, TICKS)) as found:
        candidate = await found.make(TICK)
        assert candidate.verdict["slots"]["writes"] == ["count"]
        assert candidate.mutants == candidate.provenance["mutants"]
        assert candidate.mutants["killed"] == candidate.mutants["made"] > 0
        (tried,) = found.names("method.tried")
        assert (tried["mutants"], tried["killed"]) == (candidate.mutants["made"], candidate.mutants["killed"])


async def test_a_slot_that_is_written_must_be_compared() -> None:
    """Checks that compare only the result say nothing of what a method wrote."""
    blind = COUNTING + "    return 'ok'\n"
    async with bench(method_reply(blind, [{"before": {"count": 0}, "result": "ok"}] * 2)) as found:
        with pytest.raises(GenerationFailed, match="no check compares"):
            await found.make(TICK)


async def test_what_only_the_codex_writes_is_no_methods() -> None:
    """A method that would change who its object is, is told so before it ever runs: of any object, and of this one."""
    for slot, told in (("name", "may read it but not change it"), ("motto", "only the codex")):
        renaming = f"def tick_(self):\n    self.{slot} = 'ME'\n    self._p_changed = True\n"
        checks = [{"slots": {slot: "ME"}}] * 2
        async with bench(method_reply(renaming, checks)) as found:
            with pytest.raises((GenerationFailed, CovenantViolation), match=told):
                await found.make(wish(selector="tick_", signature="tick_(self)", protected=frozenset({"motto"})))


async def test_a_facet_must_ask_what_it_was_asked() -> None:
    """A facet that thinks, and not of its question, is none; nor is one that answers with no text."""
    facet = wish(selector="sage_facet_", signature="sage_facet_(self, query)", kind="facet", given={"name": "ROBIN"})
    deaf = 'async def sage_facet_(self, query):\n    return await self.infer_("Say something wise.")\n'
    checks = [{"arguments": [each], "replies": {"infer_": ["Be."]}, "result": "Be."} for each in ("why?", "how?")]
    mute = "def sage_facet_(self, query):\n    return {'answer': query}\n"
    silent = [{"arguments": ["why?"], "result": {"answer": "why?"}}] * 2
    good = 'async def sage_facet_(self, query):\n    return await self.infer_(f"{self.name}, {query}")\n'
    async with bench(method_reply(deaf, checks), method_reply(mute, silent), method_reply(good, checks)) as found:
        candidate = await found.make(facet)
        assert candidate.provenance["attempts"] == 3
        told = [request.messages[-1]["content"] for request in found.asked[1:]]
        assert "nothing that it sent to `infer_` holds the text" in told[0]
        assert "a facet answers with text" in told[1]


@pytest.mark.parametrize("error", [OllamaUnreachable("away"), StreamCut("cut"), ModelMissing("coder:1")])
async def test_what_ollama_lacks_is_no_fault_of_the_method(error: Exception) -> None:
    """A daemon that is away says nothing about the wish: its error is raised as it is, and nothing is repaired."""
    async with bench(error) as found:  # type: ignore[arg-type]
        with pytest.raises(type(error)):
            await found.make()
        assert found.names("method.repair") == []


async def test_a_dialogue_keeps_to_its_window() -> None:
    """Where the daemon says that it is too long, the earlier attempts go; where even one is, it is given up."""
    wrong, other = WRONG["a check that fails"][0], WRONG["a method that raises"][0]
    async with bench(wrong, other, ContextOverflow(5000, 4096), RIGHT) as found:
        assert (await found.make()).source == GOOD
        assert [len(request.messages) for request in found.asked] == [2, 4, 6, 4]
    async with bench(ContextOverflow(5000, 4096)) as found:
        with pytest.raises(GenerationFailed, match="does not fit"):
            await found.make()


async def test_a_small_window_forgets_what_is_long_ago() -> None:
    """By its own estimate too the dialogue leaves room for the answer: of three attempts the last is shown."""
    wrong = method_reply(GOOD + "# " + "x" * 1500 + "\n", [CHECKS[0], {"arguments": [[1]], "result": 2}])
    async with bench(wrong) as found:
        with pytest.raises(GenerationFailed):
            await found.make()
        assert [len(request.messages) for request in found.asked] == [2, 4, 4, 4]


@pytest.mark.parametrize("allowance", [GenerationLimits(calls=2), GenerationLimits(tokens=1500)])
async def test_it_has_a_budget(allowance: GenerationLimits) -> None:
    """A generation that has spent what it may ends, whatever repairs it had left."""
    async with bench(UNREADABLE["broken JSON"][0], allowance=allowance) as found:
        with pytest.raises(GenerationFailed, match="used up"):
            await found.make()
        assert len(found.asked) <= 2


async def test_what_was_paid_for_is_not_paid_again() -> None:
    """One that is cut off anywhere, and begun again with the same journal, asks only what was not answered."""
    wrong = WRONG["a check that fails"][0]
    async with bench(wrong, OllamaUnreachable("killed"), RIGHT) as found:
        with pytest.raises(OllamaUnreachable):
            await found.make()
        # The object has another slot by now: what it began with is what it goes on with.
        candidate = await found.make(wish(slots=(("count", "int"), ("mood", "str"))))
        assert candidate.source == GOOD
        assert len(found.asked) == 3
        assert found.asked[2].messages == found.asked[1].messages
        again = await found.make()
        assert len(found.asked) == 3
        assert again.digest == candidate.digest


async def test_what_was_paid_for_is_found_whatever_is_said_of_it_now() -> None:
    """A dialogue goes on by what was asked then: another guardian may tell the same faults in other words."""
    wrong = [WRONG["a check that fails"][0], WRONG["a method that raises"][0]]
    async with bench(*wrong, OllamaUnreachable("killed"), RIGHT) as found:
        with pytest.raises(OllamaUnreachable):
            await found.make()
        found.deps.cell = _Other(found.deps.cell)  # type: ignore[assignment]
        assert (await found.make()).source == GOOD
        assert len(found.asked) == 4


class _Other:
    """A cell that tells a method that raises in other words."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    async def run(self, program: Any, call: Any, host: Any) -> Any:
        """The same run; one that comes to 1 raises instead."""
        outcome = await self._cell.run(program, call, host)
        if outcome.result == 1:
            raise MethodFailed("in other words")
        return outcome


async def test_an_author_that_fences_its_code_is_understood() -> None:
    """What models put around a source is taken off before anything is done with it."""
    async with bench(method_reply(f"```python\n{GOOD}```\n", CHECKS)) as found:
        assert (await found.make()).source == GOOD


async def test_what_changes_no_meaning_is_corrected_without_another_call() -> None:
    """A method of another name, without `self` and with an example below it is accepted; its provenance tells all."""
    source = "def total(items):\n    return sum(items)\n\nprint(total([1, 2]))\n"
    async with bench(method_reply(f"Here it is:\n\n{source}", CHECKS)) as found:
        candidate = await found.make()
        assert candidate.source == "def add_up_(self, items):\n    return sum(items)\n"
        assert len(found.asked) == 1
        assert candidate.provenance["written"] == [
            "text around the code was left out",
            "`total` was renamed to `add_up_`",
            "`self` was put first",
            "left out, because the method does not use it: `print(total([1, 2]))`",
        ]
