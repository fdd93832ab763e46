"""The approved tools of granted servers, as a toolbox of one mission, and as the sink of the effects that they have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from batos.agency import written_tools
from batos.agency.look_ups import leaving
from batos.agency.mcp import server_records
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import McpServers
from batos.agency.permissions import LEAVES, AsksPerson, CallQuestion, refuse
from batos.agency.records import effect_records, look_up_records
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.records.look_up_records import GrantTerms
from batos.agency.sinks import Check, EffectRefused, Outcome, check_nothing
from batos.agency.toolbox import Tool, ToolResult, ToolText
from batos.image.ids import iso
from batos.image.ownership import DOOR
from batos.image.roots import JournalRoot, Root
from batos.inference.journal import Journal
from batos.inference.outside_calls import OutsideCall, OutsideCalls, Result
from batos.objects.prototype import UvmObject
from batos.protocol import brief_checks
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import LookUpFailed, ObjectError, Refused, TimedOut
from batos.protocol.lent_tools import ARGUMENT_BYTES, FAILURE_LIMIT

#: Stages a call that may change something as an effect of the mission, and returns what is said of it.
Stage: TypeAlias = Callable[[UvmObject, str, Mapping[str, Any]], str]
#: The text that stands for the result of a call, by what is said when it is staged.
_SAID: Final = {
    "staged": "The call waits for the person's yes: nothing of it has happened yet.",
    "repeated": "The same call was asked for before, and is not made again.",
}


@dataclass(frozen=True, slots=True)
class McpTools:
    """The toolbox of one mission. Tools that only read, as a person said, are called at once; the rest is staged.

    A tool that may change something is only offered where the mission names its grant.
    """

    servers: McpServers
    journal: Journal
    root: Root
    brief: MissionBrief
    outside: OutsideCalls
    stage: Stage
    #: The person's own earlier questions in the conversation, and what asks the person before private words leave.
    said: Sequence[str] = ()
    ask: AsksPerson = refuse

    def tools(self) -> Sequence[Tool]:
        """Return the tools that this mission may use, in the order of their names."""
        named = self.brief.grants or ()
        found = [
            tool.as_tool(server.name, reads=name in server.reads)
            for server in self._servers().values()
            for name, tool in server.usable.items()
            if not tool.form.fault and (name in server.reads or server.name in named)
        ]
        return sorted(found, key=lambda each: each.name)

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return what a tool brings, or in a line why it brings nothing.

        Raises: Refused: it is not granted, or words would leave that are not of the question.
        """
        server_name, _, tool = name.partition(".")
        known = {each.name: each for each in self.tools()}
        if name not in known:
            raise Refused(f"there is no tool {name!r}", field="name", remedy="`batos tools` lists the tools.")
        faults = brief_checks.find_faults(known[name].parameters, dict(arguments))
        if faults:
            return ToolResult(failure=f"{name}: {'; '.join(faults)}"[:FAILURE_LIMIT])
        server = self._servers()[server_name]
        if not known[name].reads:
            return self._stage(server, tool, arguments)
        try:
            found = await self.read(server, tool, arguments, path)
        except (LookUpFailed, TimedOut) as error:
            return ToolResult(failure=f"{name}: {error.message}"[:FAILURE_LIMIT])
        if found["failed"]:
            return ToolResult(failure=" ".join(f"{name} says: {found['text']}".split())[:FAILURE_LIMIT])
        title = f"{name} {json.dumps(arguments, ensure_ascii=False)}"[:FAILURE_LIMIT]
        return ToolResult([ToolText(title, str(found["text"]), f"server {server.target}", str(found["at"]))])

    def _stage(self, server: McpServer, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        capability = effect_records.find_capability(self.root, server.name, self.brief.user)
        if capability is None:
            raise Refused(f"the grant {server.name!r} is revoked", field="grants", remedy="Grant the server anew.")
        said = self.stage(capability, tool, arguments)
        title = f"{server.name}.{tool} {json.dumps(arguments, ensure_ascii=False)}"[:FAILURE_LIMIT]
        return ToolResult([ToolText(title, _SAID[said], "BAT OS", iso(self.servers.clock()), "tool")])

    async def read(
        self, server: McpServer, tool: str, arguments: Mapping[str, Any], path: str, *, by_person: bool = False
    ) -> Result:
        """Return {text, failed, at} of a tool that only reads: from the journal where it was asked there before.

        Raises: Refused: something private would leave, or the tool is not what was approved. LookUpFailed.
        """
        given: Any = brief_checks.plain_json(dict(arguments), ARGUMENT_BYTES)
        said = " ".join(map(str, written_tools.list_values(given)))
        choices = map(str, written_tools.list_choices(server.pins[tool].form.parameters))
        foreign = leaving.find_foreign(said, leaving.words_of_question(self.brief, (*self.said, *choices)))

        async def make(_call: str) -> Result:
            if foreign and not by_person:  # what the journal has leaves no more, and asks nobody
                form = json.dumps([tool, given], ensure_ascii=False)[1:-1]
                remedy = f"If that is meant, send it yourself: batos send {server.name} call_ {form}"
                await self.ask(CallQuestion(f"{server.name}.{tool}", given, LEAVES, tuple(foreign), remedy))
            now = self.servers.clock()
            query = {
                "what": f"{tool} {json.dumps(given, ensure_ascii=False)}", "kind": "call", "to": server.target,
                "user": self.brief.user, "mission": self.outside.mission, "path": path,
            }  # fmt: skip

            def enter(root: JournalRoot) -> None:
                look_up_records.enter(root, (server.name, server.nonce), GrantTerms(), query, now)

            await self.journal.change(enter)
            answer = await self.servers.call(server.name, server.nonce, tool, given)
            return {"text": answer.text, "failed": answer.failed, "at": iso(now)}

        return await self.outside.perform(
            OutsideCall(path, "mcp tool", {"tool": tool, "grant": server.name, "arguments": given}), make
        )

    def find_reading(self, capability: UvmObject, tool: object) -> McpServer | None:
        """Return the server of a capability that this mission may use, if the person said that the tool only reads."""
        server = self._servers().get(str(server_records.read_server(capability).name))
        return server if server is not None and tool in server.reads and tool in server.usable else None

    def _servers(self) -> Mapping[str, McpServer]:
        unattended = self.brief.origin.door == DOOR
        every = server_records.list_servers(self.root, self.brief.user, unattended=unattended)
        return {each.name: each for each in map(server_records.read_server, every)}


@dataclass(slots=True)
class McpSink:
    """Makes the calls that a person said yes to. Nobody can look whether one happened, so it is never made again."""

    servers: McpServers
    server: McpServer
    loop: asyncio.AbstractEventLoop
    sink: SinkClass = "blind"

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return nothing: a call is recognised by nothing."""
        return {}

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Make the call. Raises: EffectRefused: it was not sent. After any other error nobody knows."""
        sent: list[bool] = []

        def before() -> None:
            check()
            sent.append(True)

        tool, given = effect["payload"]["tool"], effect["payload"]["arguments"]
        calling = self.servers.call(self.server.name, self.server.nonce, tool, given, before)
        try:
            answer = asyncio.run_coroutine_threadsafe(calling, self.loop).result()
        except (LookUpFailed, Refused, ObjectError) as error:
            if sent:
                raise
            raise EffectRefused(error.message, remedy=error.remedy) from error
        said = " ".join(answer.text.split())[:FAILURE_LIMIT]
        return {"reason": f"the tool says that it failed: {said}" if answer.failed else said or "done"}

    def find(self, effect: EffectData) -> Outcome | None:
        """Return nothing: nobody asks a blind sink."""
        return None
