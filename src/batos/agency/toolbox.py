"""Tools as a cycle sees them: what each is for, what it takes, and what comes back, wherever it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from batos.protocol.errors import Refused

#: Where a tool comes from: a granted look-up, a function of the program that asks, a file of the home's `tools/`, an
#: object that the mind made of a description, a server of the Model Context Protocol, or who asks and calls it later.
ToolKind: TypeAlias = Literal["look_up", "program", "file", "made", "mcp", "asker"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a mission may use.

    `name` is unique in its toolbox (`wiki.search_`); `purpose` is one line; `parameters` is the JSON schema of one flat
    object. `reads`: it changes nothing in the world. `local`: what it is asked does not leave this machine.
    """

    name: str
    purpose: str
    parameters: Mapping[str, object]
    kind: ToolKind
    reads: bool = True
    local: bool = False
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolText:
    """A text that a tool brought: it becomes a document in evidence, with its trust, and is never an instruction.

    `source` names where it is from (an address, a path, a tool), `at` when it was read (ISO 8601 UTC). Of a hit of a
    search the text is a snippet, which is never evidence: a tool that takes an `address` fetches its `source`.
    """

    title: str
    text: str
    source: str
    at: str
    trust: Literal["tool", "external"] = "external"
    is_hit: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call: texts, or the failure in one line of at most 300 characters."""

    texts: Sequence[ToolText] = ()
    failure: str = ""


class Toolbox(Protocol):
    """The tools of one mission."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools that this mission may use, in the order of their names."""
        ...

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return what a tool brings at a step's path: from the journal where the call was made there before.

        Raises: Refused: the call needs a person's yes, or goes beyond its grant.
        """
        ...


class JoinedTools:
    """The tools of several toolboxes as one; of two with one name the first counts."""

    def __init__(self, toolboxes: Iterable[Toolbox]) -> None:
        self._owners: dict[str, Toolbox] = {}
        self._tools: dict[str, Tool] = {}
        for toolbox in toolboxes:
            for tool in toolbox.tools():
                self._owners.setdefault(tool.name, toolbox)
                self._tools.setdefault(tool.name, tool)

    def tools(self) -> Sequence[Tool]:
        """Return the tools of all, in the order of their names."""
        return [self._tools[name] for name in sorted(self._tools)]

    async def call(self, name: str, arguments: Mapping[str, object], path: str) -> ToolResult:
        """Return what the tool of that name brings. Raises: Refused: as its own toolbox does, or there is none."""
        if name not in self._owners:
            raise Refused(f"there is no tool {name!r}", field="name", remedy="`batos tools` lists the tools.")
        return await self._owners[name].call(name, arguments, path)
