"""The door of a verb: to the server that holds the image, or to the image itself, opened in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from batos.cli.doors.idle_door import IdleDoor
from batos.cli.doors.starting import is_ours, is_served
from batos.cli.imports import pause_collector
from batos.cli.verb_options import VerbCall
from batos.client.wire import server_file
from batos.client.wire.pending import OnAcknowledged, OnEvent
from batos.protocol.brief import File
from batos.protocol.errors import ImageBusy, NoServer
from batos.protocol.method_documents import LateReport

if TYPE_CHECKING:
    from batos.client.asynchronous import AsyncClient
    from batos.config import Settings


class Door(Protocol):
    """A way to the mind: through each one the same calls give the same results, events and errors."""

    @property
    def served(self) -> bool:
        """Say whether a server stands behind it, which goes on with missions when this process ends."""
        ...

    @property
    def holder(self) -> str:
        """Return the process that has the image open, if this one only looks at it; else ""."""
        ...

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> dict[str, Any]:
        """Ask one thing (docs/protocol.md has the verbs); raises the BatosError that came of it."""
        ...

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Hand over the bytes of files; gives the references that a brief carries."""
        ...

    async def attends(self, mission: str) -> bool:
        """Say whether somebody is at work on a mission that has not ended, or will be without being asked."""
        ...

    async def left_behind(self) -> list[str]:
        """Settle and queue the missions that nobody runs, and return them; none where a server runs them."""
        ...

    async def begin(self, mission: str) -> None:
        """Run a queued mission in this process; do nothing where a server runs it."""
        ...

    async def start_due(self, mission: str) -> str | None:
        """Begin in this process what an answered turn made due, and return its id; a server does so by itself."""
        ...

    async def learn(self, mission: str) -> LateReport:
        """Make methods in this process now that the mission is answered: {made, left, new}; a server does it itself.

        `new` is how many of those that are left this mission was the first to do without.
        """
        ...

    async def keep_learning(self) -> None:
        """Begin to make methods in this process while nobody asks anything; a server does so by itself."""
        ...


#: A door that is opened by `async with`, inside the loop.
Opened: TypeAlias = AbstractAsyncContextManager[Door]
#: The choice of asking a server: where one runs, always, or not at all.
Remote: TypeAlias = Literal["if_running", "required", "never"]
#: Seconds between two tries to open an image that another process has open. The image is held by a lock of the
#: system, which tells nobody when it is free: only another try shows it.
_PAUSE: Final = 0.1


def open_door(called: VerbCall, remote: Remote = "if_running", *, reads: bool = False) -> Opened:
    """Open the door that a verb is to use. Call this before the loop runs: it imports, which would block the loop.

    The setting `server` names a server, or else the note that a running server leaves in the home; `--image` goes past
    the home's server, which may hold another image. Where there is no server, a verb that only `reads` looks at the
    image, also beside a process that has it open; another opens it, and waits a moment for such a process. Raises:
    NoServer: a server is required and there is none.
    """
    settings = called.settings
    if remote != "never" and (server := chosen_server(called, reads=reads)) is not None:
        return server
    if remote == "required":
        raise NoServer(f"no server of {settings.home} runs")
    called.ending.begin_log()
    with pause_collector():
        from batos.cli.doors.local import open_local

        patient = _patiently(called, lambda: open_local(settings), ours=remote != "never" and is_ours(called))
        if not reads:
            return patient
        from batos.cli.doors import read_only_door
    return read_only_door.open_read_only_door(settings, patient)


def chosen_server(called: VerbCall, *, reads: bool = False) -> Opened | None:
    """Return the door to the server that a verb is to use, as `door` chooses it; None where none is to be asked."""
    settings = called.settings
    if settings.named_server or (is_ours(called) and is_served(called, reads=reads)):
        return open_server_door(_client(settings))
    _tell_stale(called)
    return None


@asynccontextmanager
async def _patiently(called: VerbCall, opened: Callable[[], Opened], *, ours: bool) -> AsyncIterator[Door]:
    async with AsyncExitStack() as stack:
        yield await _first(stack, called, opened, ours=ours)


async def _first(stack: AsyncExitStack, called: VerbCall, opened: Callable[[], Opened], *, ours: bool) -> Door:
    """Open the image as soon as nobody else has it, or the server if one has just started."""
    settings, loop = called.settings, asyncio.get_running_loop()
    until: float | None = None
    while True:
        try:
            return await stack.enter_async_context(opened())
        except ImageBusy as busy:
            if ours and server_file.running_server(settings.home) is not None:
                client = await asyncio.to_thread(_client, settings)  # it imports, which blocks
                return await stack.enter_async_context(open_server_door(client))
            now = loop.time()
            if until is None:
                until = now + settings.busy_seconds
                _tell_waiting(called, busy.owner)
            if now >= until:
                raise
        await asyncio.sleep(_PAUSE)


def _client(settings: Settings) -> AsyncClient:
    """Make a client of the server that the settings name, or else of the home's."""
    with pause_collector():  # where no server runs, nothing of sockets is loaded
        from batos.client.asynchronous import AsyncClient
    return AsyncClient(settings.home, server=settings.named_server or None)


def _tell_waiting(called: VerbCall, owner: str) -> None:
    seconds = called.settings.busy_seconds
    if seconds:
        called.note(f"Waiting for {owner}, which has the image; at most {seconds:g} s.")


def _tell_stale(called: VerbCall) -> None:
    """Tell that a server which left its note has ended."""
    left = server_file.read(called.settings.home)
    if left is not None and not called.quiet:
        called.console.say(f"The server (process {left.pid}) has ended abruptly; `batos serve` starts one.", dim=True)


@asynccontextmanager
async def open_server_door(client: AsyncClient) -> AsyncIterator[Door]:
    """Open the door to a server."""
    async with client:
        yield ServerDoor(client)


@dataclass(frozen=True, slots=True)
class ServerDoor(IdleDoor):
    """A door to a server, which sees by itself to what was left, is due and is to be learnt."""

    client: AsyncClient
    served: bool = True
    holder: str = ""

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> dict[str, Any]:
        """Ask the server one thing."""
        return await self.client.call(verb, args, on_event, on_acknowledged)

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Hand the bytes of files over to the server."""
        return await self.client.attach(files)

    async def attends(self, mission: str) -> bool:
        """Return True: the server attends to it."""
        return True

    async def begin(self, mission: str) -> None:
        """Do nothing: the server began it."""
