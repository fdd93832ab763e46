"""What a verb speaks to: the server that holds the image, or the image itself, opened in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from batos.cognition.brief import File
from batos.errors import NoServer
from batos.front.client.asynchronous import AsyncClient
from batos.front.options import Called
from batos.front.wire import note
from batos.front.wire.calls import Acknowledged, Hear


class Door(Protocol):
    """A way to the mind: through each one the same calls give the same results, events and errors."""

    @property
    def served(self) -> bool:
        """Whether a server stands behind it, which goes on with missions when this process ends."""
        ...

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        hear: Hear | None = None,
        acknowledged: Acknowledged | None = None,
    ) -> dict[str, Any]:
        """Ask one thing (docs/protocol.md has the verbs); raises the BatosError that came of it."""
        ...

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Hand over the bytes of files; gives the references that a brief carries."""
        ...

    async def left_behind(self) -> list[str]:
        """The missions that nobody runs, settled and queued; none where a server runs them."""
        ...

    async def begin(self, mission: str) -> None:
        """Run a queued mission in this process; nothing where a server does."""
        ...

    async def afterwards(self, mission: str) -> str | None:
        """Begin in this process what an answered turn made due, and its id; a server sees to that by itself."""
        ...


#: A door that is opened by `async with`, inside the loop.
Opened: TypeAlias = AbstractAsyncContextManager[Door]
#: Whether a server is asked: where one runs, always, or not at all.
Remote: TypeAlias = Literal["if_running", "required", "never"]


def door(called: Called, remote: Remote = "if_running") -> Opened:
    """The door that a verb is to use. Call it before the loop runs: what it needs is imported now, not on the loop.

    The setting `server` names it, or else the note that a running server leaves in the home; `--image` goes past the
    home's server, which may hold another image. NoServer: one is required and there is none.
    """
    settings = called.settings
    if remote != "never":
        if settings.server:
            return through(AsyncClient(settings.home, server=settings.server))
        if called.loaded.sources.get("image") != "flag" and note.running(settings.home) is not None:
            return through(AsyncClient(settings.home))
        _tell_stale(called)
    if remote == "required":
        raise NoServer(f"no server of {settings.home} runs")
    from batos.front.doors.local import opened

    return opened(settings)


def _tell_stale(called: Called) -> None:
    """A note that an ended server left behind is no obstacle, and no secret."""
    left = note.read(called.settings.home)
    if left is not None and not called.quiet:
        called.console.say(f"The server of process {left.pid} has ended; its note is ignored.", dim=True)


@asynccontextmanager
async def through(client: AsyncClient) -> AsyncIterator[Door]:
    """The door to a server."""
    async with client:
        yield Served(client)


@dataclass(frozen=True, slots=True)
class Served:
    """A door to a server."""

    client: AsyncClient
    served: bool = True

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        hear: Hear | None = None,
        acknowledged: Acknowledged | None = None,
    ) -> dict[str, Any]:
        """As Door has it."""
        return await self.client.call(verb, args, hear, acknowledged)

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """As Door has it."""
        return await self.client.attach(files)

    async def left_behind(self) -> list[str]:
        """The server took up what was left when it started."""
        return []

    async def begin(self, mission: str) -> None:
        """The server began it."""

    async def afterwards(self, mission: str) -> None:
        """The server sees to it."""
