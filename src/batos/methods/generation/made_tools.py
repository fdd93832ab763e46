"""The toolbox of described APIs: the operations of each that a mission's brief grants, made at their first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from batos.agency.apis.description import read_description
from batos.agency.apis.operations import ApiDescription, Json, Operation
from batos.agency.records import api_records
from batos.agency.toolbox import Tool, ToolResult, ToolText
from batos.methods.execution.api_calls import call_api, lines_of
from batos.methods.execution.summoning import summon
from batos.minds.context import MindContext, MindInterpreter
from batos.objects.method import Intent
from batos.objects.prototype import own_slots
from batos.protocol.errors import ApprovalNeeded, GenerationFailed, MethodFailed, ObjectError, Refused
from batos.records import tools

#: The most examples of a tool.
_EXAMPLES: Final = 3


class MadeTools:
    """The operations of granted APIs as tools of one mission, named `OBJECT.OPERATION_`."""

    def __init__(self, context: MindContext, interpreter: MindInterpreter) -> None:
        self._context, self._interpreter = context, interpreter

    def tools(self) -> Sequence[Tool]:
        """Return a tool for each operation that reads, in the order of their names."""
        found = [self._tool(name, each) for name, api in self._apis() for each in api.operations]
        return sorted(found, key=lambda tool: tool.name)

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return the answer of an operation as one text; its object is made first where it does not exist.

        Raises: Appeared: the object was made, and the mission begins again with it. ApprovalNeeded: a person has to
        approve it.
        """
        owner, _, selector = name.partition(".")
        root = self._context.mission.root
        intent = tools.absent(root, owner)
        if intent is not None:
            return await self._make(owner, intent)
        receiver = tools.find_tool(root, owner)
        if receiver is None or selector not in own_slots(receiver):
            return ToolResult(failure=f"there is no tool {name[:80]!r}")
        given = cast("dict[str, Json]", dict(arguments))
        try:
            answer = await call_api(self._context, self._interpreter, receiver, selector, [given], path)
        except (Refused, ObjectError, MethodFailed) as error:
            return ToolResult(failure=error.message[:300])
        if answer.failure:
            return ToolResult(failure=answer.failure)
        asked = "; ".join(lines_of(given))
        title = f"{answer.operation.purpose or name} ({asked})" if asked else answer.operation.purpose or name
        return ToolResult((ToolText(title[:200], answer.text, answer.address, answer.at),))

    async def _make(self, name: str, intent: Intent) -> ToolResult:
        """Make the object, so that the mission begins again on a snapshot that has it; else return why not."""
        try:
            await summon(self._context, name, intent)
        except ApprovalNeeded:
            raise
        except (GenerationFailed, MethodFailed, Refused) as error:
            return ToolResult(failure=error.message[:300])

    def _apis(self) -> Iterator[tuple[str, ApiDescription]]:
        """Yield the APIs that the mission's brief grants, each with the name of its object."""
        root, brief = self._context.mission.root, self._context.mission.brief
        for name in brief.grants or ():
            intent, obj = tools.absent(root, name), tools.find_tool(root, name)
            text = intent.text if intent is not None else "" if obj is None else str(own_slots(obj).get(tools.API, ""))
            if text and api_records.grant_of(root, name, brief.user) is not None:
                yield name, read_description(text)

    def _tool(self, name: str, operation: Operation) -> Tool:
        shown = [each.example for each in operation.parameters if each.example][:_EXAMPLES]
        purpose = f"{name.replace('_', ' ')}: {operation.purpose}"[:200]
        return Tool(f"{name}.{operation.name}", purpose, operation.schema(), "made", examples=shown)
