"""The choice of a door: to the home's server, which is started where none runs, or to the image in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from batos.cli.doors.door import Door, Opened, open_server_door
from batos.cli.imports import pause_collector
from batos.cli.verb_options import VerbCall, run
from batos.client import addresses, server_life
from batos.client.addresses import ServerRecord
from batos.config import Settings
from batos.protocol.errors import BatosError, ImageBusy, NoServer
from batos.version import __version__

if TYPE_CHECKING:
    from batos.client.line import Line

#: Seconds between two tries to open an image that another process has open. The image is held by a lock of the
#: system, which tells nobody when it is free: only another try shows it.
_PAUSE: Final = 0.1


def open_door(called: VerbCall, *, reads: bool = False, required: bool = False) -> Opened:
    """Open the door that a verb is to use. Call this before the loop runs: it imports, which would block the loop.

    The setting `server` names a server, or else the note that a running server leaves in the home; `--image` goes past
    the home's server, which may hold another image. Where there is no server, a verb that only `reads` looks at the
    image, also beside a process that has it open; another opens it, and waits a moment for such a process. Raises:
    NoServer: a server is `required` and there is none.
    """
    if (server := chosen_server(called, reads=reads)) is not None:
        return server
    if required:
        raise NoServer(f"no server of {called.settings.home} runs")
    called.ending.begin_log()
    with pause_collector():
        from batos.cli.doors.in_process import open_here, open_to_read
    opened = _open_patiently(called, open_here)
    return open_to_read(called.settings, opened) if reads else opened


def chosen_server(called: VerbCall, *, reads: bool = False) -> Opened | None:
    """Return the door to the server that a verb is to use, as `open_door` chooses it; None: none is to be asked."""
    settings = called.settings
    if settings.named_server or (is_ours(called) and _is_served(called, reads=reads)):
        return open_server_door(_line(settings))
    left = addresses.read_record(settings.home)
    if left is not None and addresses.running_server(settings.home) is None and not called.quiet:
        called.console.say(f"The server (process {left.pid}) has ended abruptly; `batos serve` starts one.", dim=True)
    return None


@contextmanager
def image_alone(called: VerbCall) -> Iterator[None]:
    """Let a verb have the image alone: the home's server closes it meanwhile, and opens it again afterwards."""
    from batos.image.storage import file_of, holder

    file = file_of(called.settings.image_uri)
    with ExitStack() as lending:
        if is_ours(called):
            closing = server_life.image_alone(called.settings.home, lambda: bool(file and holder(file)))
            with suppress(OSError):  # a home that cannot be written has no server
                lending.enter_context(closing)
        yield


def is_ours(called: VerbCall) -> bool:
    """Test if the image is the one that the home's server would have, and that server is to be asked."""
    given = {called.loaded.sources.get(name) for name in ("image", "journal")}
    return called.settings.server != "here" and "flag" not in given


def _is_served(called: VerbCall, *, reads: bool) -> bool:
    """Test if the home's server runs, which is started where that can be; a verb that only `reads` makes no image.

    An error that keeps it from starting is not raised: whatever the verb then does in its own process raises its own.
    """
    settings = called.settings
    if not server_life.may_start(settings, os.environ) or (reads and not _has_image(settings)):
        return addresses.running_server(settings.home) is not None
    with suppress(BatosError, OSError):
        _settle(called, server_life.ensure(settings.home))
        return True
    return False


def _has_image(settings: Settings) -> bool:
    return bool(settings.image) or (settings.home / "live_image.fs").exists()


def _settle(called: VerbCall, running: ServerRecord) -> None:
    """Replace a server of another version, or one that a verb started with other settings; one at work is only told."""
    settings, own = called.settings, running.by == "verb"
    if running.batos == __version__ and not (own and running.settings != server_life.digest(settings)):
        return
    if own and not run(_has_work(settings)):
        server_life.stop(settings.home)
        server_life.ensure(settings.home)
        return
    what = "other settings" if running.batos == __version__ else f"version {running.batos}"
    then = "`batos stop` ends it, and the next verb starts one anew" if own else "restart it to have them agree"
    called.note(f"The server (process {running.pid}) has {what}, and is at work: {then}.")


async def _has_work(settings: Settings) -> bool:
    """Test if missions, methods or an erasure wait at the home's server."""
    async with open_server_door(_line(settings)) as door:
        found = await door.call("status")
    missions = found.get("missions") or {}
    waits = any(missions.get(word) for word in ("queued", "running", "waiting"))
    return bool(waits or (found.get("learning") or {}).get("waiting") or found.get("erasure"))


@asynccontextmanager
async def _open_patiently(called: VerbCall, open_here: Callable[[Settings], Opened]) -> AsyncIterator[Door]:
    """Open the image as soon as nobody else has it, or the door to the server if one has just started."""
    async with AsyncExitStack() as stack:
        yield await _first(stack, called, open_here)


async def _first(stack: AsyncExitStack, called: VerbCall, open_here: Callable[[Settings], Opened]) -> Door:
    settings, loop = called.settings, asyncio.get_running_loop()
    until: float | None = None
    while True:
        try:
            return await stack.enter_async_context(open_here(settings))
        except ImageBusy as busy:
            if is_ours(called) and addresses.running_server(settings.home) is not None:
                line = await asyncio.to_thread(_line, settings)  # it imports, which blocks
                return await stack.enter_async_context(open_server_door(line))
            if until is None:
                until = loop.time() + settings.busy_seconds
                if settings.busy_seconds:
                    called.note(f"Waiting for {busy.owner}, which has the image; at most {settings.busy_seconds:g} s.")
            if loop.time() >= until:
                raise
        await asyncio.sleep(_PAUSE)


def _line(settings: Settings) -> Line:
    """Return the line to the server that the settings name, or else to the home's."""
    with pause_collector():  # where no server runs, nothing of sockets is loaded
        from batos.client.line import line_to
    return line_to(settings.home, server=settings.named_server or None)
