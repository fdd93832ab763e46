"""The resources and prompts of MCP: missions, memories and conversations to be read, protocols to be followed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args
from urllib.parse import unquote

from batos.client.pending import nobody
from batos.protocol.brief import PersonaName
from batos.protocol.errors import NotFound, UsageError
from batos.server.mcp.mcp_messages import INVALID_PARAMS, McpClient, McpError, Message

_PREFIX: Final = "batos://"
_JSON, _TEXT = "application/json", "text/plain"
#: Missions and memories that a list has, the newest first.
_LISTED: Final = 50
#: The verb and the argument behind each kind of resource; the first of each is a list, the other one thing.
_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "missions": ("missions", "The newest missions."), "memories": ("memories", "What is remembered, the newest first."),
    "personas": ("inspect", "The objects of the mind, among them the personas."),
}  # fmt: skip
_THINGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "missions": ("show", "mission", "A mission: its question, answer, sources and cost."),
    "memories": ("memories", "document", "A memory with all that is known of it."),
    "documents": ("memories", "document", "The text of a remembered document."),
    "conversations": ("turns", "conversation", "The turns of a conversation."),
    "personas": ("inspect", "object", "A persona, by its object: robin_prototype_obj."),
}
_PERSONAS: Final = tuple(each.lower() for each in get_args(PersonaName))


def templates() -> list[Message]:
    """Return what `resources/templates/list` has."""
    return [
        {
            "uriTemplate": f"{_PREFIX}{kind}/{{id}}", "name": kind, "description": what,
            "mimeType": _TEXT if kind == "documents" else _JSON,
        }
        for kind, (_, _, what) in _THINGS.items()
    ]  # fmt: skip


async def resources(client: McpClient) -> list[Message]:
    """Return what `resources/list` has: the lists, then the newest missions and memories."""
    found: list[Message] = [
        {"uri": f"{_PREFIX}{kind}", "name": kind, "description": what, "mimeType": _JSON}
        for kind, (_, what) in _LISTS.items()
    ]
    missions = await client.call("missions", {"limit": _LISTED}, nobody)
    memories = await client.call("memories", {"limit": _LISTED}, nobody)
    found += [_describe("missions", each["id"], each["text"]) for each in missions["missions"]]
    found += [_describe("documents", each["document"], each["title"]) for each in memories["memories"]]
    return found


def _describe(kind: str, name: str, title: str) -> Message:
    media = _TEXT if kind == "documents" else _JSON
    return {"uri": f"{_PREFIX}{kind}/{name}", "name": name, "title": " ".join(title.split())[:120], "mimeType": media}


async def read(client: McpClient, uri: str) -> list[Message]:
    """Return the contents of a resource. Raises: McpError: there is none at this address."""
    kind, _, name = uri.removeprefix(_PREFIX).partition("/")
    known = _THINGS if name else _LISTS
    if not uri.startswith(_PREFIX) or kind not in known:
        raise unknown_resource(uri)
    verb, about = known[kind][:2]
    given = {about: unquote(name)} if name else {}
    try:
        found = await client.call(verb, given, nobody)
    except (NotFound, UsageError) as error:
        raise unknown_resource(uri) from error
    if kind == "documents":
        text = "\n\n".join(each["text"] for each in found.get("parts", ()))
        return [{"uri": uri, "mimeType": _TEXT, "text": text}]
    return [{"uri": uri, "mimeType": _JSON, "text": json.dumps(found, ensure_ascii=False)}]


def unknown_resource(uri: str) -> McpError:
    """Return the error of an address at which there is nothing for this client."""
    return McpError(INVALID_PARAMS, "there is no such resource", {"uri": uri[:400]})


# -- prompts


async def _protocols(client: McpClient) -> Iterator[tuple[str, str, str]]:
    """Return the name, the title and the text of each persona's protocols."""
    found: list[tuple[str, str, str]] = []
    for persona in _PERSONAS:
        shown = await client.call("inspect", {"object": f"{persona}_prototype_obj"}, nobody)
        for slot, value in shown["slots"].items():
            intent: Mapping[str, Any] = value.get("intent") or {} if isinstance(value, dict) else {}
            if intent.get("kind") == "protocol":
                found.append((f"{persona}.{slot.strip('_')}", str(intent.get("name") or slot), str(intent["text"])))
    return iter(found)


async def prompts(client: McpClient) -> list[Message]:
    """Return what `prompts/list` has: the personas, and the protocols that they follow."""
    wanted = [{"name": "text", "description": "The question, or the text that it is about.", "required": True}]
    listed = [(each, f"Ask {each.upper()}", f"Put a question to {each.upper()}.") for each in _PERSONAS]
    listed += [(name, title, text.split(". ")[0][:200]) for name, title, text in await _protocols(client)]
    return [{"name": name, "title": title, "description": about, "arguments": wanted} for name, title, about in listed]


async def prompt(client: McpClient, name: str, arguments: object) -> Message:
    """Return a prompt with its text put in. Raises: McpError: there is none of this name, or its text is missing."""
    text = arguments.get("text") if isinstance(arguments, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise McpError(INVALID_PARAMS, "params.arguments.text is a text that is needed")
    if name in _PERSONAS:
        asked, about = f"Ask {name.upper()} with the tool `ask`, persona {name.upper()}:\n\n{text}", name.upper()
    else:
        known = {each: (title, said) for each, title, said in await _protocols(client)}
        if name not in known:
            raise McpError(INVALID_PARAMS, f"there is no prompt {name[:80]!r}")
        about, said = known[name]
        asked = f"{said}\n\n{text}"
    return {"description": about, "messages": [{"role": "user", "content": {"type": "text", "text": asked}}]}
