"""The toolbox of described APIs: the operations of each that is granted to a mission, made at their first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from batos.agency.api_transport import is_own
from batos.agency.apis import reply_shapes
from batos.agency.apis.api_operations import ApiDescription, Json, Operation
from batos.agency.apis.description import read_description
from batos.agency.look_ups.web_addresses import parse_address
from batos.agency.records import api_records, effect_records, look_up_records
from batos.agency.records.schedule_records import DOOR
from batos.agency.toolbox import Tool, ToolResult, ToolText
from batos.image.roots import Root
from batos.methods.execution.api_calls import call_api, lines_of
from batos.methods.execution.summoning import summon
from batos.minds.context import MindContext
from batos.objects.method import Intent
from batos.objects.prototype import own_slots
from batos.protocol.errors import (
    ApprovalNeeded,
    BriefError,
    GenerationFailed,
    LookUpFailed,
    MethodFailed,
    ObjectError,
    Refused,
)
from batos.records import tools

#: The most characters of a purpose, and the most examples of a tool.
_PURPOSE: Final = 360
_EXAMPLES: Final = 3


class MadeTools:
    """The operations of granted APIs as tools of one mission, named `OBJECT.OPERATION_`."""

    def __init__(self, context: MindContext) -> None:
        self._context = context

    def tools(self) -> Sequence[Tool]:
        """Return a tool for each operation that reads, in the order of their names."""
        root = self._context.mission.root
        found = [_tool(root, name, at, each) for name, at, api in self._apis() for each in api.operations]
        return sorted(found, key=lambda tool: tool.name)

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return the answer of an operation as one text; its object is made first where it does not exist.

        Raises: Appeared: the object was made, and the mission begins again with it. ApprovalNeeded: a person has to
        approve it.
        """
        owner, _, selector = name.partition(".")
        root = self._context.mission.root
        if effect_records.find_capability(root, owner) is None:
            return ToolResult(failure=f"nothing is granted to ask it: `batos grants add api URL --name {owner}` does")
        intent = tools.absent(root, owner)
        if intent is not None:
            return await self._make(owner, intent)
        receiver = tools.find_tool(root, owner)
        if receiver is None or selector not in own_slots(receiver):
            return ToolResult(failure=f"there is no tool {name[:80]!r}")
        given = cast("dict[str, Json]", dict(arguments))
        try:
            answer = await call_api(self._context, receiver, selector, [given], path)
        except (Refused, LookUpFailed, BriefError, ObjectError, MethodFailed) as error:
            return ToolResult(failure=error.message[:300])
        if answer.failure:
            return ToolResult(failure=answer.failure)
        asked = "; ".join(lines_of(given))
        about = "; ".join(filter(None, (asked, answer.note.strip("()"))))
        title = f"{answer.operation.purpose or name} ({about})" if about else answer.operation.purpose or name
        return ToolResult((ToolText(title[:200], answer.text, answer.address, answer.at),))

    async def _make(self, name: str, intent: Intent) -> ToolResult:
        """Make the object, so that the mission begins again on a snapshot that has it; else return why not."""
        try:
            await summon(self._context, name, intent)
        except ApprovalNeeded:
            raise
        except (GenerationFailed, MethodFailed, Refused) as error:
            return ToolResult(failure=error.message[:300])

    def _apis(self) -> Iterator[tuple[str, str, ApiDescription]]:
        """Yield the name and the address of each API that is granted to the mission, "" of one that nothing grants."""
        root, brief = self._context.mission.root, self._context.mission.brief
        unattended = brief.origin.door == DOOR
        for grant in look_up_records.list_usable(root, brief.user, unattended=unattended):
            if look_up_records.kind_of(grant) == "api":
                name, target = str(own_slots(grant)["name"]), str(own_slots(grant)["target"])
                yield name, target, read_description(api_records.api_text(root, name))
        for name in tools.names(root):
            if effect_records.find_capability(root, name) is None:
                yield name, "", read_description(api_records.api_text(root, name))


def _tool(root: Root, name: str, target: str, operation: Operation) -> Tool:
    """Return the tool of an operation; its purpose says which persona wished for it, where that is known."""
    shown = [each.example for each in operation.parameters if each.example][:_EXAMPLES]
    wisher = tools.find_wisher(root, name)
    purpose = f"{name.replace('_', ' ')}{wisher and f' of {wisher}'}: {operation.purpose}"[:200]
    if gives := ", ".join(dict.fromkeys(reply_shapes.words_of(operation.replies))):
        purpose = f"{purpose}: {gives}"[:_PURPOSE]
    local = not target or is_own(parse_address(target))
    return Tool(f"{name}.{operation.name}", purpose, operation.schema(), "made", local=local, examples=shown)
