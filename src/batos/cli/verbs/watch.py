"""Watching a server: every change of every mission as it happens, until somebody stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, cast

from batos.cli.doors.door import Opened
from batos.cli.render.mission import route_text
from batos.cli.verb_options import VerbCall
from batos.protocol.errors import NoServer
from batos.protocol.mission_documents import RouteDocument
from batos.terminal.console import Console

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
