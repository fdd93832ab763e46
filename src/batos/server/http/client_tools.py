"""Tools that a client sends with a question: which of them it speaks of, by rule, and the calls that are handed back.

The client makes the calls. Most send all of their tools with every question, so that a mission is given only those that
its question speaks of: for any other question nothing of them is kept, shown to a model, or asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final, Literal, NamedTuple

from pydantic import ValidationError

from batos.agency.toolbox import Tool
from batos.agency.written_tools import as_tool
from batos.minds.tools import choice, words
from batos.minds.tools.calling import one_line
from batos.protocol.errors import BatosError, BriefError
from batos.protocol.evidence_documents import WantedCallDocument
from batos.protocol.lent_tools import KEYWORDS, PARAMETERS_LIMIT, PURPOSE_LIMIT, ToolDeclaration
from batos.protocol.mission_documents import MissionDocument
from batos.server.http.sent_messages import SentMessages, clean

#: The fields of a request that are read here.
READ: Final = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
#: The most tools of a request, and those that a model is shown where the client wants a call of any.
MOST: Final = 128
_SHOWN: Final = 3
#: Tools whose names begin so change something, beside those with the name of a deed.
_CHANGES: Final = re.compile(r" (?:add|create|edit|move|post|put|replace|run|save|send|set|switch|update|write) ")


class SentTools(NamedTuple):
    """The tools of a request that a mission can be given; `must`: it has to end with a call of one."""

    tools: tuple[ToolDeclaration, ...]
    must: bool = False


def read_tools(given: Mapping[str, Any], setting: Literal["auto", "ignore"]) -> tuple[SentTools | None, list[str]]:
    """Return the tools of a request, None where it has none of use, and the names of what is ignored.

    Raises: BriefError: they are no list, or one has to be called and cannot be.
    """
    sent, asked = given.get("tools") or [], given.get("tool_choice") or "auto"
    if not isinstance(sent, list) or len(sent) > MOST:
        raise BriefError(f"tools: it must be a list of at most {MOST}", field="tools", remedy="Send fewer.")
    named = _named_choice(asked)
    must = named is not None or asked == "required"
    if not must and (asked == "none" or setting == "ignore"):
        return None, ["tools"] if sent and setting == "ignore" else []
    found, unfit = dict[str, ToolDeclaration](), list[str]()
    for each in sent:
        function = each.get("function", each) if isinstance(each, Mapping) else {}
        told = declare(function) if isinstance(function, Mapping) and each.get("type") in {None, "function"} else None
        if told is None:
            shown = function.get("name") or each.get("type") if isinstance(function, Mapping) and function else ""
            unfit.append(f"tools.{shown}")
        else:
            found.setdefault(told.name, told)
    tools = [each for each in found.values() if named in {None, each.name}]
    if must and (not tools or setting == "ignore"):
        raise BriefError(
            "tool_choice: there is no tool that can be called", field="tool_choice",
            remedy="Send one whose required parameters are plain values, with `client_tools = \"auto\"`.",
        )  # fmt: skip
    return SentTools(tuple(tools), must) if tools else None, unfit


def _named_choice(asked: object) -> str | None:
    """Return the tool that a choice names, None for a choice in a word. Raises: BriefError: it is neither."""
    if isinstance(asked, Mapping):
        function = asked.get("function", asked)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            return str(function["name"])
    elif asked in ("auto", "none", "required"):
        return None
    raise BriefError(
        "tool_choice: it must be none, auto, required, or a function by its name", field="tool_choice",
        remedy="Correct `tool_choice`.",
    )  # fmt: skip


def declare(function: Mapping[str, Any]) -> ToolDeclaration | None:
    """Return a client's function as a tool: with one line of purpose and plain parameters; None: that is not possible.

    A parameter of another kind is left out where a call need not have it.
    """
    name = function.get("name")
    if not isinstance(name, str):
        return None
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {} if isinstance(schema, Mapping) else None
    required = schema.get("required") or [] if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return None
    ordered = sorted(properties, key=lambda each: each not in required)[:PARAMETERS_LIMIT]
    plain = {each: _plain_parameter(properties[each]) for each in ordered if str(each).isidentifier()}
    kept = {each: told for each, told in plain.items() if told}
    said = words.plain_line(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " "))
    changes = _CHANGES.match(said) or any(words.phrases("deeds", each).search(said) for each in words.keys_of("deeds"))
    purpose = one_line(clean(str(function.get("description") or name)))[:PURPOSE_LIMIT].strip()
    shape: dict[str, Any] = {"type": "object", "properties": kept, "required": required}
    try:
        return ToolDeclaration(name=name, purpose=purpose or name, parameters=shape, reads=not changes)
    except (ValidationError, BatosError):
        return None


def _plain_parameter(schema: object) -> dict[str, Any]:
    """Return a parameter's schema with what is checked of it; of one that may be null the other kind. {}: none."""
    if not isinstance(schema, Mapping):
        return {}
    either = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(either, list):
        kinds = [each for each in either if isinstance(each, Mapping) and each.get("type") != "null"]
        schema = {**schema, **kinds[0]} if len(kinds) == 1 else {}
    kept = {key: value for key, value in schema.items() if key in KEYWORDS}
    if isinstance(kept.get("type"), list):
        kept["type"] = next((each for each in kept["type"] if each != "null"), None)
    if isinstance(kept.get("enum"), list):
        kept["enum"] = [each for each in kept["enum"] if each is not None]
        kept.setdefault("type", "string")
    return kept if kept.get("type") in {"string", "integer", "number", "boolean", "array"} else {}


def choose_tools(sent: SentTools, said: SentMessages, today: date) -> dict[str, Any]:
    """Return the fields of a brief by which its mission may end with a call, {} for a question that wants none.

    Where calls were made for the question only another search may follow, as with tools of our own.
    """
    tools = [as_tool(each, "asker") for each in sent.tools]
    if (made := {each.tool for each in said.calls}) and not sent.must:
        searches = {each.name for each in tools if choice.searches_by_words(each)}
        tools = [each for each in tools if each.name in searches - made] if made <= searches and len(made) == 1 else []
    chosen = choice.choose(said.question, tools, today, "sent", _SHOWN)
    taken: Sequence[Tool] = chosen.candidates[:1] if chosen.is_clear else chosen.candidates
    names = {each.name for each in taken or (tools[:_SHOWN] if sent.must else ())}
    declared = [each.model_dump() for each in sent.tools if each.name in names]
    return {"tools": declared, "tool_choice": "required" if sent.must else "auto"} if declared else {}


# -- the calls that a mission ended with


def calls_of(found: MissionDocument) -> Sequence[WantedCallDocument]:
    """Return the calls that a mission ended with; none for one that was answered."""
    return found["provenance"].get("tool_calls", ()) if "provenance" in found else ()


def call_id(mission: str) -> str:
    """Return the id of the call that a mission ended with.

    >>> call_id("m-01ABC"), mission_of_call("call_01ABC"), mission_of_call("call_x/y")
    ('call_01ABC', 'm-01ABC', None)
    """
    return f"call_{mission.removeprefix('m-')}"


def mission_of_call(name: str) -> str | None:
    """Return the mission that ended with a call, by its id; None: it is none of ours."""
    ulid = name.removeprefix("call_")
    return f"m-{ulid[:26]}" if ulid != name and ulid.isalnum() else None


def openai_calls(found: MissionDocument) -> list[dict[str, Any]]:
    """Return a mission's calls as those of a chat completion."""
    return [
        {
            "id": call_id(found["id"]), "type": "function",
            "function": {"name": each["tool"], "arguments": json.dumps(each["arguments"], ensure_ascii=False)},
        }
        for each in calls_of(found)
    ]  # fmt: skip


def ollama_calls(found: MissionDocument) -> list[dict[str, Any]]:
    """Return a mission's calls as Ollama has them."""
    return [{"function": {"name": each["tool"], "arguments": each["arguments"]}} for each in calls_of(found)]


def response_items(found: MissionDocument) -> list[dict[str, Any]]:
    """Return a mission's calls as items of a response."""
    return [
        {
            "type": "function_call", "id": f"fc_{found['id'].removeprefix('m-')}", "call_id": each["id"],
            "status": "completed", **each["function"],
        }
        for each in openai_calls(found)
    ]  # fmt: skip


def messages_of_items(items: Iterable[object]) -> Iterator[object]:
    """Yield a response's items as messages of a chat: calls are the assistant's, their outputs those of tools."""
    for each in items:
        kind = each.get("type", "message") if isinstance(each, Mapping) else "message"
        if kind == "message":
            yield each
        elif isinstance(each, Mapping) and kind == "function_call":
            function = {"name": each.get("name"), "arguments": each.get("arguments")}
            yield {"role": "assistant", "tool_calls": [{"id": each.get("call_id"), "function": function}]}
        elif isinstance(each, Mapping) and kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": each.get("call_id"), "content": each.get("output")}
