"""Tools that people wrote, as a mission has them: staged, made once, unknown where nobody answers, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.agency.lending import lend
from tests.agency.test_file_tools import GOOD, folder_with
from tests.history.test_as_of_past_questions import Door
from tests.waiting import HANG

from batos.agency.callers import CallerTimes
from batos.agency.toolbox import ToolResult
from batos.agency.written_tools import MOST_CALLS
from batos.client.tool_functions import declare, read
from batos.protocol.lent_tools import CallOutcome
from batos.testing import scripted_uvm
from batos.uvm import UVM

CALLER = "c" * 32
PATH = "babs/tools#0"


@read
def look(city: str) -> str:
    """Look at a city."""
    return city


def fire(city: str) -> str:
    """Fire at a city."""
    return city


@read
def choose(unit: Literal["kelvin", "celsius"], count: int, days: list[Literal["monday"]] = [], on: bool = True) -> str:  # noqa: B006
    """Choose a unit."""
    return f"{unit} {count} {days} {on}"


CHOOSE = declare(choose).declaration.model_dump()
TOOLS = [declare(each).declaration.model_dump() for each in (look, fire)]


class Program:
    """A program that answers each call as it is told to, and notes it; None is no answer."""

    def __init__(self, uvm: UVM, *outcomes: CallOutcome | None) -> None:
        self.uvm, self.outcomes = uvm, list(outcomes)
        self.calls: list[Mapping[str, Any]] = []
        self.was_asked = asyncio.Event()

    def tell(self, event: str, keys: Mapping[str, Any]) -> None:
        """Take an event."""
        assert event == "mission.tool_call"
        self.calls.append(keys)
        self.was_asked.set()
        outcome: CallOutcome | None = self.outcomes.pop(0) if self.outcomes else "done"
        if outcome is not None:
            self.uvm.readiness.tool_places.callers.answer(
                CALLER, keys["call"], {"outcome": outcome, "text": f"it {outcome}"}
            )


@asynccontextmanager
async def mind(home: Path) -> AsyncIterator[tuple[UVM, str]]:
    """A mind with a mission that waits and has tools of a program; a program that is away is not waited for."""
    async with scripted_uvm(home) as uvm:
        uvm.readiness.tool_places.callers.times = CallerTimes(patience=0.0, again=0.01, deciding=0.0)
        yield uvm, await accept(uvm)


async def accept(uvm: UVM, **fields: Any) -> str:
    """A mission that lends tools."""
    brief = {"text": "Who looks at Rome?", "user": "tester", "tools": TOOLS, "caller": CALLER, **fields}
    return str(await uvm.missions.submit(brief))


def said(result: ToolResult) -> str:
    """The text of a result, or its failure."""
    return result.failure or "; ".join(each.text for each in result.texts)


async def effects(uvm: UVM) -> list[tuple[str, str]]:
    """The states of all effects, and what they do."""
    return [(each["state"], each["what"]) for each in (await Door(uvm)("effects"))["effects"]]


async def test_a_call_is_staged_made_once_and_served_to_every_later_attempt(tmp_path: Path) -> None:
    """Of what reads by its path; of what changes something wherever in the lineage it is wanted."""
    async with mind(tmp_path) as (uvm, mission):
        program = Program(uvm)
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            tools = await lend(uvm, [mission])
            assert [(each.name, each.reads, each.kind) for each in tools.tools()] == [
                ("fire", False, "program"), ("look", True, "program"),
            ]  # fmt: skip
            (text,) = (await tools.call("look", {"city": "Rome"}, PATH)).texts
            told = (text.text, text.title, text.source, text.trust)
            assert told == ("it done", 'look {"city": "Rome"}', "program tool look", "tool")
            assert said(await tools.call("look", {"city": "Rome"}, PATH)) == "it done"
            assert len(program.calls) == 1
            await tools.call("look", {"city": "Rome"}, "babs/tools#1")
            for path in (PATH, "brick/tools#3"):
                assert said(await tools.call("fire", {"city": "Rome"}, path)) == "it done"
            assert [each["tool"] for each in program.calls] == ["look", "look", "fire"]
            again = await lend(uvm, [mission])
            assert said(await again.call("fire", {"city": "Rome"}, PATH)) == "it done"
            retry = await lend(uvm, [mission, await accept(uvm)])
            assert said(await retry.call("fire", {"city": "Rome"}, "other#9")) == "it done"
            assert said(await retry.call("look", {"city": "Rome"}, PATH)) == "it done"
        assert len(program.calls) == 3
        assert await effects(uvm) == [("released", 'call fire {"city": "Rome"}')]


async def test_a_copy_of_the_mind_has_what_is_recorded_and_reaches_nobody(tmp_path: Path) -> None:
    """A dream or a replay makes no call and records no effect."""
    async with mind(tmp_path) as (uvm, mission):
        program = Program(uvm)
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            await (await lend(uvm, [mission])).call("look", {"city": "Rome"}, PATH)
            dream = await lend(uvm, [mission, await accept(uvm)], copied=True)
            assert said(await dream.call("look", {"city": "Rome"}, PATH)) == "it done"
            assert "reaches nothing outside" in said(await dream.call("fire", {"city": "Rome"}, PATH))
        assert (len(program.calls), await effects(uvm)) == (1, [])


async def test_what_was_sent_and_has_no_answer_is_unknown_until_a_person_settles_it(tmp_path: Path) -> None:
    """It is never sent again; `undone` frees it, `done` does not."""
    async with mind(tmp_path) as (uvm, mission):
        tools = await lend(uvm, [mission])
        program = Program(uvm, "unknown")
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            line = said(await tools.call("fire", {"city": "Rome"}, PATH))
        assert "nobody knows what came of it" in line
        assert await effects(uvm) == [("unknown", 'call fire {"city": "Rome"}')]
        effect = (await Door(uvm)("effects"))["effects"][0]["effect"]
        assert f"batos effects settle {effect}" in line
        retry = await accept(uvm)
        assert "nobody knows" in said(await (await lend(uvm, [mission, retry])).call("fire", {"city": "Rome"}, PATH))
        await Door(uvm)("effects_settle", effect=effect, outcome="undone")
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            settled = await lend(uvm, [mission, retry])
            assert said(await settled.call("fire", {"city": "Rome"}, PATH)) == "it done"
            program.outcomes = ["unknown"]
            await settled.call("fire", {"city": "Bonn"}, PATH)
            bonn = next(each for each in (await Door(uvm)("effects"))["effects"] if "Bonn" in each["what"])
            await Door(uvm)("effects_settle", effect=bonn["effect"], outcome="done")
            last = await lend(uvm, [mission, retry])
            assert "it was done, and what it brought is not known" in said(
                await last.call("fire", {"city": "Bonn"}, PATH)
            )
        assert [each["arguments"]["city"] for each in program.calls] == ["Rome", "Rome", "Bonn"]
        assert sorted(await effects(uvm)) == [
            ("not_done", 'call fire {"city": "Rome"}'), ("released", 'call fire {"city": "Bonn"}'),
            ("released", 'call fire {"city": "Rome"}'),
        ]  # fmt: skip
        why = await Door(uvm)("why", what=effect)
        assert "call fire" in why["text"]


async def test_a_program_that_is_still_there_is_asked_what_came_of_a_call(tmp_path: Path) -> None:
    """After an attempt that ended between sending and the answer: it keeps the result under the call's id."""
    async with mind(tmp_path) as (uvm, mission):
        program = Program(uvm, None)
        uvm.readiness.tool_places.callers.times = CallerTimes(patience=HANG, again=HANG)
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            first = asyncio.ensure_future((await lend(uvm, [mission])).call("fire", {"city": "Rome"}, PATH))
            await program.was_asked.wait()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert await effects(uvm) == [("unknown", 'call fire {"city": "Rome"}')]
            assert said(await (await lend(uvm, [mission])).call("fire", {"city": "Rome"}, PATH)) == "it done"
        assert len({each["call"] for each in program.calls}) == 1
        assert await effects(uvm) == [("released", 'call fire {"city": "Rome"}')]


async def test_a_program_that_is_not_there_was_never_asked(tmp_path: Path) -> None:
    """Nothing was sent, so the call may be made later."""
    async with mind(tmp_path) as (uvm, mission):
        tools = await lend(uvm, [mission])
        for name in ("look", "fire"):
            assert "the program that asked is gone" in said(await tools.call(name, {"city": "Rome"}, PATH))
        program = Program(uvm, "refused", "failed")
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            assert "fire was not called: it refused. Ask anew" in said(await tools.call("fire", {"city": "Rome"}, PATH))
            assert said(await tools.call("fire", {"city": "Rome"}, PATH)) == "it failed"
            assert said(await tools.call("fire", {"city": "Rome"}, PATH)) == "it failed"
        assert len(program.calls) == 2
        assert await effects(uvm) == [("released", 'call fire {"city": "Rome"}')]


async def test_a_reading_call_without_an_answer_is_a_failure_and_made_again(tmp_path: Path) -> None:
    """It changes nothing, so it is no effect."""
    async with mind(tmp_path) as (uvm, mission):
        tools = await lend(uvm, [mission])
        program = Program(uvm, "unknown")
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            assert "it unknown" in said(await tools.call("look", {"city": "Rome"}, PATH))
            assert said(await tools.call("look", {"city": "Rome"}, PATH)) == "it done"
        assert await effects(uvm) == []


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("gone", {}, "there is no such tool"),
        ("look", {}, "'city' is a required property"),
        ("look", {"city": 3}, "3 is not of type 'string'"),
        ("look", {"city": "Rome", "more": 1}, "Additional properties are not allowed"),
        ("look", {"city": "x" * 20_000}, "bytes of JSON, at most 16,384 are taken"),
        ("look", {"city": object()}, "it is not JSON"),
    ],
)
async def test_arguments_are_checked_before_anything_is_staged(
    tmp_path: Path, name: str, arguments: Mapping[str, object], why: str
) -> None:
    """A line of at most 300 characters, and nothing in the journal."""
    async with mind(tmp_path) as (uvm, mission):
        result = await (await lend(uvm, [mission])).call(name, arguments, PATH)
        assert why in result.failure
        assert len(result.failure) <= 300
        assert list(uvm.journal.outside([mission])) == []


async def test_a_mission_makes_only_so_many_calls(tmp_path: Path) -> None:
    """Served ones count too: an attempt that is thought again ends at the same call."""
    async with mind(tmp_path) as (uvm, mission):
        tools, program = await lend(uvm, [mission]), Program(uvm)
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            for _ in range(MOST_CALLS):
                assert said(await tools.call("look", {"city": "Rome"}, PATH)) == "it done"
            assert f"has called tools {MOST_CALLS} times" in said(await tools.call("look", {"city": "Rome"}, PATH))
        assert len(program.calls) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "is_external"),
    [
        ("look", {"city": "Rome"}, False),
        ("look", {"city": "rome"}, False),
        ("look", {"city": "Bonn"}, True),
        ("choose", {"unit": "kelvin", "days": ["monday"], "on": True, "count": 3}, False),
        ("choose", {"unit": "kelvin", "count": 4}, True),
    ],
)
async def test_words_that_are_not_the_questions_are_marked_for_the_yes(
    tmp_path: Path, tool: str, arguments: Mapping[str, object], is_external: bool
) -> None:
    """They may come from a document; the choices that a tool declares are its program's own."""
    async with mind(tmp_path) as (uvm, _):
        mission = await accept(uvm, text="Who looks at Rome 3 times?", tools=[*TOOLS, CHOOSE])
        program = Program(uvm)
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            (text,) = (await (await lend(uvm, [mission])).call(tool, arguments, PATH)).texts
        assert [each["from_external"] for each in program.calls] == [is_external]
        assert text.trust == ("external" if is_external else "tool")


async def test_files_of_the_home_are_tools_of_the_home_and_no_guests(tmp_path: Path) -> None:
    """A program's tool goes before a file's of its name; what changes something needs the asker's yes."""
    async with mind(tmp_path) as (uvm, mission):
        folder_with(tmp_path, lamp=GOOD, other=GOOD.replace("switch_lamp", "look").replace("surroundings", "more"))
        tools = await lend(uvm, [mission])
        kinds = {each.name: each.kind for each in tools.tools()}
        assert kinds == {
            "fire": "program", "look": "program", "more": "file", "surroundings": "file", "switch_lamp": "file",
        }  # fmt: skip
        guest = await lend(uvm, [await accept(uvm, user="key laptop")])
        assert [each.name for each in guest.tools()] == ["fire", "look"]
        (text,) = (await tools.call("surroundings", {}, PATH)).texts
        assert ('"isolated":1' in text.text, text.source) == (True, "file tool surroundings")
        program = Program(uvm, "refused", "done")
        with uvm.readiness.tool_places.callers.attach(CALLER, program.tell):
            assert "switch_lamp was not called: it refused" in said(await tools.call("switch_lamp", {"on": True}, PATH))
            assert said(await tools.call("switch_lamp", {"on": True}, PATH)) == "the lamp is on"
            assert said(await tools.call("switch_lamp", {"on": True}, PATH)) == "the lamp is on"
        assert [(each["tool"], each["is_file"]) for each in program.calls] == [("switch_lamp", True)] * 2
        alone = await lend(uvm, [await accept(uvm, tools=None, caller=None)])
        assert "it needs a yes, since it may change something" in said(
            await alone.call("switch_lamp", {"on": True}, PATH)
        )
        assert await effects(uvm) == [("released", 'call switch_lamp {"on": true}')]
