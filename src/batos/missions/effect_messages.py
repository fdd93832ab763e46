"""Messages of a person and calls of a cycle that act on the world: staged as effects, or asked of a server at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from batos.agency.mcp.server_tools import McpTools
from batos.agency.mcp.servers import McpServers
from batos.agency.payloads import payload_of
from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData
from batos.image.ownership import DOOR
from batos.inference.journal import Journal
from batos.methods.execution import primitives
from batos.minds.context import MindContext
from batos.minds.permission import ask_person, list_earlier_questions
from batos.objects.prototype import UvmObject

_CALL = effect_records.SELECTORS["mcp"]["call_"]


def serve_tools(servers: McpServers, journal: Journal, context: MindContext) -> McpTools:
    """Return the tools of granted servers that a mission may use."""

    def stage(capability: UvmObject, tool: str, arguments: Mapping[str, Any]) -> str:
        return _stage(context, capability, _CALL, (tool, dict(arguments)), f"{context.mind.name}'s choice of tools")

    said, ask = list_earlier_questions(context), partial(ask_person, context)
    return McpTools(servers, journal, context.mission.root, context.mission.brief, context.io.outside, stage, said, ask)


async def act(context: MindContext, receiver: UvmObject, operation: str, args: tuple[Any, ...]) -> Any:
    """Return what a message to a capability does: `staged`, or what a server's tool brings that only reads.

    Raises: ObjectError: the message is wrong. Refused, LookUpFailed: the server is not asked, or does not answer.
    """
    boxes = (make(context) for make in context.io.toolboxes) if operation == _CALL else ()
    for box in (each for each in boxes if isinstance(each, McpTools)):
        payload: Any = payload_of(operation, args)
        server = box.find_reading(receiver, payload["tool"])
        if server is not None:
            by_person = context.mission.brief.origin.door != DOOR
            place = f"{server.name}/call#0"
            told = await box.read(server, payload["tool"], payload["arguments"], place, by_person=by_person)
            return {"trust": "external", **told}
    return _stage(context, receiver, operation, args, "")


def _stage(context: MindContext, receiver: UvmObject, operation: str, args: tuple[Any, ...], asked_by: str) -> str:
    staged: list[EffectData] = []
    said = primitives.stage(context, receiver, operation, args, staged, asked_by)
    context.trace.note_effects(staged)
    return said
