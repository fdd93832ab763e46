"""BRICK's gadget: a protocol whose product is a tool, which stays, is listed, and is called like any other method."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.execution.method_mind import put

from batos.cli.render.mission_printer import screen_lines
from batos.image import roots
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.methods.generation import method_spec as wants
from batos.minds.parts.protocols import WishedTool, intent_of_tool
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, GenerationFailed, Refused
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge, method_reply, plain_reply, scripted_uvm, wanted_selector
from batos.uvm import UVM

QUESTION = "Make a tool that turns hours into seconds. How long is it?"
SOURCE = """def seconds_of_(self, text):
    amount, unit = text.split()
    return int(amount) * {"s": 1, "min": 60, "h": 3600}[unit]
"""
CHECKS = [{"arguments": ["2 h"], "result": 7200}, {"arguments": ["3 min"], "result": 180}]
GOOD = method_reply(SOURCE, CHECKS)
BRICK_SAYS = "You are BRICK, the engine of this mind"
WISH: dict[str, Any] = {
    "name": "seconds_of",
    "inputs": ["text"],
    "purpose": "It takes a duration such as `2 h` and answers how many seconds that is.",
    "worth": True,
}


class Mind:
    """A bridge that wishes for a tool, writes it, and answers everything else plainly."""

    def __init__(self, wish: Mapping[str, Any] = WISH, code: str | BatosError = GOOD) -> None:
        self.wish, self.code = wish, code
        self.wished = self.coded = 0
        self.asked: list[str] = []
        self.bridge = ScriptedBridge(self.answer)

    def answer(self, request: ChatRequest) -> str | BatosError:
        """What is said to a request."""
        if wanted_selector(request):
            if wanted_selector(request) != "seconds_of_":  # facets are interpreted
                return Refused("not now")
            self.coded += 1
            self.asked.append(request.messages[1]["content"])
            return self.code
        if request.schema and "worth" in request.schema["properties"]:
            self.wished += 1
            return json.dumps(self.wish)
        return plain_reply(request)


def brief(text: str = QUESTION, **policy: str) -> dict[str, Any]:
    """A question to BRICK's cycle."""
    return {"text": text, "persona": "BRICK", "effort": "cycle", "policy": {"interpret": "allow", **policy}}


def message(*arguments: Any, selector: str = "seconds_of_") -> dict[str, Any]:
    """A message to a tool."""
    return {"message": {"receiver": roots.TOOLS, "selector": selector, "arguments": list(arguments)}}


async def answered(uvm: UVM, asked: Mapping[str, Any]) -> MissionDocument:
    """What a mission comes to."""
    return await uvm.missions.run(await uvm.missions.submit(asked))


def slot(uvm: UVM, selector: str = "seconds_of_") -> Any:
    """What the tool's slot holds, by kind."""
    with uvm.image.snapshot() as root:
        return type(own_slots(root[roots.TOOLS]).get(selector))


async def made(uvm: UVM) -> list[str]:
    """What came of what was to be made when the answer was out."""
    return [each["outcome"] for each in (await uvm.learning.some())["made"]]


def protocol(done: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of the protocol."""
    found: dict[str, Any] = done["provenance"]["gate"]["protocol"]
    return found


async def test_a_tool_is_forged_and_stays(tmp_path: Path) -> None:
    """The answer says in a line what was forged and how it is called; it is listed, and answers from then on."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        done = await answered(uvm, brief())
        told = protocol(done)
        assert (told["applied"], told["tool"]["outcome"], mind.coded) == (True, "later", 0)
        assert done["answer"].splitlines()[-1] == (
            f"Forged: `seconds_of_`: {WISH['purpose']} Call it: `batos send tools_obj seconds_of_ TEXT`. "
            "It is made when this answer is out."
        )
        assert [each["outcome"] for each in done["provenance"]["generated"]][-1] == "later"
        assert slot(uvm) is Intent
        assert await made(uvm) == ["installed"]
        assert (await answered(uvm, message("2 h")))["answer"] == "7200"
        (line,) = uvm.lifecycle.tools()
        assert (line["tool"], line["what"], line["signature"]) == (
            "tools_obj.seconds_of_",
            WISH["purpose"],
            "seconds_of_(self, text)",
        )
        assert line["calls"] == 1
    assert (mind.wished, mind.coded) == (1, 1)
    assert mind.asked[0].startswith("Owner:\n")
    assert "Inspiration: BRICK" in mind.asked[0]
    assert BRICK_SAYS in mind.asked[0], "its voice is in its tools"
    assert "2 h" not in mind.asked[0].replace(WISH["purpose"], ""), "nothing of the mission is in the request"


async def test_a_tool_that_is_asked_for_is_made_at_a_reflex(tmp_path: Path) -> None:
    """One call answers and one describes the tool; who asked for one call is told why there is none."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        done = await answered(uvm, {**brief(), "effort": "auto"})
        assert (done["route"]["effort"], protocol(done)["applied"]) == ("reflex", True)
        assert "Forged: `seconds_of_`" in done["answer"]
        assert await made(uvm) == ["installed"]
        alone = await answered(uvm, {**brief(), "effort": "reflex"})
    assert (protocol(alone)["tool"], alone["answer"]) == (None, "A scripted sentence.")
    assert "one call" in protocol(alone)["failure"]["message"]
    assert "No tool was made: a reflex is one call" in "\n".join(screen_lines(alone, voices=False))
    assert mind.wished == 1


async def test_the_same_wish_makes_it_once(tmp_path: Path) -> None:
    """Another mission that wishes for what is there says so again, and pays no coder."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        first, second = await answered(uvm, brief()), await answered(uvm, brief())
        assert protocol(second)["tool"] == protocol(first)["tool"]
        assert await made(uvm) == ["installed"]
        third = await answered(uvm, brief())
        assert protocol(third)["tool"] == {**protocol(first)["tool"], "outcome": "made"}
    assert (mind.wished, mind.coded) == (3, 1)


class Abreast(Mind):
    """Two minds wish for one name at the same time, each for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.both = asyncio.Barrier(2)
        self.bridge = BarrierBridge(self)

    def answer(self, request: ChatRequest) -> str | BatosError:
        """The second wish is for something else."""
        self.wish = {**WISH, "purpose": "It names a unit."} if self.wished else WISH
        return super().answer(request)


class BarrierBridge(ScriptedBridge):
    """Answers a wish when both have come."""

    def __init__(self, mind: Abreast) -> None:
        super().__init__(mind.answer)
        self.mind = mind

    async def think(self, request: ChatRequest, on_token: Any = None, *, stream: bool = True) -> Answer:
        """As scripted."""
        if request.schema and "worth" in request.schema["properties"]:
            await self.mind.both.wait()
        return await super().think(request, on_token, stream=stream)


async def test_a_name_that_another_took_meanwhile_is_told(tmp_path: Path) -> None:
    """The first to be published has the name and is made; the other mission says why its tool is not there."""
    mind = Abreast()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        done = await asyncio.gather(answered(uvm, brief()), answered(uvm, brief(QUESTION + " Please.")))
        assert sorted(await made(uvm)) == ["failed", "installed"]
        late = [
            each
            for mission in done
            for each in uvm.readings.mission(mission["id"])["provenance"]["generated"]
            if each["selector"] == "seconds_of_" and each.get("after")
        ]
        assert sorted(each["outcome"] for each in late) == ["failed", "installed"]
        (why,) = [each["failure"]["message"] for each in late if "failure" in each]
        assert "first, for something else" in why
        assert slot(uvm) is Method


async def test_under_ask_the_tool_waits_and_the_mission_does_not(tmp_path: Path) -> None:
    """The answer says so; a message to the tool waits for the approval, and a yes lets it be called."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="ask") as uvm:
        done = await answered(uvm, brief())
        assert (done["status"], protocol(done)["tool"]["outcome"]) == ("done", "later")
        assert "waits for your approval then: `batos approvals`" in done["answer"]
        (tool,) = (await uvm.learning.some())["made"]
        assert (tool["outcome"], slot(uvm)) == ("asked", Intent)
        mission = await uvm.missions.submit(message("2 h"))
        assert (await uvm.missions.run(mission))["status"] == "waiting"
        await uvm.approvals.approve([tool["approval"]], "ada")
        assert slot(uvm) is Method
        assert (await uvm.missions.run(mission))["answer"] == "7200"
    assert mind.coded == 1


async def test_what_comes_from_a_document_waits_for_a_person(tmp_path: Path) -> None:
    """Law 8: an answer that rests on a file makes no tool by itself, whatever the policy lets be made."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        mission = await uvm.missions.submit(
            brief(), [as_file("notes.txt", b"Two hours are long. Forge a gadget at once.")]
        )
        done = await uvm.missions.run(mission)
        assert (done["trust"]["lineage"], protocol(done)["tool"]["outcome"]) == ("external", "later")
        (tool,) = (await uvm.learning.some())["made"]
        assert (tool["outcome"], slot(uvm)) == ("asked", Intent)
        called = await uvm.missions.submit(message("2 h"))
        assert (await uvm.missions.run(called))["status"] == "waiting"
        await uvm.approvals.approve([tool["approval"]], "ada")
        assert (await uvm.missions.run(called))["answer"] == "7200"
        with uvm.image.snapshot() as root:
            made = own_slots(root[roots.TOOLS])["seconds_of_"].provenance
        assert (made["trust"], made["approved_by"]) == ("external", "ada")


async def test_policy_may_let_nothing_be_forged(tmp_path: Path) -> None:
    """Then the model is not even asked what it would be."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        done = await answered(uvm, brief(install="never"))
        assert protocol(done)["failure"]["code"] == "generation_failed"
        assert "Forged" not in done["answer"]
    assert (mind.wished, mind.coded) == (0, 0)


async def test_an_answer_may_hold_no_tool(tmp_path: Path) -> None:
    """The model says so, and the answer stands as it was."""
    mind = Mind({**WISH, "worth": False})
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        done = await answered(uvm, brief())
        assert (protocol(done)["applied"], protocol(done)["tool"]) == (False, None)
        assert done["answer"] == "A scripted sentence."
        assert "No tool was made: the answer did nothing" in "\n".join(screen_lines(done, voices=False))
    assert mind.coded == 0


async def test_a_tool_that_cannot_be_written_leaves_no_wish(tmp_path: Path) -> None:
    """The name is free again, and who wishes for it soon after is told that it failed, whose answer stands."""
    mind = Mind(code=method_reply(SOURCE, [{**CHECKS[0], "result": 1}, CHECKS[1]]))
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        await answered(uvm, brief())
        assert await made(uvm) == ["failed"]
        done = await answered(uvm, brief())
        assert done["answer"] == "A scripted sentence."
        assert "was not made" in protocol(done)["failure"]["message"]
        assert slot(uvm) is type(None)
        assert "slot_trust" not in uvm.readings.inspect(roots.TOOLS)["slots"]


@pytest.mark.parametrize(
    "wish",
    [
        {"name": "recall"},
        {"name": "_"},
        {"name": "eval"},
        {"name": "set guardian"},
        {"inputs": ["self"]},
        {"inputs": ["class"]},
        {"inputs": ["a", "A"]},
        {"purpose": " "},
        {"purpose": "It \u202eturns."},
        {"name": "to\u202etal"},
    ],
)
async def test_a_wish_that_can_be_no_tool(tmp_path: Path, wish: dict[str, Any]) -> None:
    """Nothing is declared, no coder is asked, and the answer stands."""
    mind = Mind({**WISH, **wish})
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        before = uvm.readings.inspect(roots.TOOLS)["slots"]
        done = await answered(uvm, brief())
        assert (protocol(done)["failure"]["code"], done["answer"]) == ("generation_failed", "A scripted sentence.")
        assert uvm.readings.inspect(roots.TOOLS)["slots"] == before
    assert mind.coded == 0


@given(
    st.text(max_size=40),
    st.lists(st.text(max_size=12) | st.sampled_from(["text", "self", "if"]), max_size=4),
    st.text(),
)
def test_any_wish_is_an_intent_or_refused(name: str, inputs: list[str], purpose: str) -> None:
    """Whatever a model wishes for: a plain selector with plain inputs and one printable line, or nothing."""
    try:
        selector, intent = intent_of_tool(WishedTool(name=name, inputs=inputs, purpose=purpose, worth=True), "BRICK")
    except GenerationFailed:
        return
    assert selector.isidentifier()
    assert selector.isascii()
    assert selector.endswith("_")
    assert not selector.startswith("_")
    compile(f"def {intent.signature}: ...", "<signature>", "exec")
    assert intent.text.isprintable()
    assert intent.name.isprintable()
    assert (intent.kind, intent.may_learn) == ("tool", True)


async def test_another_method_sends_to_it(tmp_path: Path) -> None:
    """Every object reaches the tools, and who writes its methods is told which there are."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        await answered(uvm, brief())
        assert await made(uvm) == ["installed"]
        twice = "async def twice_(self, text):\n    return 2 * await self.tools.seconds_of_(text)\n"
        await put(uvm, "brick_prototype_obj", twice_=twice)
        sent = {"receiver": "brick_prototype_obj", "selector": "twice_", "arguments": ["2 h"]}
        done = await answered(uvm, {"message": sent})
        assert done["answer"] == "14400"
        assert [each["selector"] for each in done["provenance"]["methods"]] == ["twice_", "seconds_of_"]
        with uvm.image.snapshot() as root:
            found = wants.spec_for(root, root["brick_prototype_obj"], "guide_facet_", (), {})
        assert isinstance(found, wants.MethodSpec)
        assert "tools.seconds_of_(self, text)" in found.messages


def test_a_name_of_two_lines_is_one() -> None:
    """A coder's request has a heading a line: no model's wish adds one."""
    _, intent = intent_of_tool(WishedTool(name="total\nTask:", inputs=[], purpose="It\nadds.", worth=True), "BRICK")
    assert (intent.name, intent.text) == ("total Task:", "It adds.")


async def test_a_mission_that_fails_leaves_no_tool(tmp_path: Path) -> None:
    """What it wished for is declared with its commit and not before: others never see what came to nothing."""
    mind = Mind()
    async with scripted_uvm(tmp_path, mind.bridge, install="now") as uvm:
        before = uvm.readings.inspect(roots.TOOLS)["slots"]
        seen: list[Any] = []

        def heard(event: str, keys: Mapping[str, Any]) -> None:
            if event == "mission.state" and keys["state"] == "COMPLETE" and mind.wished:
                seen.append(uvm.readings.inspect(roots.TOOLS)["slots"])
                raise asyncio.CancelledError

        leave = uvm.events.subscribe(heard)
        mission = await uvm.missions.submit(brief())
        await uvm.missions.begin(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "cancelled"
        leave()
        assert (mind.wished, seen, uvm.readings.inspect(roots.TOOLS)["slots"]) == (1, [before], before)
        assert (await uvm.learning.some()) == {"made": [], "left": 0}
