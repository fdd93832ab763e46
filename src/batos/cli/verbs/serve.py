"""The verb `serve`: it holds the image open for every client of its home until it is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import click
import structlog

from batos import __version__
from batos.cli.verb_options import VerbCall, common, run
from batos.client.wire import server_file
from batos.client.wire.addresses import Address, parse_listening
from batos.client.wire.keys import Keyring
from batos.client.wire.server_file import ServerRecord
from batos.config import Settings
from batos.events import Events
from batos.image.ids import iso, utc_now
from batos.protocol.errors import ImageBusy, Refused
from batos.server.dispatch import erasing
from batos.server.dispatch.background_genesis import BackgroundGenesis
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Places, Server
from batos.uvm import UVM, Seams, open_uvm

_log = structlog.get_logger("batos")


@click.command()
@click.option("--bind", metavar="ADDRESS", help="The address for requests; beyond loopback clients need a key.")
@click.option("--events", metavar="ADDRESS", help="The address for events.")
@common
def serve(called: VerbCall) -> int:
    """Hold the image open, run missions and answer clients, until Ctrl-C.

    Running missions then go back to the queue and continue at the next start; a second Ctrl-C stops at once. Clients on
    this machine find the server by its home; `batos keys new NAME` makes a key for one on another machine.
    """
    return run(_serve(called))


async def _serve(called: VerbCall) -> int:
    # Where nobody has named a port another one does: clients find the server by the note in its home.
    unasked = frozenset(name for name in ("bind", "events") if called.loaded.sources.get(name) == "default")
    async with open_server(called.settings, unasked=unasked) as (uvm, places):
        _tell(called, places)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()  # it was told to stop, and it does so in order
        called.console.say("Stopping: running missions go back to the queue. A second signal stops at once.")
        await uvm.workers.stop()
    _log.info("server stopped")
    return 0


@asynccontextmanager
async def open_server(
    settings: Settings,
    seams: Seams | None = None,
    told: Events | None = None,
    unasked: Collection[str] = (),
) -> AsyncIterator[tuple[UVM, Places]]:
    """Start a server of the settings' home, which begins what an earlier one left, and listens for clients.

    Of the addresses that nobody asked for, `bind` or `events`, a free port is taken where the usual one is not. Raises:
    ConfigError: it cannot listen where the settings say. ImageBusy: the home has a server, or its image an owner.
    """
    home = settings.home
    bind = replace(parse_listening(settings.bind, "bind"), may_be_another="bind" in unasked)
    events = replace(parse_listening(settings.events, "events"), may_be_another="events" in unasked)
    other = server_file.running_server(home)
    if other is not None:
        remedy = "It serves this home already: ask it, as in `batos ask`, or stop it."
        raise ImageBusy(str(home), f"the server of process {other.pid}", remedy=remedy)
    ring = Keyring(home)
    _make_all(ring)
    async with open_uvm(settings, told or Events(log=True), seams) as uvm:
        left = await uvm.missions.recover()
        uploads = Uploads(home / "uploads", settings.attachment_bytes)
        await uploads.close()  # what a process that was killed has left
        background_genesis = BackgroundGenesis(uvm) if settings.genesis == "auto" else None
        dispatcher = Dispatcher(uvm, uploads, background_genesis=background_genesis)
        uvm.packer.keep_packed()
        async with Server(dispatcher, ring).serving(bind, events) as places:
            mine = _note(places)
            about = _about(settings, mine)
            dispatcher.announce(about)
            await asyncio.to_thread(server_file.write, home, mine)
            try:
                _log.info("server started", left_behind=len(left), **about)
                await go_on(uvm, left)
                uvm.sharing.take_up()
                _give_vectors(uvm)
                async with _begin_genesis(background_genesis), _beside(erasing.keep_finishing(uvm)):
                    yield uvm, places
            finally:
                server_file.remove(home, mine)
                await uploads.close()


@asynccontextmanager
async def _begin_genesis(background_genesis: BackgroundGenesis | None) -> AsyncIterator[None]:
    """Let the genesis of an empty image run beside what is served, if there is to be one."""
    if background_genesis is None:
        yield
        return
    async with _beside(background_genesis.run()):
        yield


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something run beside what is served; at the end it is cancelled."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _give_vectors(uvm: UVM) -> None:
    """Give vectors to remembered parts that have none: now, and after missions if the daemon was away."""

    signals, wake = uvm.image.signals, uvm.backfill.job.wake
    signals.answered.call(lambda *_mission: uvm.backfill.wake_again())
    signals.remembered.call(wake)
    signals.published.call(wake)
    wake()


async def go_on(uvm: UVM, left: Sequence[str]) -> None:
    """Begin what an earlier process left; what a client has ended or paused since then stays so."""
    for mission in left:
        with suppress(Refused):
            await uvm.missions.begin(mission)


def _make_all(ring: Keyring) -> None:
    """Make what every client will need, at the first start."""
    ring.token()
    ring.server()
    ring.own()


def _note(places: Places) -> ServerRecord:
    pid = os.getpid()
    return ServerRecord(
        pid=pid,
        born=server_file.birth_time(pid) or "",
        started=iso(utc_now()),
        bind=places.bind.near,
        events=places.events.near,
        bind_by=places.bind_by,
        events_by=places.events_by,
        batos=__version__,
    )


def _about(settings: Settings, mine: ServerRecord) -> dict[str, Any]:
    return {
        "pid": mine.pid,
        "started": mine.started,
        "home": str(settings.home),
        "bind": mine.bind,
        "events": mine.events,
        "user": settings.asker,
    }


def _tell(called: VerbCall, places: Places) -> None:
    home = called.settings.home
    if called.console.as_json:
        called.console.document(
            {
                "pid": os.getpid(),
                "home": str(home),
                "bind": str(places.bind),
                "events": str(places.events),
                "bind_by": places.bind_by,
                "events_by": places.events_by,
            }
        )
        return
    if called.quiet:
        return
    called.console.write(f"serving {home}")
    called.console.write(f"requests at {_address_text(places.bind, places.bind_by)}")
    called.console.write(f"events at   {_address_text(places.events, places.events_by)}")
    called.console.say("Clients of this home find it by themselves; see `batos token` and `batos keys` for others.")
    called.console.say("Ctrl-C stops it: running missions go back to the queue.")


def _address_text(address: Address, by: str) -> str:
    return f"{address} ({'with the token of the home' if by == 'plain' else 'with a key'})"
