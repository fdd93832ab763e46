"""Tools as a server lists them: foreign data, of which a person sees all, and a model only names and types.

A tool is pinned as it was approved: its name, title, description, schemas and annotations. The line that a model is
shown is ours, made of the tool's name and those of its arguments. Of the description only the first words are used, and
only by the ranking, which counts words and follows no order.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from batos.agency.mcp.frames import Frame
from batos.agency.toolbox import Tool
from batos.inference.canonical import canonical
from batos.protocol import brief_checks
from batos.protocol.errors import LookUpFailed
from batos.protocol.lent_tools import PARAMETERS_LIMIT

#: The parts of a tool that are pinned, and the most bytes of them.
PINNED: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MOST_PINNED: Final = 64 * 1024
#: Characters of our line for a tool, and of a description's first words, by which it is ranked.
_PURPOSE, _RANKED = 120, 120
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ARGUMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
#: A choice that may be shown to a model: a word or two, and no sentence.
_CHOICE: Final = re.compile(r"[\w.:/+-]{1,40}(?: [\w.:/+-]{1,20})?")
#: Keywords of an argument that are kept; none of them is prose.
_KEPT: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")
_FORMATS: Final = ("date", "time", "date-time", "email", "uri", "url")
_TYPES: Final = ("string", "integer", "number", "boolean")


@dataclass(frozen=True)
class ListedTool:
    """A tool as its server tells it; `told` has what is pinned of it, and nothing else."""

    told: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return str(self.told["name"])

    @cached_property
    def digest(self) -> str:
        """Return the digest of all that is pinned."""
        return hashlib.sha256(canonical(self.told)).hexdigest()

    @cached_property
    def form(self) -> ToolForm:
        """Return what a cycle sees of it."""
        return read_form(self.told["inputSchema"])

    def as_tool(self, server: str, *, reads: bool) -> Tool:
        """Return it as a cycle ranks it, and as a model is shown it."""
        plain = re.sub(r"[^\x20-\x7e]+", " ", str(self.told.get("description", "")))
        first = re.split(r"(?<=[.!?])\s|\n", plain.strip(), maxsplit=1)[0][:_RANKED]
        properties: Mapping[str, Any] = self.form.parameters["properties"]
        purpose = f"{_words(self.name)} of {_words(server)}" + (
            f", given {', '.join(map(_words, properties))}" if properties else ""
        )
        return Tool(f"{server}.{self.name}", purpose[:_PURPOSE], self.form.parameters, "mcp", reads, examples=(first,))

    def lines(self) -> list[str]:
        """Return all that is pinned, line by line, as a person is asked about it."""
        schema = json.dumps(self.told["inputSchema"], ensure_ascii=False, indent=1, sort_keys=True).split("\n")
        rest = {name: self.told[name] for name in ("title", "outputSchema", "annotations") if name in self.told}
        more = [f"{name}: {json.dumps(value, ensure_ascii=False, sort_keys=True)}" for name, value in rest.items()]
        described = re.split(r"\n|(?<=[.!?]) ", str(self.told.get("description", "")))
        return [*(f"| {each}" for each in described), *more, "arguments:", *schema]


@dataclass(frozen=True, slots=True)
class ToolForm:
    """The arguments of a tool as one flat object. `fault`: why no cycle can fill them; a person's message still can.

    `mirrored` has the name of the header that an argument is repeated in, by the argument.
    """

    parameters: Mapping[str, Any]
    fault: str = ""
    mirrored: Mapping[str, str] = field(default_factory=dict)


def read_tools(told: Iterable[Frame]) -> dict[str, ListedTool]:
    """Return the tools of a list by name. Raises: LookUpFailed: two have one name, or one is no tool, or too large."""
    found: dict[str, ListedTool] = {}
    for each in told:
        kept = {name: each[name] for name in PINNED if each.get(name) is not None}
        name, schema = kept.get("name"), kept.get("inputSchema")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(schema, dict):
            raise LookUpFailed(f"it lists a tool without a plain name or a schema: {str(name)[:80]!r}")
        if name in found:
            raise LookUpFailed(f"it lists two tools that are named {name!r}", remedy="None of its tools is used.")
        try:
            brief_checks.plain_json(kept, MOST_PINNED)
        except ValueError as error:
            raise LookUpFailed(f"its tool {name!r} cannot be pinned: {error}") from None
        found[name] = ListedTool(kept)
    return found


def read_form(schema: Mapping[str, Any]) -> ToolForm:
    """Return the flat object of a schema: texts, numbers, truth values and choices, without any of its prose."""
    told = schema.get("properties")
    given: Mapping[str, Any] = told if isinstance(told, dict) else {}
    required = [each for each in schema.get("required") or () if isinstance(each, str)]
    found = {name: _flat(each) for name, each in given.items() if _ARGUMENT.fullmatch(name)}
    flat = {name: each for name, each in found.items() if each is not None}
    kept = dict(sorted(flat.items(), key=lambda each: each[0] not in required)[:PARAMETERS_LIMIT])
    missing = next((name for name in required if name not in kept), None)
    fault = "" if missing is None else f"its argument {missing[:40]!r} is no text, number or truth value"
    marks = {
        name: each["x-mcp-header"] for name, each in given.items() if isinstance(each, dict) and "x-mcp-header" in each
    }
    names = [str(each).lower() for each in marks.values()]
    if any(not isinstance(each, str) or not _HEADER.fullmatch(each) for each in marks.values()) or any(
        names.count(each) > 1 or given[name].get("type") not in _TYPES for name, each in zip(marks, names, strict=True)
    ):
        return ToolForm(_object({}, []), "it marks an argument for a header that cannot be")
    parameters = _object(kept, [each for each in required if each in kept])
    try:
        brief_checks.check(parameters)
    except ValueError as error:
        fault = fault or f"its arguments cannot be checked: {error}"
    return ToolForm(parameters, fault, marks)


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _flat(schema: object) -> dict[str, Any] | None:
    """Return the schema of a plain argument without its prose; None: it is none. A list of types loses null."""
    if not isinstance(schema, dict):
        return None
    either = [each for each in schema.get("anyOf") or () if isinstance(each, dict) and each.get("type") != "null"]
    if len(either) == 1:
        schema = either[0]
    kinds = schema.get("type")
    kinds = [each for each in kinds if each != "null"] if isinstance(kinds, list) else [kinds]
    if len(kinds) != 1 or kinds[0] not in _TYPES:
        return None
    found = {"type": kinds[0], **{name: schema[name] for name in _KEPT if name in schema}}
    if schema.get("format") in _FORMATS:
        found["format"] = schema["format"]
    choices = schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= 32 and all(_CHOICE.fullmatch(str(each)) for each in choices):
        found["enum"] = choices
    return found


def _words(name: str) -> str:
    """Return the words of a name: `getHigh_tide` is `get high tide`."""
    return re.sub(r"[^a-z0-9]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()).strip()


def describe_change(server: str, name: str, before: ListedTool | None, now: ListedTool, *, reads: bool) -> list[str]:
    """Return the lines in which a person is asked about a tool: all of a new one, the difference of a changed one."""
    does = "it only reads, as you said" if reads else "each call asks before"
    head = [f"tool     {server}.{name}, {'new' if before is None else 'changed since it was approved'}; {does}"]
    head.append(f"shown as {now.as_tool(server, reads=reads).purpose}")
    if now.form.fault:
        head.append(f"by hand  only your own messages can call it: {now.form.fault}")
    if before is None:
        return [*head, *now.lines(), ""]
    differing = difflib.unified_diff(before.lines(), now.lines(), "approved", "now", lineterm="", n=1)
    return [*head, *differing, ""]
