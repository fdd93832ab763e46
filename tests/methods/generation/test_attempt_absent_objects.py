"""A message to an object that is declared and does not exist: it is made whole, in one dialogue for all who ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from batos.events import Events
from batos.image import roots
from batos.inference.ollama.bridge import ChatRequest
from batos.methods.generation import attempt
from batos.methods.generation.dialogue import REPAIRS
from batos.objects.method import Method
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, CovenantViolation, GenerationFailed, MessageNotUnderstood, NotFound
from batos.protocol.mission_documents import MissionDocument
from batos.records import tools
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM

AGENT = "text_agent"

#: One that asks the model and one that computes: both are what a coder may write.
WORDS = """async def words_(self, text):
    split = await self.infer_(f"Split this text, one word a line: {text}")
    return len(split.splitlines())
"""
OFTEN = """def often_(self, text, part):
    return text.count(part)
"""
WRITES = """def often_(self, text, part):
    self.last = part
    return text.count(part)
"""
NOTHING = """def often_(self, text, part):
    return None
"""
COUNTED = [
    {"arguments": ["a b c"], "replies": {"infer_": ["a\nb\nc"]}, "result": 3},
    {"arguments": ["d"], "replies": {"infer_": ["d"]}, "result": 1},
]
FOUND = [{"arguments": ["aab", part], "result": many} for part, many in (("a", 2), ("b", 1))]


def one(selector: str, source: str, checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A method as a coder writes it: each field of a check as JSON in a text."""
    fields = ("arguments", "before", "replies", "result", "slots")
    texts = [{name: json.dumps(each[name]) if name in each else "" for name in fields} for each in checks]
    return {"selector": selector, "source": source, "checks": texts}


def reply(words: str = WORDS, often: str = OFTEN, counted: Any = COUNTED, found: Any = FOUND) -> str:
    """A coder's reply with both methods."""
    return json.dumps({"methods": [one("words_", words, counted), one("often_", often, found)]})


GOOD = reply()
#: Replies that fail for one method alone, and what of it is told.
WRONG = {
    "the second does not mark what it writes": (reply(often=WRITES), "`often_`: "),
    "a check of the first fails": (
        reply(counted=[*COUNTED[:1], {**COUNTED[1], "result": 0}]),
        "`words_`: check 2",
    ),
    "one is given twice": (
        json.dumps({"methods": [one("often_", OFTEN, FOUND)] * 2}),
        "`words_` is missing",
    ),
    "one alone": (json.dumps({"methods": [one("often_", OFTEN, FOUND)]}), "methods"),
    "no JSON": (GOOD[:200], "stops in the middle"),
    "checks that doing nothing passes": (
        reply(often=NOTHING, found=[{**each, "result": None} for each in FOUND]),
        "`often_`: 0 of its 2 checks",
    ),
}


class Coder:
    """A bridge whose coder gives these replies, the last one again and again, and answers everything else."""

    def __init__(self, *replies: str | BatosError) -> None:
        self.replies = list(replies or (GOOD,))
        self.asked: list[ChatRequest] = []
        self.bridge = ScriptedBridge(self.answer)

    def answer(self, request: ChatRequest) -> str | BatosError:
        """What is said to a request."""
        if request.messages[0]["content"].startswith(attempt.HEAD):
            self.asked.append(request)
            return self.replies[min(len(self.asked), len(self.replies)) - 1]
        if "Split this text" in request.messages[-1]["content"]:
            return "One\nTwo\nThree"
        return plain_reply(request)


def brief(selector: str = "words_", *arguments: Any, receiver: str = AGENT, **policy: str) -> dict[str, Any]:
    """A message as a door hands it in."""
    message = {"receiver": receiver, "selector": selector, "arguments": list(arguments or ("One two three",))}
    return {
        "user": "tester",
        "attachments": [],
        "message": message,
        **({"policy": policy} if policy else {}),
    }


async def answered(uvm: UVM, asked: Mapping[str, Any]) -> MissionDocument:
    """What a message comes to."""
    return await uvm.missions.run(await uvm.missions.submit(asked))


async def test_it_is_made_whole_and_answers(tmp_path: Path) -> None:
    """One dialogue gives both methods; the mission that asked runs one at once, the next needs no coder."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now") as uvm:
        shown = uvm.readings.inspect(AGENT)
        assert (shown["state"], [each["selector"] for each in shown["methods"]]) == (
            "declared, absent",
            ["words_", "often_"],
        )
        done = await answered(uvm, brief())
        assert json.loads(done["answer"]) == 3
        (told,) = done["provenance"]["generated"]
        assert (told["selector"], told["outcome"], told["calls"]) == (AGENT, "installed", 1)
        assert len(coder.asked) == 1
        with uvm.image.snapshot() as root:
            made = tools.find_tool(root, AGENT)
            assert made is not None
            assert all(isinstance(own_slots(made)[each], Method) for each in ("words_", "often_"))
        counted = await answered(uvm, brief("often_", "high tide, low tide", "tide"))
        assert json.loads(counted["answer"]) == 2
        assert len(coder.asked) == 1
        assert uvm.readings.inspect(AGENT)["slots"]["name"] == AGENT
        assert {line["tool"] for line in uvm.lifecycle.tools()} == {f"{AGENT}.words_", f"{AGENT}.often_"}


async def test_the_request_says_what_cannot_be_done(tmp_path: Path) -> None:
    """Whose it is, the whole API, no argument of the message, and that no method reaches a network."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now") as uvm:
        await answered(uvm, brief("words_", "a secret text"))
        charter = uvm.readings.inspect("orchestrator_obj.charter")
    first, *_ = coder.asked
    text = "\n".join(message["content"] for message in first.messages)
    assert f"Owner:\n{charter['value'].strip()}\n\nReceiver: {AGENT}" in text
    assert "`words_(self, text)`, `often_(self, text, part)`" in text
    assert "Both compute, from what they are given alone." in text
    assert "No method reaches a network" in text
    assert "secret" not in text


@pytest.mark.parametrize("wrong", WRONG)
async def test_one_that_fails_fails_all(tmp_path: Path, wrong: str) -> None:
    """The whole goes back to the coder with what is wrong; then it is made, or after three repairs nothing is."""
    said, fault = WRONG[wrong]
    mended = Coder(said, GOOD)
    async with scripted_uvm(tmp_path / "mended", mended.bridge, install="now") as uvm:
        await answered(uvm, brief())
        if wrong == "no JSON":  # nothing of it is shown: the same is asked anew
            assert mended.asked[1].messages == mended.asked[0].messages
        else:
            assert fault in mended.asked[1].messages[-1]["content"]
    never = Coder(said)
    async with scripted_uvm(tmp_path / "never", never.bridge, install="now") as uvm:
        with pytest.raises((GenerationFailed, CovenantViolation)):
            await answered(uvm, brief())
        assert len(never.asked) == REPAIRS + 1
        assert uvm.readings.inspect(AGENT)["state"] == "declared, absent"
        with uvm.image.snapshot() as root:
            assert not root[roots.METHODS]
        with pytest.raises((GenerationFailed, CovenantViolation)):
            await answered(uvm, brief())
        assert len(never.asked) == REPAIRS + 1, "what failed lately is not tried again at once"


async def test_eight_missions_make_it_once(tmp_path: Path) -> None:
    """They wait for one dialogue, and each is answered."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now", missions=8) as uvm:
        done = await asyncio.gather(*(answered(uvm, brief("often_", "x" * at, "x")) for at in range(8)))
        assert [json.loads(each["answer"]) for each in done] == list(range(8))
        assert len(coder.asked) == 1


async def test_a_person_is_asked_once_for_all_of_it(tmp_path: Path) -> None:
    """Under `ask` the mission waits, also where intents may be interpreted; one yes installs all, and it goes on."""
    coder, heard = Coder(), []
    events = Events(log=False)
    events.subscribe(lambda event, keys: heard.append((event, keys)))
    async with scripted_uvm(tmp_path, coder.bridge, install="ask", events=events) as uvm:
        mission = await uvm.missions.submit(brief())
        needed = await uvm.missions.run(mission)
        assert (needed["status"], needed["reason"]["code"]) == ("waiting", "approval_needed")
        assert uvm.readings.inspect(AGENT)["state"] == "declared, absent"
        other = await uvm.missions.submit(brief("often_", "x", "x"))
        again = await uvm.missions.run(other)
        assert again["reason"]["approval"] == needed["reason"]["approval"]
        answers = await uvm.approvals.approve([needed["reason"]["approval"]], "ada")
        assert [each.word for each in answers.answers] == ["approved"]
        assert set(answers.woken) == {mission, other}
        assert json.loads((await uvm.missions.run(mission))["answer"]) == 3
        assert json.loads((await uvm.missions.run(other))["answer"]) == 1
        assert len(coder.asked) == 1
        installed = [str(keys["selector"]) for event, keys in heard if event == "method.installed"]
        assert sorted(installed) == ["often_", "words_"]


async def test_policy_may_let_nothing_be_made(tmp_path: Path) -> None:
    """Then the message fails and says so; nothing was asked."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now") as uvm:
        with pytest.raises(GenerationFailed, match="declared and does not exist"):
            await answered(uvm, brief(install="never"))
    assert coder.asked == []


async def test_what_nobody_declared_costs_nothing(tmp_path: Path) -> None:
    """Neither another object nor another selector of this one is a wish."""
    coder = Coder()
    async with scripted_uvm(tmp_path, coder.bridge, install="now") as uvm:
        with pytest.raises(NotFound):
            await answered(uvm, brief(receiver="web_agent"))
        with pytest.raises(MessageNotUnderstood) as unknown:
            await answered(uvm, brief("find_", "sea"))
        assert "words_(self, text)" in unknown.value.remedy
    assert not [request for request in coder.bridge.history if request.schema]
