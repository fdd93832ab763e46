"""Tools that are lent to missions: what a program answers to a call, and the list of all tools with who wrote them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from batos.agency.callers import Callers
from batos.agency.file_tools import FOLDER, FileTools, ToolFile
from batos.agency.mcp import server_records
from batos.client.pending import OnEvent
from batos.image import roots
from batos.image.ownership import is_guest
from batos.image.roots import Root
from batos.missions.readings import Readings
from batos.protocol.errors import BriefError
from batos.protocol.lent_tools import AcceptedResult, CallReply, ToolList, WrittenToolLine
from batos.server.dispatch.handling import Handler, bind
from batos.verbs.method_verbs import TOOLS, ToolsArgs
from batos.verbs.mission_verbs import TOOL_RESULT, SubmitArgs, ToolResultArgs


def attach(callers: Callers, given: SubmitArgs, tell: OnEvent) -> AbstractContextManager[None]:
    """Let the program that asks make the calls of its mission while it waits, if it lends tools or decides about some.

    Raises: BriefError: it would not hear of them.
    """
    tools, caller = given.brief.get("tools"), given.brief.get("caller")
    if caller is None and (not tools or given.brief.get("tool_choice")):
        return callers.attach(None, tell)
    what = "" if isinstance(caller, str) else "`caller` names the program that runs them"
    what = what if given.follow else "a program runs them while it follows its mission"
    if what or given.as_of is not None:
        what = what or "a question to the past calls nothing"
        raise BriefError(f"tools: {what}", field="tools", remedy="Use `ask` of the Python client.")
    return callers.attach(str(caller), tell)


def changes(callers: Callers) -> Mapping[str, Handler]:
    """Return the function of the verb by which a program answers a call."""

    async def take(given: ToolResultArgs, *_told: object) -> AcceptedResult:
        reply = CallReply(outcome=given.outcome, text=given.text)
        return {"call": given.call, "late": not callers.answer(given.caller, given.call, reply)}

    return dict((bind(TOOL_RESULT, take),))


def reads(of: Readings, in_thread: Callable[..., Awaitable[Any]]) -> Mapping[str, Handler]:
    """Return the function of the verb that lists tools; `in_thread` runs what reads the image."""

    @cache
    def files() -> FileTools:
        return FileTools(of.settings.home / FOLDER)

    def list_tools(found: list[ToolFile], user: str | None) -> ToolList:
        with of.image.snapshot() as root:
            lent = [*_list_lent(root, user), *(line for each in found for line in _list_written(each))]
            lent += _list_served(root, user)
        return {"tools": of.lifecycle.tools(), "written": lent}

    async def answer(given: ToolsArgs, *_told: object) -> ToolList:
        found = [] if is_guest(given.user) else await files().list_files()
        told: ToolList = await in_thread(list_tools, found, given.user)
        return told

    return dict((bind(TOOLS, answer),))


def _list_lent(root: Root, user: str | None) -> Iterator[WrittenToolLine]:
    """Yield the functions that programs lend to missions (of a user's) that have not ended."""
    for mission in root[roots.UNFOLDED]:
        brief = roots.mission_record(root, mission).brief.value
        for each in brief.get("tools") or () if user in (None, brief["user"]) else ():
            yield WrittenToolLine(
                tool=each["name"], kind="program", what=each["purpose"], reads=each["reads"], by=brief["user"],
                place=mission, error="",
            )  # fmt: skip


def _list_served(root: Root, user: str | None) -> Iterator[WrittenToolLine]:
    """Yield the approved tools of the servers that were granted (to a user)."""
    for server in map(server_records.read_server, server_records.list_servers(root, user)):
        for each in (server_records.list_line(server, name) for name in sorted(server.pins)):
            yield WrittenToolLine(
                tool=each["tool"], kind="mcp", what=each["purpose"], reads=each["reads"], by=server.user,
                place=server.target, error=each["withdrawn"],
            )  # fmt: skip


def _list_written(file: ToolFile) -> Iterator[WrittenToolLine]:
    """Yield the tools of a file of the home; a broken one with its error."""
    line = WrittenToolLine(
        tool=file.path.name, kind="file", what="", reads=False, by="the home", place=str(file.path), error=file.error
    )
    for each in file.tools:
        yield {**line, "tool": each.name, "what": each.purpose, "reads": each.reads}
    if file.error:
        yield line
