"""Facets that are methods: they run in a cell, think under their persona's voice, and their answers are parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.methods.execution.method_mind import Always, MethodMind, methods, open_method_mind, replace_runtime
from tests.minds.scripted import GOOD, SLOTS, WINDS, ask, kind

from batos.protocol.errors import CellMissing, Refused

TAMLAND, GUIDE, ROGUES = SLOTS

ECHO = """
async def tamland_facet_(self, query):
    return await self.infer_(query)
"""


async def test_a_facet_that_is_a_method_answers_its_sub_query(mind: MethodMind) -> None:
    """What it returns is its voice, with the citations that carry it."""
    await mind.learn(tamland_facet_=ECHO)
    shown = await ask(mind.uvm)
    voice = shown["voices"][0]
    assert (voice["facet"], voice["answer"], voice["known"]) == (TAMLAND, f"{WINDS}.", True)
    assert [each["sentence"] for each in voice["citations"]] == [f"{WINDS}."]
    assert shown["cost"]["calls"] == 5
    (ran,) = [each for each in shown["provenance"]["methods"] if each["selector"] == TAMLAND]
    assert (ran["as"], ran["revision"], ran["path"]) == ("method", "1", "brick/delegating/tamland")
    assert len(ran["digest"]) == 64
    assert methods(shown).count((GUIDE, "interpreted intent")) == 1


async def test_what_it_asks_shares_the_missions_prefix_and_its_personas_voice(mind: MethodMind) -> None:
    """All of a mission's calls begin with the same bytes; the method's words stand in its persona's last message."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            return await self.infer_(f"Literally: {query}", system="You are a lamp.", temperature=0.25, seed=7)
        """
    )
    await ask(mind.uvm)
    (call,) = [each for each in mind.bridge.history if "You are a lamp." in each.messages[-1]["content"]]
    other = next(each for each in mind.bridge.history if kind(each) == "part" and each is not call)
    assert call.messages[:-1] == other.messages[:-1]
    assert call.messages[-1]["content"].startswith(other.messages[-1]["content"].partition("\n\n")[0])
    assert "You are a lamp.\n\nLiterally: " in call.messages[-1]["content"]
    assert (call.options["temperature"], call.options["seed"]) == (0.25, 7)
    assert {**call.options, "temperature": 0, "seed": 0} == {**other.options, "temperature": 0, "seed": 0}
    assert call.schema == other.schema


async def test_without_a_system_it_asks_as_its_intent_would(mind: MethodMind) -> None:
    """A method that only passes its question on sends the very prompt that interpretation sends: it is paid for."""
    interpreted = await ask(mind.uvm)
    generator = Always(**{slot: ECHO.replace(TAMLAND, slot) for slot in SLOTS})
    await replace_runtime(mind.uvm, generator=generator)
    # A retry chooses as its ancestor did, unless its asker says otherwise.
    again = await ask(mind.uvm, ancestor=interpreted["id"], policy={"interpret": "never"})
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (0, 5)
    assert methods(again)[0] == (TAMLAND, "method, made in this mission")
    assert sorted(generator.asked) == sorted(SLOTS)


async def test_several_calls_of_a_facet_are_numbered_in_the_order_they_are_sent(mind: MethodMind) -> None:
    """`guide#0`, `#1`, ... also when they are sent together; a second attempt asks none of them again."""
    await mind.learn(
        guide_facet_="""
        import asyncio


        async def guide_facet_(self, query):
            first = await self.infer_("one: " + query)
            second, third = await asyncio.gather(self.infer_("two: " + query), self.infer_("three: " + query))
            return "\\n".join([first, second, third])
        """
    )
    shown = await ask(mind.uvm)
    records = [each for each in mind.uvm.readings.prompts(shown["id"]) if "/guide#" in each["path"]]
    asked = {each["path"]: each["messages"][-1]["content"] for each in records}
    assert sorted(asked) == [f"brick/delegating/guide#{number}" for number in range(3)]
    assert [word in asked[f"brick/delegating/guide#{number}"] for number, word in enumerate(("one:", "two:", "three:"))]
    assert shown["cost"]["calls"] == 7
    assert len(shown["voices"][1]["citations"]) == 1
    again = await ask(mind.uvm, ancestor=shown["id"])
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (0, 7)


@pytest.mark.parametrize(
    ("returned", "known", "cited"),
    [
        ("'Plainly so.'", True, 0),
        ("''", False, 0),
        ("{'answer': 'So.', 'known': False}", False, 0),
        ("{'answer': 'So.', 'known': True, 'citations': [{'document': 1, 'quote': 'WINDS'}]}", True, 1),
        ("{'answer': 'So.', 'citations': [{'document': 1, 'quote': 'what is not in it'}]}", True, 0),
    ],
)
async def test_a_facet_that_computes_needs_no_model(mind: MethodMind, returned: str, known: bool, cited: int) -> None:
    """A text is known unless it is empty; a record may say so itself, and cite what stands in the documents."""
    source = f"def tamland_facet_(self, query):\n    return {returned}\n"
    await mind.learn(tamland_facet_=source.replace("WINDS", WINDS))
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    voice = shown["voices"][0]
    assert (voice["known"], len(voice["citations"])) == (known, cited)
    assert shown["cost"]["calls"] == 4


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        ("42", "it returned a int"),
        ("None", "it returned nothing"),
        ("{'text': 'So.'}", "it returned a dict"),
        ("{'answer': 'So.', 'known': 'yes'}", "`known` is a str"),
        ("{'answer': 'So.', 'citations': ['here']}", "a citation of it is no"),
        ("'x' * 9000", "9,000 characters"),
        ("1 // 0", "ZeroDivisionError"),
    ],
)
async def test_a_facet_that_gives_no_answer_fails_its_part_alone(mind: MethodMind, returned: str, why: str) -> None:
    """The part says why; the mission goes on with the others."""
    await mind.learn(tamland_facet_=f"def tamland_facet_(self, query):\n    return {returned}\n")
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    failure = shown["voices"][0]["failure"]
    assert failure["code"] == "method_failed"
    assert why in failure["message"]
    assert shown["status"] == "done"


async def test_what_the_model_did_not_know_is_open_whatever_the_method_makes_of_it(mind: MethodMind) -> None:
    """All that it asked came back unknown: the part is no answer, and the weave is told so."""
    mind.script.part = "The documents do not say it."
    mind.script.woven = GOOD
    await mind.learn(tamland_facet_=ECHO)
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["known"] is False
    assert shown["provenance"]["unanswered"] == [1, 2, 3]


async def test_a_method_votes_with_what_the_model_said_or_with_its_own_first_words(mind: MethodMind) -> None:
    """Where parts vote a method's gist is counted like any other."""
    await mind.learn(tamland_facet_=ECHO, guide_facet_="def guide_facet_(self, query):\n    return 'Four hours.'\n")
    shown = await ask(mind.uvm, policy={"combine": "vote"})
    assert [voice["gist"] for voice in shown["voices"]][:2] == [f"{WINDS}."[:80], "Four hours."]


async def test_a_name_of_a_facet_outlives_its_intent(tmp_path: Path) -> None:
    """The pillars that decomposition is told, and the voices, have the names that were declared."""
    async with open_method_mind(tmp_path / "home") as mind:
        before = await ask(mind.uvm)
        await mind.install(tamland_facet_=ECHO)
        after = await ask(mind.uvm)
    assert [voice["name"] for voice in after["voices"]] == [voice["name"] for voice in before["voices"]]
    asked = [each.messages[-1]["content"] for each in mind.bridge.history if kind(each) == "decomposition"]
    assert len({text.rpartition("Asked at")[0] for text in asked}) == 1


async def test_a_spent_budget_ends_the_mission_though_the_method_would_catch_it(mind: MethodMind) -> None:
    """What no method could mend is not its to catch: no further call is made, and the mission says why."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            try:
                return await self.infer_(query)
            except Exception:
                return "As if nothing were."
        """
    )
    with pytest.raises(Refused, match="spent its 2 calls"):
        await ask(mind.uvm, budget={"calls": 2})


@pytest.mark.parametrize("interpret", ["allow", "never"])
async def test_without_a_cell_a_method_does_not_run(tmp_path: Path, interpret: str) -> None:
    """Its intent is interpreted if policy lets that be, and the mission says so; else the part fails. Never `exec`."""
    async with open_method_mind(tmp_path / "home", interpret=interpret) as mind:
        await mind.install(**{slot: ECHO.replace("tamland_facet_", slot) for slot in SLOTS})
        await replace_runtime(mind.uvm, cell=None)
        if interpret == "never":
            with pytest.raises(CellMissing, match="no cell"):
                await ask(mind.uvm)
            return
        shown = await ask(mind.uvm)
        assert methods(shown) == [(slot, "interpreted intent, because the cell is missing") for slot in SLOTS]
        assert shown["status"] == "done"


async def test_recall_and_log_are_there_and_nothing_else_of_the_kernels(mind: MethodMind) -> None:
    """`recall_` gives texts, `log_` a line as data; a step of the kernel's own is refused."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            found = await self.recall_("Who carries the oil?", 4000)
            self.log_("info", f"{len(found)} passages")
            return found[0]
        """,
        guide_facet_="""
        async def guide_facet_(self, query):
            return await self.start_cognitive_cycle_for_(query)
        """,
    )
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["answer"].startswith("lamp.txt: ")
    assert "does not understand" in shown["voices"][1]["failure"]["message"]


async def test_a_sync_facet_thinks_too(mind: MethodMind) -> None:
    """A method need not be async to wait: the model is asked, and the worker is not held."""
    await mind.learn(tamland_facet_="def tamland_facet_(self, query):\n    return self.infer_(query) + ' Quite.'\n")
    shown = await ask(mind.uvm)
    assert shown["voices"][0]["answer"] == f"{WINDS}. Quite."
