"""An erasure that is followed to its end, also where the server is lost meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.cli.doors.door import Opened
from batos.protocol.errors import NoServer, NotFound
from batos.terminal.console import Console

_GONE: Final = "The server is gone; the next one finishes what was begun of the erasure, and this command waits for it."
_UNFINISHED: Final = "Start one with `batos serve`: it finishes what was begun of the erasure."
_FINISHED: Final = (
    "The server that was lost may have begun to erase it, and the next one finished that: `batos doctor`."
)


async def erase(opened: Opened, args: Mapping[str, Any], console: Console) -> dict[str, Any]:
    """Erase what is named, say if the server is lost, and return what was erased.

    Raises: NoServer, NotFound: the remedy tells what became of an erasure whose server was lost.
    """
    lost: list[str] = []

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        if event == "connection.lost":
            lost.append(event)
            console.say(_GONE)
        elif event == "connection.restored":
            console.say("The server is back.")

    try:
        async with opened as way:
            return await way.call("erase", args, on_event)
    except NoServer as error:
        if lost:
            error.advise(_UNFINISHED)
        raise
    except NotFound as error:  # a client asks again, and the words are gone by then
        if lost:
            error.advise(_FINISHED)
        raise
