"""Tools that people wrote, as a toolbox of one mission: functions of the program that asks, and files of the home."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from batos.agency.callers import Callers
from batos.agency.file_tools import FOLDER, FileTools
from batos.agency.look_ups import leaving
from batos.agency.permissions import AsksPerson, CallQuestion, refuse
from batos.agency.records import call_records
from batos.agency.toolbox import Tool, ToolKind, ToolResult, ToolText
from batos.concurrency.threads import finish_despite_cancel
from batos.events import Events
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.ownership import is_guest
from batos.inference.outside_calls import OutsideCall, OutsideCalls, Result
from batos.memory.segmentation import words
from batos.protocol import brief_checks
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import OutcomeUnknown, Refused, TimedOut
from batos.protocol.event_payloads import EFFECT_RELEASED, EFFECT_UNKNOWN, EffectReleased, EffectUnknown
from batos.protocol.lent_tools import (
    ARGUMENT_BYTES,
    FAILURE_LIMIT,
    CallReply,
    LentCallDocument,
    ToolDeclaration,
)

#: The most calls of such tools by one mission; seconds of a call, and beyond them for its way.
MOST_CALLS: Final = 32
CALL_SECONDS: Final = 60.0
WAY: Final = 10.0
_NO_ANSWER: Final = "the program did not answer in time, or is gone"
#: The reasons for which a call asks a person.
_CHANGES: Final = "it may change something"
_FOREIGN: Final = "its arguments have words that are not of your question"
_UNKNOWN: Final = "whether it ran is not known"


#: Answers a call in the place of a tool, by its name and arguments, as a test does; None: the tool itself is called.
StandIn: TypeAlias = Callable[[str, Mapping[str, Any]], CallReply | None]


@dataclass(frozen=True, slots=True)
class ToolPlaces:
    """The parts that the tools of all missions share: what reaches programs and files, and where it is written down."""

    callers: Callers
    files: FileTools
    image: LivingImage
    events: Events
    clock: Callable[[], datetime]
    stand_ins: list[StandIn] = field(default_factory=list)


def open_places(home: Path, image: LivingImage, events: Events, clock: Callable[[], datetime]) -> ToolPlaces:
    """Return the parts that the tools of one mind share; the files are those of its home."""
    return ToolPlaces(Callers(), FileTools(home / FOLDER), image, events, clock)


@dataclass(frozen=True, slots=True)
class ToolAsker:
    """Whoever asks a mission: its brief, the earlier questions of the conversation, and what asks about a call."""

    brief: MissionBrief
    said: Sequence[str] = ()
    ask: AsksPerson = refuse


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a tool: with what, whether that derives from outside, and the call that the journal knows it by."""

    tool: Tool
    arguments: Mapping[str, JsonValue]
    from_external: bool
    call: OutsideCall


class WrittenTools:
    """A `Toolbox` of a program's functions and of files. A call that may change something is made once in a lineage."""

    def __init__(self, places: ToolPlaces, asker: ToolAsker, outside: OutsideCalls, tools: Sequence[Tool]) -> None:
        self._places, self._asker, self._brief, self._outside = places, asker, asker.brief, outside
        self._tools = {each.name: each for each in sorted(tools, key=lambda each: each.name)}
        self._count = 0

    def tools(self) -> Sequence[Tool]:
        """Return the tools, in the order of their names."""
        return tuple(self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return what a tool brings, or in a line why it brings nothing; equal calls at a path are one."""
        tool = self._tools.get(name)
        try:
            given: Any = brief_checks.plain_json(dict(arguments), ARGUMENT_BYTES)
        except ValueError as error:
            return _failure(f"the arguments of {name}: {error}")
        faults = ["there is no such tool"] if tool is None else brief_checks.find_faults(tool.parameters, given)
        self._count += 1
        if self._count > MOST_CALLS:
            faults = [f"this mission has called tools {MOST_CALLS} times, and may not any more"]
        if tool is None or faults:
            return _failure(f"{name}: {'; '.join(faults)}")
        # Of what changes something, an equal call is the same one wherever in the mission it is wanted.
        place = path if tool.reads else f"tools/{name}"
        asked = OutsideCall(
            place, f"{tool.kind} tool", {"tool": name, "arguments": given}, "read" if tool.reads else "send"
        )
        is_external = not is_own(given, tool, self._brief, self._asker.said)
        return await self._perform(_Use(tool, given, is_external, asked), path)

    async def _perform(self, use: _Use, path: str) -> ToolResult:
        make = partial(self._make, use)
        find = partial(make, again=True) if use.tool.kind == "program" else None
        try:
            value = await self._outside.perform(use.call, make, find)
        except asyncio.CancelledError:  # the mission ends, and may never come back to ask
            if not use.tool.reads:
                await finish_despite_cancel(asyncio.ensure_future(self._record(use, path, "unknown", _UNKNOWN)))
            raise
        except OutcomeUnknown as error:
            effect = await self._record(use, path, "unknown", _UNKNOWN)
            settle = f" Look, then: batos effects settle {effect} done (or undone)." if effect else ""
            return _failure(f"{error.message}.{settle}")
        except (Refused, TimedOut) as error:
            return _failure(f"{error.message}. {error.remedy}")
        text = str(value["text"])
        if not use.tool.reads:
            await self._record(use, path, "released", "done" if value["outcome"] == "done" else text)
        if value["outcome"] != "done":
            return _failure(text)
        title = f"{use.tool.name} {json.dumps(use.arguments, ensure_ascii=False)}"[:FAILURE_LIMIT]
        trust: Literal["tool", "external"] = "external" if value["external"] else "tool"
        return ToolResult((ToolText(title, text, f"{use.tool.kind} tool {use.tool.name}", str(value["at"]), trust),))

    async def _make(self, use: _Use, call: str, *, again: bool = False) -> Result:
        """Make a call and return what came of it; `again`: ask for what came of one that was sent before.

        Raises: Refused: it was not begun. OutcomeUnknown, TimedOut: nobody answers, of what changes something or reads.
        """
        run = self._run_function if use.tool.kind == "program" else self._run_file
        replies = (each(use.tool.name, use.arguments) for each in self._places.stand_ins)
        reply = next(filter(None, replies), None) or await run(use, call, again=again)
        if reply is None or reply["outcome"] == "unknown":
            why = _NO_ANSWER if reply is None else reply["text"]
            what, remedy = f"{use.tool.name}: {why}", "Ask again."
            raise TimedOut(what, remedy=remedy) if use.tool.reads else OutcomeUnknown(what)
        if reply["outcome"] == "refused":
            raise _refusal(use, reply["text"])
        at = iso(self._places.clock())
        return {"outcome": reply["outcome"], "text": reply["text"], "external": use.from_external, "at": at}

    async def _run_function(self, use: _Use, call: str, *, again: bool) -> CallReply | None:
        caller = self._brief.caller or ""
        if not await self._places.callers.is_there(caller) and not again:
            raise _refusal(use, "the program that asked is gone")
        return await self._ask_program(use, call)

    async def _run_file(self, use: _Use, call: str, *, again: bool) -> CallReply | None:
        if _wants_yes(use):
            if self._brief.caller is None:
                why = _FOREIGN if use.tool.reads else _CHANGES
                await self._asker.ask(CallQuestion(use.tool.name, use.arguments, why))
            else:
                said = await self._ask_program(use, f"{call}?")
                if said is None or said["outcome"] != "done":
                    raise _refusal(use, _NO_ANSWER if said is None else said["text"])
        return await self._places.files.run(use.tool.name, use.arguments)

    async def _ask_program(self, use: _Use, call: str) -> CallReply | None:
        """Ask the program to make a call, or whether a file may make it."""
        told = LentCallDocument(
            mission=self._outside.mission, call=call, tool=use.tool.name, arguments=use.arguments, reads=use.tool.reads,
            from_external=use.from_external, is_file=use.tool.kind == "file", seconds=CALL_SECONDS,
        )  # fmt: skip
        seconds = CALL_SECONDS + WAY + (self._places.callers.times.deciding if _wants_yes(use) else 0.0)
        return await self._places.callers.ask(self._brief.caller or "", told, seconds)

    async def _record(self, use: _Use, path: str, state: Literal["released", "unknown"], reason: str) -> str:
        """Record what came of a call among the effects, if it is this mission's own; return the effect's id, or ""."""
        call, image = self._outside.own_id(use.call), self._places.image
        if call is None or not self._outside.reaches_out:
            return ""
        mission, facts = self._outside.mission, {
            "kind": use.tool.kind, "tool": use.tool.name, "arguments": use.arguments, "path": path, "reason": reason,
        }  # fmt: skip
        with image.snapshot() as root:
            if call_records.stands(root, mission, call, state):
                return call_records.name_of(mission, call)
        at = iso(self._places.clock())
        effect = await image.shared.apply(lambda root: call_records.record(root, mission, call, facts, state, at))
        grant = f"{use.tool.kind} tool"
        if state == "unknown":
            told = EffectUnknown(mission=mission, effect=effect, grant=grant, reason=reason)
            self._places.events.emit(EFFECT_UNKNOWN, told)
        else:
            done = EffectReleased(mission=mission, effect=effect, grant=grant, outcome={"reason": reason})
            self._places.events.emit(EFFECT_RELEASED, done)
        return effect


def settled_result(at: str) -> Result:
    """Return the result of a call that a person says was done: nobody knows what it brought."""
    return {"outcome": "failed", "text": "it was done, and what it brought is not known", "external": False, "at": at}


def _refusal(use: _Use, why: str, remedy: str = "Ask anew, if it is to be called after all.") -> Refused:
    return Refused(f"{use.tool.name} was not called: {why}", remedy=remedy)


def _wants_yes(use: _Use) -> bool:
    return not use.tool.reads or use.from_external


def _failure(line: str) -> ToolResult:
    said = " ".join(line.split())
    return ToolResult(failure=said if len(said) <= FAILURE_LIMIT else f"{said[: FAILURE_LIMIT - 1]}…")


def is_own(arguments: object, tool: Tool, brief: MissionBrief, before: Sequence[str] = ()) -> bool:
    """Test if every word and number in arguments stands in the question, in one `before`, or among a tool's choices."""
    own = leaving.words_of_question(brief, (*before, *map(str, list_values(list(list_choices(tool.parameters))))))
    said = " ".join(map(str, list_values(arguments)))
    return all(leaving.own_word(each, own) for each in words(said))


def list_choices(schema: Mapping[str, Any]) -> Iterator[object]:
    """Yield the choices of the parameters of a tool, and of the items of those that are lists."""
    for each in schema["properties"].values():
        yield from (*each.get("enum", ()), *each.get("items", {}).get("enum", ()))


def list_values(value: object) -> list[object]:
    """Return the texts and numbers within a value; truth values tell nothing."""
    if isinstance(value, Mapping):
        return [one for each in value.values() for one in list_values(each)]
    if isinstance(value, list | tuple):
        return [one for each in value for one in list_values(each)]
    return [] if value is None or isinstance(value, bool) else [value]


def as_tool(declared: ToolDeclaration, kind: ToolKind) -> Tool:
    """Return what was declared as a tool of a kind."""
    return Tool(declared.name, declared.purpose, declared.parameters, kind, declared.reads)


def lend_tools(places: ToolPlaces, asker: ToolAsker, outside: OutsideCalls) -> WrittenTools | None:
    """Return the tools that a mission may use: its asker's functions and the home's files, of which a guest has none.

    Of two with one name it is the program's. None: there are none.
    """
    brief = asker.brief
    own = [] if brief.tool_choice else [as_tool(each, "program") for each in brief.tools or ()]
    files = () if is_guest(brief.user) else places.files.known
    names = {each.name for each in own}
    beside = [as_tool(each, "file") for file in files for each in file.tools if each.name not in names]
    return WrittenTools(places, asker, outside, [*own, *beside]) if own or beside else None
