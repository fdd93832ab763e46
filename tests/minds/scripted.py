"""Minds over a scripted bridge: replies by kind of call, a mission prepared for stepping, and facts to ask about."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import PILLARS
from batos.image import roots
from batos.image.ids import conversation_id, utc_now
from batos.image.transactions import MissionTransaction
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.minds.context import MindContext
from batos.minds.machine import Machine, begin
from batos.missions.interpreter import MissionInterpreter
from batos.missions.runner import Attempt
from batos.objects.prototype import UvmObject
from batos.protocol.brief import File, as_file
from batos.protocol.errors import BatosError
from batos.testing import ScriptedBridge
from batos.uvm import UVM

QUESTION = "How does the keeper keep the lamp burning through the night?"
WINDS = "The keeper winds the clockwork every four hours"
TRIMS = "the wick is trimmed when the flame turns yellow"
DOCUMENT = f"{WINDS}, and {TRIMS}.\n\nThe oil of 1,200 cans is carried up by Anna Lund, 86 steps from the yard.\n"
LAMP = as_file("lamp.txt", DOCUMENT.encode())

#: BRICK's facets, and what each thinks after.
SLOTS = PILLARS["BRICK"]
INSPIRATIONS = ("Brick Tamland", "the Hitchhiker's Guide to the Galaxy", "a caped engineer's case files")

GOOD = f"{WINDS}."
#: A sentence that the document does not carry: one concrete fault.
BAD = "The keeper sleeps until noon."

_PROMPTS = [tomllib.loads(text)["prompts"] for name, text in codices.read_shipped().items() if name != codices.MIND]
#: The forms of the shipped codex's templates, by the kind of call that they make.
_FORMS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(
        "|".join(re.sub(r"\\\$\w+", "(?:.*)", re.escape(prompts[template].strip())) for prompts in _PROMPTS),
        re.DOTALL,
    )
    for name, template in (
        ("part", "facet"),
        ("woven", "weave"),
        ("changed", "protocol"),
        ("revised", "revise"),
    )
}


#: The line on the speaker before a plain question, with a name or without.
_LINES = [tomllib.loads(text)["line"] for name, text in codices.read_shipped().items() if name != codices.MIND]
_SPEAKS = re.compile(rf"(?:Be [^\n]+|{'|'.join(map(re.escape, _LINES))})(?:\n\n|\Z)")

#: The end of a weave that joins the parts of a sub-query.
_SUB_QUERY = re.compile(r"\(q\d\)")


def kind(request: ChatRequest) -> str:
    """Which call a request is: a reflex and a weave are `woven`, that of a mind within another is `voiced`."""
    if request.schema is not None:
        return "choice" if set(request.schema["properties"]) == {"best"} else "decomposition"
    asked = request.messages[-1]["content"]
    found = next((name for name in ("revised", "part", "woven", "changed") if _FORMS[name].search(asked)), "")
    found = found or ("reflex" if _SPEAKS.match(asked) else "")
    if found == "woven" and _SUB_QUERY.search(asked.rpartition("</answer ")[2]):
        return "voiced"
    # What a method asks in words of its own is a part, what a redefined reflex asks is an answer.
    return "woven" if found == "reflex" else found or "part"


def facet(request: ChatRequest) -> str:
    """The inspiration that a facet's request names."""
    return request.messages[-1]["content"].split("after ", 1)[1].split(".\n", 1)[0]


def candidate(request: ChatRequest, number: int) -> str:
    """The answer that a selection's request shows under a number."""
    after = request.messages[-1]["content"].split(f"\n{number}.\n<answer ", 1)[-1]
    return after.partition(">\n")[2].partition("\n</answer ")[0]


@dataclass
class Script:
    """Answers every kind of call; each can be set. Errors are raised by the bridge that asks."""

    part: str | BatosError = GOOD
    woven: str | BatosError = GOOD
    #: What a persona of a council makes of its facets' answers.
    voiced: str | BatosError = GOOD
    revised: str | BatosError = GOOD
    changed: str | BatosError = f"{WINDS}. So be it."
    #: The number of the answer that stands, as shown.
    choose: Callable[[ChatRequest], int] = lambda request: 1

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """The reply to a request."""
        asked = kind(request)
        if asked == "decomposition":
            assert request.schema is not None
            return json.dumps({key: f"{QUESTION} ({key})" for key in request.schema["properties"]})
        if asked == "choice":
            return json.dumps({"best": self.choose(request)})
        reply: str | BatosError = getattr(self, asked)
        return reply


class WaitingBridge(ScriptedBridge):
    """Every answer waits until the test lets it go; `waiting` has the calls that do, in the order they came."""

    def __init__(self, respond: Callable[[ChatRequest], str | BatosError]) -> None:
        super().__init__(respond)
        self.waiting: dict[int, asyncio.Event] = {}
        self._came = asyncio.Condition()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, but only when released."""
        number, gate = len(self.waiting) + 1, asyncio.Event()
        async with self._came:
            self.waiting[number] = gate
            self._came.notify_all()
        await gate.wait()
        return await super().think(request, on_token, stream=stream)

    async def arrived(self, number: int) -> None:
        """Wait until so many calls have come."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.waiting) >= number)

    async def let(self, number: int) -> None:
        """Let the call of that number go, once it has come."""
        await self.arrived(number)
        self.waiting[number].set()


class DenseBridge(ScriptedBridge):
    """Counts two tokens for three characters of a prompt."""

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, with that count."""
        size = sum(len(message["content"]) for message in request.messages)
        return replace(await super().think(request, on_token, stream=stream), prompt_tokens=2 * size // 3)


class FailingBridge(ScriptedBridge):
    """Fails with the given error from the given call on (or only at it), or runs something first."""

    def __init__(self, respond: Callable[[ChatRequest], str | BatosError], at: int, error: Callable[[], Exception]):
        super().__init__(respond)
        self.at = at
        self.error = error

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted until then."""
        if len(self.history) + 1 >= self.at:
            self.history.append(request)
            raise self.error()
        return await super().think(request, on_token, stream=stream)


async def ask(uvm: UVM, text: str = QUESTION, files: tuple[File, ...] = (LAMP,), **brief: Any) -> dict[str, Any]:
    """A cycle of BRICK over the lamp's document, unless told otherwise."""
    return dict(await uvm.missions.ask({"text": text, "persona": "BRICK", "effort": "cycle", **brief}, files))


async def begun(uvm: UVM, user: str = "tester") -> str:
    """A conversation with nothing in it yet."""
    name = conversation_id(utc_now())
    await change(uvm, lambda root: roots.conversation(root, name, user))
    return name


async def submit(uvm: UVM, text: str = QUESTION, files: tuple[File, ...] = (LAMP,), **brief: Any) -> str:
    """Accept such a mission without running it."""
    return await uvm.missions.submit({"text": text, "persona": "BRICK", "effort": "cycle", **brief}, files)


@dataclass
class Stepping:
    """A mission opened for stepping: its transaction, what runs it, and its cycle."""

    transaction: MissionTransaction
    context: MindContext
    interpreter: MissionInterpreter
    machine: Machine
    cycle: UvmObject
    attempt: Attempt


@asynccontextmanager
async def stepping(uvm: UVM, mission: str) -> AsyncIterator[Stepping]:
    """The mission's transaction and machine; nothing of it is committed unless the test does so."""
    runner = (await uvm.readiness.ready()).runner
    attempt = Attempt(mission)
    with uvm.image.transaction(mission) as transaction:
        context = await runner._prepare(attempt, transaction)
        orchestrator = transaction.root["orchestrator_obj"]
        cycle = begin(orchestrator)
        interpreter = MissionInterpreter(context, cycle)
        machine = Machine(orchestrator, interpreter, context)
        yield Stepping(transaction, context, interpreter, machine, cycle, attempt)


async def change(uvm: UVM, work: Callable[[Any], object]) -> None:
    """Change the image as a running system would: in a transaction of its own, from the next mission on."""
    await uvm.image.writer.apply(work)
