"""The verbs `serve` and `stop`: the image is held open for every client of its home until it is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click
import structlog

from batos.agency.records import effect_records, schedule_records
from batos.cli import user_unit
from batos.cli.verb_options import VerbCall, common, run
from batos.client import addresses, server_life
from batos.client.addresses import Address, ServerRecord, parse_listening
from batos.client.keys import Keyring
from batos.client.server_life import HomeLock
from batos.config import Settings
from batos.events import Events
from batos.image import roots
from batos.image.ids import iso, utc_now
from batos.image.roots import Root
from batos.protocol.errors import ImageBusy, Refused
from batos.records import redaction
from batos.server.dispatch import erasing
from batos.server.dispatch.background_genesis import BackgroundGenesis
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Places, Server
from batos.uvm import UVM, Seams, open_uvm
from batos.version import __version__

if TYPE_CHECKING:
    from batos.server.http.http_door import HttpDoor

_log = structlog.get_logger("batos")
#: Seconds between two tries to take the home's lock.
_PAUSE: Final = 0.05
#: Seconds between two looks whether a server is idle, at most.
_IDLE_LOOK: Final = 5.0


@click.command()
@click.option("--bind", metavar="ADDRESS", help="The address for requests; beyond loopback clients need a key.")
@click.option("--events", metavar="ADDRESS", help="The address for events.")
@click.option("--http", metavar="ADDRESS", help="The address of HTTP, as 127.0.0.1:7719; `off`: none.")
@click.option(
    "--install", "installs", is_flag=True, help="Let your system start it at each log-in, and now: systemd or launchd."
)
@click.option("--uninstall", "uninstalls", is_flag=True, help="Take that back; the server stops.")
@click.option("--started", type=int, hidden=True, help="The lock of the home, by whoever starts this for a verb.")
@common
def serve(called: VerbCall, installs: bool, uninstalls: bool, started: int | None) -> int:
    """Hold the image open, run missions and answer clients, until Ctrl-C or `batos stop`.

    A verb that needs a server starts one by itself, which ends when it was idle for a while; one that you start here
    takes the place of such a one, and does not. Running missions go back to the queue when it stops, and continue at
    the next start; a second Ctrl-C stops at once. Clients on this machine find the server by its home; `batos keys new
    NAME` makes a key for one on another machine.

    With --install a unit of your user does that, with the settings that were given by variables and options.
    """
    if installs and uninstalls:
        raise click.UsageError("--install and --uninstall exclude each other.")
    if installs or uninstalls:
        return change_unit(called, os.environ, user_unit.run_command, takes_back=uninstalls)
    return run(_serve(called, HomeLock(called.settings.home, started), "person" if started is None else "verb"))


def change_unit(
    called: VerbCall, environ: Mapping[str, str], run_command: user_unit.Runner, *, takes_back: bool
) -> int:
    """Install the unit of the home's server, or take it back. Raises: Refused: it cannot be, or a server runs."""
    start = user_unit.server_start(called.loaded, environ)
    unit = user_unit.unit_of(start, environ)
    if takes_back:
        changed = user_unit.uninstall(unit, run_command)
        told = f"{unit.path} is gone, and its server has stopped." if changed else f"There is no {unit.path}."
    else:
        other = addresses.running_server(called.settings.home)
        if other is not None and other.by != "verb" and not unit.path.exists():
            what = f"the home has a server already (process {other.pid})"
            raise Refused(what, remedy="Stop it (`batos stop`), then install the unit.")
        user_unit.install(unit, start, run_command)
        changed, told = True, f"{unit.path} is there: the server runs, and starts at each log-in."
    if called.console.as_json:
        called.console.document({"unit": str(unit.path), "installed": not takes_back, "changed": changed})
    elif not called.quiet:
        called.console.write(told)
    return 0


async def _serve(called: VerbCall, lock: HomeLock, by: str) -> int:
    """Serve until the end; where the image is lent meanwhile, again and again."""
    lent = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(server_life.LENDS, lent.set)
    with lock:
        while await _serve_once(called, lock, by, lent):
            lent.clear()
    _log.info("server stopped")
    return 0


async def _serve_once(called: VerbCall, lock: HomeLock, by: str, lent: asyncio.Event) -> bool:
    """Hold the image open until the end, or until it is `lent`, and return whether it is."""
    settings, over = called.settings, asyncio.Event()
    while True:
        if lock.take():
            break
        await asyncio.sleep(_PAUSE)  # somebody starts a server, or has the image alone
    if by == "person" and (other := addresses.running_server(settings.home)) is not None and other.by == "verb":
        await asyncio.to_thread(server_life.stop, settings.home)
    # Where nobody has named a port another one does: clients find the server by the note in its home.
    unasked = frozenset(name for name in ("bind", "events") if name not in called.loaded.sources)
    async with open_server(settings, unasked=unasked, by=by, over=over) as (uvm, places):
        lock.owe(None)
        lock.release()
        _tell(called, places)
        try:
            await _wait_for_one(over, lent)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()  # it was told to stop, and it does so in order
            lent.clear()
        lock.take()  # whoever starts the next server waits until this one has closed the image
        if not lent.is_set():
            called.console.say("Stopping: running missions go back to the queue. A second signal stops at once.")
        await uvm.workers.stop()
    return lent.is_set()


async def _wait_for_one(*events: asyncio.Event) -> None:
    """Return when one of the events has come."""
    tasks = [asyncio.create_task(each.wait()) for each in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def open_server(
    settings: Settings,
    seams: Seams | None = None,
    told: Events | None = None,
    unasked: Collection[str] = (),
    by: str = "program",
    over: asyncio.Event | None = None,
) -> AsyncIterator[tuple[UVM, Places]]:
    """Start a server of the settings' home, which begins what an earlier one left, and listens for clients.

    Of the addresses that nobody asked for, `bind` or `events`, a free port is taken where the usual one is not. `by` is
    who started it, a `person`, a `verb` or a `program` that has it in its own process; that of a verb sets `over` when
    it was idle for long. Raises: ConfigError: it cannot listen where the settings say. ImageBusy: the home has a
    server, or its image an owner.
    """
    home = settings.home
    bind = replace(parse_listening(settings.bind, "bind"), may_be_another="bind" in unasked)
    events = replace(parse_listening(settings.events, "events"), may_be_another="events" in unasked)
    other = addresses.running_server(home)
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
        uvm.heartbeat.keep()
        uvm.schedules.keep(dispatcher.folders)
        server = Server(dispatcher, ring)
        async with server.serving(bind, events) as places, AsyncExitStack() as stack:
            door = _door(dispatcher, ring, settings, by)
            at = await stack.enter_async_context(door.serving()) if door is not None else ""
            mine = replace(_note(places, by, server_life.digest(settings)), http=at)
            about = _about(settings, mine)
            dispatcher.announce(about)
            await asyncio.to_thread(addresses.write_record, home, mine)
            try:
                _log.info("server started", left_behind=len(left), **about)
                await go_on(uvm, left)
                uvm.sharing.take_up()
                _give_vectors(uvm)
                end = IdleEnd(uvm, server, lambda: addresses.read_record(home) == mine, settings.idle_seconds, door)
                async with (
                    _begin_genesis(background_genesis),
                    _beside(erasing.keep_finishing(uvm)),
                    _beside(_end_idle(end, over if by == "verb" else None)),
                ):
                    yield uvm, places
            finally:
                addresses.remove_record(home, mine)
                await uploads.close()


def _door(dispatcher: Dispatcher, ring: Keyring, settings: Settings, by: str) -> HttpDoor | None:
    """Return the door of HTTP; None where it stays closed: but for a person's server it is opened only where asked.

    The modules that it needs are loaded here, so that a server without it is none the larger.
    """
    if settings.http == "off" or (by != "person" and "http" not in settings.model_fields_set):
        return None
    from batos.server.http.http_door import HttpDoor

    return HttpDoor(dispatcher, ring, settings)


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


@dataclass(frozen=True, slots=True)
class IdleEnd:
    """Waits for the end of a server's work. `is_home` tests if the home still has the server's own note."""

    uvm: UVM
    server: Server
    is_home: Callable[[], bool]
    seconds: float
    door: HttpDoor | None = None

    async def wait(self) -> None:
        """Return when the server has had nothing to do for so many seconds, or its home is gone."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while await asyncio.to_thread(self.is_home):
            asked = self.server.under_way or (self.door is not None and self.door.under_way)
            if asked or self.server.is_watched or not self.uvm.workers.is_idle():
                since = loop.time()
            since = max(since, self.server.heard, self.door.heard if self.door is not None else since)
            if loop.time() - since >= self.seconds:
                if not await asyncio.to_thread(self._has_work):
                    return
                since = loop.time()
            await asyncio.sleep(min(self.seconds / 10, _IDLE_LOOK))

    def _has_work(self) -> bool:
        with self.uvm.image.snapshot() as root:
            return has_work(root)


def has_work(root: Root) -> bool:
    """Test if something waits in the image: a mission, a schedule, a method to be made, an effect or an erasure."""
    return bool(
        roots.waiting_count(root)
        or root[roots.TALLY].get("running")
        or len(root[roots.WISHES])
        or effect_records.list_waiting(root)
        or any(each["state"] == "active" for each in schedule_records.list_all(root))
        or redaction.describe_erasure(root)
    )


async def _end_idle(end: IdleEnd, over: asyncio.Event | None) -> None:
    """Set `over` when the server was idle for long."""
    if over is not None:
        await end.wait()
        over.set()


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


def _note(places: Places, by: str, settings: str) -> ServerRecord:
    pid = os.getpid()
    return ServerRecord(
        pid=pid,
        born=addresses.birth_time(pid) or "",
        started=iso(utc_now()),
        bind=places.bind.near,
        events=places.events.near,
        bind_by=places.bind_by,
        events_by=places.events_by,
        batos=__version__,
        by=by,
        settings=settings,
    )


def _about(settings: Settings, mine: ServerRecord) -> dict[str, object]:
    return {
        "pid": mine.pid,
        "started": mine.started,
        "home": str(settings.home),
        "bind": mine.bind,
        "events": mine.events,
        "http": mine.http,
        "user": settings.asker,
    }


def _tell(called: VerbCall, places: Places) -> None:
    home = called.settings.home
    running = addresses.read_record(home)
    if called.console.as_json:
        called.console.document(
            {
                "pid": os.getpid(),
                "home": str(home),
                "http": "" if running is None else running.http,
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
    if running is not None and running.http:
        called.console.write(f"HTTP at     {running.http} (with a key: `batos keys new NAME`)")
    called.console.say("Clients of this home find it by themselves; see `batos token` and `batos keys` for others.")
    called.console.say("Ctrl-C stops it: running missions go back to the queue.")


def _address_text(address: Address, by: str) -> str:
    return f"{address} ({'with the token of the home' if by == 'plain' else 'with a key'})"


@click.command()
@common
def stop(called: VerbCall) -> int:
    """Stop the home's server: running missions go back to the queue, and the next server continues them.

    The next verb that needs a server starts one. A second `batos stop` meanwhile stops it at once.
    """
    ended = server_life.stop(called.settings.home)
    if called.console.as_json:
        called.console.document({"stopped": ended is not None, "pid": None if ended is None else ended.pid})
    elif not called.quiet:
        called.console.write("No server runs." if ended is None else f"The server (process {ended.pid}) has stopped.")
    return 0
