"""A program's side of calls: each is approved where that is needed, made once, and told until the server has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import batos
from batos.client.tool_functions import Approve, ToolCalls, ToolUse, always, read
from batos.protocol.errors import BriefError, NoServer

Told = list[tuple[str, str, str]]


class Bench:
    """Two functions that note their calls, and a server that notes what it is told."""

    def __init__(self, approve: Approve | None = always) -> None:
        self.made: list[str] = []
        self.told: Told = []
        self.events: list[str] = []
        self.losses = 0
        self.was_told = asyncio.Event()

        @read
        def look(city: str) -> str:
            """Look at a city."""
            self.made.append(f"look {city}")
            return f"seen {city}"

        async def fire(city: str) -> str:
            """Fire at a city."""
            self.made.append(f"fire {city}")
            return "fired"

        functions = [look] if approve is None else [look, fire]
        self.calls = ToolCalls(functions, approve, self.ask, lambda event, _: self.events.append(event))

    async def ask(self, verb: str, args: Mapping[str, object], /) -> dict[str, Any]:
        """Take what the server is told."""
        assert (verb, args["caller"]) == ("tool_result", self.calls.caller)
        self.was_told.set()
        if self.losses:
            self.losses -= 1
            raise NoServer("gone")
        self.told.append((str(args["call"]), str(args["outcome"]), str(args["text"])))
        return {"call": args["call"], "late": False}

    async def want(self, tool: str, call: str = "x-1", **changes: Any) -> None:
        """An event that asks for a call, and the time until it was told."""
        keys = {
            "mission": "m-1", "call": call, "tool": tool, "arguments": {"city": "Rome"}, "reads": tool != "lamp",
            "from_external": False, "is_file": False, "seconds": 30.0,
        }  # fmt: skip
        self.was_told.clear()
        self.calls.on_event("mission.tool_call", {**keys, **changes})
        await self.was_told.wait()


async def test_a_call_is_made_once_however_often_it_is_asked_for() -> None:
    """A server that was lost asks again, and is told what came of the first time."""
    bench = Bench()
    async with bench.calls:
        bench.losses = 1
        await bench.want("fire")
        await bench.want("fire")
        await bench.want("look", "x-2")
    assert bench.made == ["fire Rome", "look Rome"]
    assert bench.told == [("x-1", "done", "fired"), ("x-2", "done", "seen Rome")]
    assert bench.events == ["mission.tool_call"] * 3


@pytest.mark.parametrize(
    ("tool", "changes", "asks"),
    [
        ("look", {}, False),
        ("look", {"from_external": True}, True),
        ("fire", {}, True),
        ("lamp", {"is_file": True, "reads": False}, True),
    ],
)
async def test_a_yes_is_asked_for_what_changes_something_or_derives_from_outside(
    tool: str, changes: Mapping[str, Any], asks: bool
) -> None:
    """With the arguments; only True is a yes, and who raises has not said it."""
    seen: list[ToolUse] = []

    def truthy(call: ToolUse) -> Any:
        seen.append(call)
        return "yes"

    async def fails(call: ToolUse) -> bool:
        seen.append(call)
        raise RuntimeError("no terminal")

    for approve, why in ((truthy, "the person who was asked said no"), (fails, "approve= raised RuntimeError")):
        bench = Bench(approve)
        async with bench.calls:
            await bench.want(tool, **changes)
        (told,) = bench.told
        assert (told[1] == "refused") is asks
        assert why in told[2] or not asks
        assert bench.made == ([] if asks else ["look Rome"])
    arguments = {"city": "Rome"}
    expected = ToolUse(tool, arguments, tool == "look", bool(changes.get("from_external")))
    assert seen == ([expected, expected] if asks else [])


async def test_without_approve_only_own_arguments_of_reading_functions_pass() -> None:
    """A function that is not marked is refused before anything is asked; so is a call by foreign words."""
    bench = Bench(None)
    async with bench.calls:
        await bench.want("look")
        await bench.want("look", "x-2", from_external=True)
        await bench.want("missing", "x-3")
    assert [each[1] for each in bench.told] == ["done", "refused", "refused"]
    with pytest.raises(BriefError, match="may change something, and nothing approves its calls") as wrong:
        ToolCalls([plain], None, bench.ask, None)
    assert "batos.read" in wrong.value.remedy
    assert ToolCalls([plain], batos.always, bench.ask, None).declarations[0]["reads"] is False


def plain() -> str:
    """Do."""
    return ""


async def test_a_file_of_the_home_only_wants_the_yes() -> None:
    """The program runs nothing for it, also where it has a function of that name."""
    bench = Bench()
    async with bench.calls:
        await bench.want("fire", is_file=True)
    assert (bench.made, bench.told) == ([], [("x-1", "done", "")])


async def test_what_ends_badly_says_how() -> None:
    """A function that raised has run; one whose time is over may still be at work, and is unknown if it changes."""

    async def hangs() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    def breaks() -> str:
        """Break."""
        raise OSError("no net")

    bench = Bench()
    bench.calls = ToolCalls([hangs, breaks, read(hanging)], always, bench.ask, None)
    async with bench.calls:
        for number, (tool, arguments) in enumerate(
            (("hangs", {}), ("hanging", {}), ("breaks", {}), ("breaks", {"x": 1}))
        ):
            await bench.want(tool, f"x-{number}", arguments=arguments, seconds=0.01 if "hang" in tool else 30.0)
    assert [each[1] for each in bench.told] == ["unknown", "failed", "failed", "refused"]


async def hanging() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return ""
