"""The home's server for a verb: it is started where there is none, and replaced where it is another than is wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from batos import __version__
from batos.cli.verb_options import VerbCall, run
from batos.client.wire import server_file, server_life
from batos.client.wire.server_file import ServerRecord
from batos.config import Settings
from batos.protocol.errors import BatosError


def is_served(called: VerbCall, *, reads: bool) -> bool:
    """Test if the home's server runs, which is started where that can be; a verb that only `reads` makes no image.

    An error that keeps it from starting is not raised: whatever the verb then does in its own process raises its own.
    """
    settings = called.settings
    if not server_life.may_start(settings, os.environ) or (reads and not _has_image(settings)):
        return server_file.running_server(settings.home) is not None
    with suppress(BatosError, OSError):
        _settle(called, server_life.ensure(settings.home))
        return True
    return False


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
    from batos.client.asynchronous import AsyncClient

    async with AsyncClient(settings.home) as client:
        found = await client.status()
    missions = found.get("missions") or {}
    waits = any(missions.get(word) for word in ("queued", "running", "waiting"))
    return bool(waits or (found.get("learning") or {}).get("waiting") or found.get("erasure"))
