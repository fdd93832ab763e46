"""The verbs that read missions, or follow them as they change: missions, show, why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, cast

import click

from batos.cli.declared import ask, ask_for, take, tell
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.render.mission import route_text
from batos.cli.render.mission_record import find_calls, history_text, mission_text, prompts_text, tree_text
from batos.cli.typed_names import tell_moment
from batos.cli.verb_options import VerbCall, run
from batos.protocol.errors import BriefError, NoServer
from batos.protocol.mission_documents import MissionDocument, MissionLineDocument, MissionList, RouteDocument
from batos.terminal.console import Console
from batos.terminal.layout import columns
from batos.verbs.mission_verbs import MISSIONS, SHOW, TURNS, WHY

#: The topics that are watched: all that happens to missions.
TOPICS = ("mission.",)
#: A mission of which nothing more is told.
_OVER = frozenset({"done", "failed", "cancelled", "parked", "undone"})


async def follow(called: VerbCall, opened: Opened, args: Mapping[str, object]) -> int:
    """Tell the newest missions, the newest last, then every change. Only Ctrl-C ends it, or NoServer.

    `args` are those of the verb `missions`.
    """
    async with opened as way:
        if way.watch is None:
            raise NoServer("there is no server to follow")
        watcher = Watcher(called.console)
        heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        # Watching begins before the list is asked for, so that what happens meanwhile is told as well.
        listening = asyncio.ensure_future(_listen(way.watch(TOPICS), heard))
        try:
            watcher.begin((await way.call("missions", args))["missions"])
            while True:
                coming = asyncio.ensure_future(heard.get())
                await asyncio.wait({coming, listening}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    await listening
                    raise NoServer("the server has stopped")
                watcher.print_notice(coming.result())
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _listen(notices: AsyncIterator[dict[str, Any]], heard: asyncio.Queue[dict[str, Any]]) -> None:
    async for notice in notices:
        heard.put_nowait(notice)


class Watcher:
    """Tells notices: to people a line each, to programs as they came; a gap in their numbers is told."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._seen: dict[str, int] = {}

    def begin(self, lines: list[dict[str, Any]]) -> None:
        """Tell the missions that were there before."""
        if self._console.as_json:
            self._console.event("missions", {"missions": lines})
            return
        for line in reversed(lines):
            self._line(line["at"], line["id"], f"{line['status']}: {line['text']}")

    def print_notice(self, notice: Mapping[str, Any]) -> None:
        """Tell a notice of a mission."""
        mission, number = str(notice["mission"]), int(notice["seq"])
        lost = number - self._seen.get(mission, number - 1) - 1
        if notice["event"] == "mission.status" and notice["status"] in _OVER:
            self._seen.pop(mission, None)
        else:
            self._seen[mission] = number
        if self._console.as_json:
            self._console.event(str(notice["event"]), {key: value for key, value in notice.items() if key != "event"})
            return
        if lost > 0:
            self._console.say(f"{lost} events of {mission} were lost, because they came faster than they were read")
        told = _notice_text(notice)
        if told:
            self._line(notice["at"], mission, told)

    def _line(self, at: str, mission: str, what: str) -> None:
        moment = datetime.fromisoformat(at).astimezone()
        self._console.write(f"{moment:%H:%M:%S}  {mission}  {what}")


def _notice_text(notice: Mapping[str, Any]) -> str:
    """Write a notice for a person; nothing for a notice that says the same again."""
    event = notice["event"]
    if event == "mission.status":
        reason = notice.get("reason")
        return f"{notice['status']}: {reason['message']}" if reason else str(notice["status"])
    if event == "mission.routed":
        return route_text(cast("RouteDocument", notice))
    if event == "mission.state":
        path = notice.get("path")
        return f"{f'{path} ' if path else ''}{notice['state']}"
    if event == "mission.accepted":
        return f"accepted from {notice.get('user', 'somebody')}"
    if event == "mission.retracted":
        protocol = "/protocol/" in str(notice.get("path"))
        return "a key protocol goes over the answer" if protocol else "revised: the gate found a fault"
    return ""


#: The holder of the image where a server has it.
_SERVER = "a server"


@take(MISSIONS)
@click.option("--mine", is_flag=True, help="Only those that you asked.")
@click.option("--follow", "-f", "following", is_flag=True, help="Also print every change as it happens, until Ctrl-C.")
def missions(called: VerbCall, given: Mapping[str, object], mine: bool, following: bool) -> int:
    """List missions, or follow them."""
    args = {**given, "user": called.settings.asker} if mine else given
    if following:
        return run(follow(called, open_door(called, required=True), args))
    found, owner = run(_missions(open_door(called, reads=True), args))
    tell(called, MISSIONS, MissionList(missions=found))
    if any(each["status"] in ("queued", "running") for each in found):
        if not owner:  # nobody works on these
            told = "No server runs: what is queued or running there waits for `batos resume` or `batos serve`."
            called.console.say(told)
        elif owner != _SERVER:
            called.note(f"The image is {owner}'s; what it does not run waits for `batos resume` or `batos serve`.")
    return 0


async def _missions(opened: Opened, args: Mapping[str, object]) -> tuple[list[MissionLineDocument], str]:
    """Return the missions, and who has the image: a server, a process, or "" for nobody."""
    async with opened as way:
        return (await ask(way, MISSIONS, args))["missions"], _SERVER if way.served else way.holder


@take(SHOW)
@click.option("--call", metavar="NAME", help="Only the prompts and answers of calls with NAME in path or method.")
@click.option("--voices", is_flag=True, help="Each part of the answer.")
@click.option("--start", type=int, default=1, help="Of a conversation: the first turn; negative counts from the end.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="Of a conversation: most turns in the list.")
def show(called: VerbCall, given: dict[str, object], call: str | None, voices: bool, **page: Any) -> int:
    """Show a mission, or the turns of a conversation."""
    prompts = given.pop("prompts", False)
    if str(given["mission"]).startswith("c-"):
        place = {"conversation": given.pop("mission")}
        turns = ask_for(called, TURNS, {**given, **place, **page})
        called.answer(turns, history_text)
        return 0
    # People are shown a line a call in any case.
    whole = prompts or call is not None or not called.console.as_json
    found, served = run(_show(open_door(called, reads=True), {**given, "prompts": whole}))
    tell_moment(called, found)
    if call is not None:
        found = {**found, "prompts": find_calls(found["prompts"], call)}
    focus = found.get("provenance", {}).get("focus", ())

    def text(told: MissionDocument) -> str:
        if call is not None:
            return prompts_text(told["prompts"], focus).lstrip("\n")
        record = mission_text(told, voices=voices, served=served)
        return f"{record}\n{prompts_text(told['prompts'], focus)}" if prompts else record

    called.answer(found, text)
    return 0


async def _show(opened: Opened, args: Mapping[str, object]) -> tuple[MissionDocument, bool]:
    async with opened as way:
        found = await ask(way, SHOW, args)
        return found, way.served or "as_of" in found or await way.attends(found["id"])


@take(WHY)
@click.option("--whole", is_flag=True, help="The whole tree, however long it is.")
def why(called: VerbCall, given: dict[str, object], whole: bool) -> int:
    """Show the tree as wide as the terminal is."""
    given["what"] = str(given["what"]).strip()
    if not given["what"]:
        raise BriefError("it is empty", field="what", remedy="Quote a sentence, or name a mission or OBJECT.SLOT.")
    found, width = ask_for(called, WHY, given), columns(called.console.out) or 80
    called.answer(found, lambda told: tree_text(told, width, whole=whole or called.verbose))
    return 0
