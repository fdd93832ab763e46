"""The granted look-ups of a mission as tools that a cycle may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from batos.agency.look_ups.granted import LookingMission, LookUps, order_of, stays_here
from batos.agency.records import look_up_records
from batos.agency.toolbox import Tool, ToolResult, ToolText
from batos.image.ids import iso
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import LookUpFailed, Refused

#: The most characters of a failure that is told.
_TOLD: Final = 300
#: The argument of each selector, with what it is.
_ARGUMENTS: Final[Mapping[str, tuple[str, str]]] = {
    "search_": ("query", "the words to look for"),
    "fetch_": ("address", "the address of the page"),
    "read_": ("address", "the path of the file"),
    "list_": ("place", "a folder or an address; empty for all"),
}
#: The words for each kind in a purpose.
_SOURCES: Final = {
    "search": "what the user has given to remember", "folder": "the files of a folder of the user",
    "kiwix": "an offline encyclopedia", "wikipedia": "Wikipedia, the encyclopedia", "searxng": "the web",
    "fetch": "pages",
}  # fmt: skip
_PURPOSES: Final = {"search_": "Search", "fetch_": "Read a page of", "read_": "Read a file of", "list_": "List"}


@dataclass(frozen=True, slots=True)
class LookUpTools:
    """A toolbox of what a mission may look up in."""

    asking: LookingMission
    look_ups: LookUps

    def tools(self) -> Sequence[Tool]:
        """Return a tool for each selector of each grant, in the order of their names."""
        found = [
            _tool_of(each, selector) for each in self.asking.usable() for selector in look_up_records.selectors_of(each)
        ]
        return sorted(found, key=lambda tool: tool.name)

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return what a look-up brings at a step's path: hits of a search, or the text of a page or a file.

        Raises: Refused: it is not granted, its grant is used up or has expired, or something private would leave.
        """
        grant, _, selector = name.partition(".")
        capability = next((each for each in self.asking.usable() if own_slots(each)["name"] == grant), None)
        if capability is None or selector not in _ARGUMENTS:
            raise Refused(f"there is no tool {name!r}", field="name", remedy="`batos grants list` lists look-ups.")
        given = arguments.get(_ARGUMENTS[selector][0], "")
        try:
            order = order_of(selector, [given], by_person=False)
            found = cast("dict[str, Any]", await self.look_ups.answer(self.asking, capability, order, path))
        except LookUpFailed as error:
            return ToolResult(failure=error.message[:_TOLD])
        if "document" in found:
            told = found["document"]
            is_web = "://" in told["address"]
            source = ", ".join(filter(None, (told["address"] if is_web else "", told["source"])))
            return ToolResult([ToolText(told["title"], told["text"], source, told["at"])])
        now = iso(self.look_ups.clock())
        hits = [ToolText(each["title"], each["snippet"], each["address"], now, is_hit=True) for each in found["hits"]]
        return ToolResult(hits, "" if hits else f"{grant} found nothing for {str(given)[:80]!r}")


def _tool_of(capability: UvmObject, selector: str) -> Tool:
    kind, slots = look_up_records.kind_of(capability), own_slots(capability)
    where = (
        f"{_SOURCES[kind]} ({slots['target']})"
        if kind == "fetch" and slots["target"] != look_up_records.ANY
        else _SOURCES[kind]
    )
    argument, meaning = _ARGUMENTS[selector]
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning}},
        "required": [argument],
        "additionalProperties": False,
    }
    purpose = f"{_PURPOSES[selector]} {where}"
    return Tool(f"{slots['name']}.{selector}", purpose, parameters, "look_up", local=stays_here(capability))
