"""A connection to a server that survives the server's restarts: it finds or starts the server anew each time."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import zmq
import zmq.asyncio

from batos import config
from batos.client import keys, server_life
from batos.client.keys import ServerAddress
from batos.client.pending import OnAcknowledged, OnEvent, PendingCall
from batos.client.portal import check_process
from batos.client.server_connection import PASSING, ServerConnection
from batos.protocol.errors import BatosError, NoServer, ProtocolError, Refused, TimedOut, UsageError
from batos.protocol.wire_messages import MESSAGE_BYTES, VERSION, encode, parse

Find: TypeAlias = Callable[[], ServerAddress]

#: Requests that one client has under way: fewer than a server takes of it (64), so that it is never told `busy` for
#: their number. Those that wait for an end leave room for the others: a mission can always be cancelled.
UNDER_WAY, WAITING = 60, 44
#: Verbs that wait for an end whatever their arguments are.
_LONG = frozenset({"wait", "genesis", "method_redefine"})
#: Verbs that are not asked again after a loss of the server: done twice they do more, or fail although they succeeded.
_ONCE = frozenset(
    {
        "approve", "reject", "method_redefine", "method_rollback", "dream_promote", "dream_drop",
        "grants_add", "grants_revoke", "effects_settle", "undo", "redo", "forget", "memories_edit", "memories_retract",
        "memories_restore",
    }
)  # fmt: skip


#: Seconds that the end of the library's threads is waited for.
_END = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """The times that a client waits, in seconds."""

    #: For a connection, and for a refused one to be taken (a server that is just starting).
    connect: float = 5.0
    refused: float = 1.0
    #: For a server that was lost to come back, before what is under way fails.
    reconnect: float = 60.0
    #: For any sign of life while something is asked; a server gives one every few seconds.
    silence: float = 60.0


class Line:
    """A connection to a server that outlives the server's restarts. Calls may be made concurrently, on one event loop.

    A call that was under way when the server was lost is asked again when it is back: reading and waiting harm nothing
    twice, and a mission is found again by its idempotency key. A change that may have been made ends in NoServer, which
    says so. `on_event` is then told `connection.lost` and `connection.restored`, and `mission.retracted` where tokens
    had come, since they do not go on where they broke off.
    """

    def __init__(self, find: Find, patience: Patience | None = None, start: Callable[[], object] | None = None) -> None:
        """Make a line to what `find` finds; where it finds none, `start` starts one, and may block meanwhile."""
        self._find = find
        self._start = start
        self._patience = patience or Patience()
        self._made: zmq.asyncio.Context | None = None
        self._connection: ServerConnection | None = None
        self._watching: set[ServerConnection] = set()
        self._reader: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._calls: dict[str, PendingCall] = {}
        self._count = 0
        self._heard = 0.0
        self._closed = self._was_open = False
        self._process = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Semaphore(UNDER_WAY)
        self._room_to_wait = asyncio.Semaphore(WAITING)

    async def open(self) -> None:
        """Connect. NoServer: none runs or answers; Unauthorised: it does not know this client."""
        await self._connect()

    async def close(self) -> None:
        """Close the connection; calls under way fail, and later ones. In another process it closes nothing."""
        self._closed = True
        if os.getpid() != self._process:
            return
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        self._drop()
        for watching in self._watching:
            watching.close()
        self._fail(NoServer("this client was closed"))
        if self._made is not None:
            await _end_network(self._made)

    # -- asking

    async def call(
        self,
        verb: str,
        args: Mapping[str, object] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        *,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Ask one thing and give its result (docs/protocol.md has the verbs).

        Raises the BatosError that the server told, by its code; NoServer: it was lost and did not come back;
        TimedOut: nothing came for too long, or the result not within `seconds`.
        """
        self._count += 1
        name = str(self._count)
        given = _add_key(verb, dict(args or {}))
        data = encode({"v": VERSION, "id": name, "verb": verb, "args": given})
        if len(data) > MESSAGE_BYTES:
            raise ProtocolError(f"a message has at most {MESSAGE_BYTES} bytes, and this one {len(data)}")
        parse(data)  # a server cannot tell whose message it was that it could not read, and nobody would hear of it
        call = PendingCall(data, on_event, on_acknowledged, verb if verb in _ONCE else "")
        try:
            async with asyncio.timeout(seconds), self._place(verb in _LONG or bool(given.get("follow"))):
                return await self._ask(name, call)
        except TimeoutError:
            raise TimedOut(f"no result of {verb} after {seconds:g} s", remedy="Ask again, or wait longer.") from None

    @asynccontextmanager
    async def _place(self, waits: bool) -> AsyncGenerator[None, None]:
        """Hold one of the places that a server gives a client, in the order in which they were wanted."""
        async with AsyncExitStack() as places:
            if waits:
                await places.enter_async_context(self._room_to_wait)
            await places.enter_async_context(self._room)
            yield

    async def _ask(self, name: str, call: PendingCall) -> dict[str, Any]:
        with self._under_way(name, call):
            # Where the connection is lost just now, it is sent when that is back.
            if (connection := await self._connect()) is not None:
                if len(self._calls) == 1:  # a server says nothing to a client that asks nothing
                    self._heard = asyncio.get_running_loop().time()
                call.send(connection)
            return await self._result(call)

    @contextmanager
    def _under_way(self, name: str, call: PendingCall) -> Iterator[None]:
        self._calls[name] = call
        try:
            yield
        finally:
            del self._calls[name]
            call.leave()

    async def _result(self, call: PendingCall) -> dict[str, object]:
        silence = self._patience.silence
        while not call.done.done():
            now = asyncio.get_running_loop().time()
            left = self._heard + silence - now
            if left <= 0 and self._connection is not None:
                raise TimedOut(f"the server has sent nothing for {silence:g} s", remedy="See its log.")
            await asyncio.wait({call.done}, timeout=max(left, 0.5))
        return call.done.result()

    # -- the connection

    @property
    def _context(self) -> zmq.asyncio.Context:
        """Return the library's threads, started at the first connection: a client that never asks closes none."""
        if self._made is None:
            self._made = zmq.asyncio.Context()
        return self._made

    def _refuse_elsewhere(self) -> None:
        """Raise UsageError in another process or event loop than the line's own: nothing would ever come there."""
        check_process(self._process)
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise UsageError(
                "this client was opened in another event loop", remedy="Make a client in each event loop that uses one."
            )

    async def _connect(self) -> ServerConnection | None:
        """Return the connection, opened if there is none; None while one that was lost is being restored."""
        self._refuse_elsewhere()
        async with self._turn:
            if self._closed:
                raise NoServer("this client was closed")
            if self._connection is None and (self._reader is None or self._reader.done()):
                if not self._was_open:
                    await self._address()  # where there is none, nobody waits for one
                # A server that was there is waited for as long as where something was under way.
                patience = self._patience.reconnect if self._was_open else self._patience.refused
                self._connection = await self._reach(patience)
                self._was_open = True
                self._reader = asyncio.create_task(self._read())
            return self._connection

    async def _address(self) -> ServerAddress:
        """Return the server's address, once it was started where none runs. Raises: NoServer: there is none."""
        with suppress(NoServer):
            return self._find()
        if self._start is not None:
            await asyncio.to_thread(self._start)
        return self._find()

    async def _reach(self, seconds: float) -> ServerConnection:
        """Connect, and try again for so long where nothing listens."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, 0.05
        while True:
            try:
                found = await self._address()
                connection = await ServerConnection.open(
                    self._context, zmq.DEALER, found.endpoint, found.credentials, self._patience.connect
                )
                self._heard = loop.time()
                return connection
            except PASSING:
                if loop.time() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)

    async def _read(self) -> None:
        """Read until the connection is lost with nothing under way, or is not restored."""
        while self._connection is not None:
            await self._converse(self._connection)
            endpoint = self._connection.endpoint
            self._drop()
            if not self._calls:
                return
            for call in tuple(self._calls.values()):
                call.on_lost(endpoint)
            try:
                connection = await self._reach(self._patience.reconnect)
                for call in tuple(self._calls.values()):
                    call.on_restored(connection.endpoint)
                    call.send(connection)
            except BatosError as error:
                self._fail(error)
                return
            self._connection = connection

    async def _converse(self, connection: ServerConnection) -> None:
        lost = asyncio.ensure_future(connection.wait_until_lost())
        try:
            while not lost.done():
                got = asyncio.ensure_future(connection.receive())
                await asyncio.wait({got, lost}, return_when=asyncio.FIRST_COMPLETED)
                if not got.done():
                    got.cancel()
                    break
                self._take(got.result())
            for frames in connection.rest():
                self._take(frames)
        finally:
            lost.cancel()

    def _take(self, frames: Sequence[bytes]) -> None:
        self._heard = asyncio.get_running_loop().time()
        try:
            reply = json.loads(frames[-1])
            call = self._calls.get(reply["id"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # nothing that a server of ours says
        if call is not None:
            call.take(reply)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fail(self, error: BatosError) -> None:
        for call in self._calls.values():
            call.fail(error)

    # -- watching

    async def watch(self, topics: Sequence[str] = ("",)) -> AsyncIterator[dict[str, object]]:
        """Yield notices of what happens, for all topics that begin so: v, seq, at, event, and the event's keys.

        Raises NoServer when the server is lost, or this client closed. Refused: a guest follows its own missions.
        """
        self._refuse_elsewhere()
        found = await self._address()
        if found.watching is None:
            raise Refused(
                "the events of all missions are for the home only, and this key is a guest's",
                remedy="Follow a mission of yours: `batos wait MISSION`, or `wait` with a listener.",
            )
        events = found.events or str((await self.call("hello")).get("events", ""))

        def subscribe(socket: zmq.asyncio.Socket) -> None:
            for topic in topics:
                socket.subscribe(topic.encode())

        connection = await ServerConnection.open(
            self._context, zmq.SUB, events, found.watching, self._patience.connect, subscribe
        )
        self._watching.add(connection)
        lost = asyncio.ensure_future(connection.wait_until_lost())
        try:
            while not lost.done():
                got = asyncio.ensure_future(connection.receive())
                await asyncio.wait({got, lost}, return_when=asyncio.FIRST_COMPLETED)
                if connection.closed:
                    raise NoServer("this client was closed")
                if not got.done():
                    got.cancel()
                    break
                yield json.loads(got.result()[-1])
            raise NoServer(f"the server at {events} has stopped")
        finally:
            lost.cancel()
            self._watching.discard(connection)
            connection.close()


async def _end_network(context: zmq.asyncio.Context) -> None:
    """End the library's threads, and wait a moment for that.

    The library now and then waits for ever for a connection that is closed already, once its server was killed. So the
    thread that ends it is one that keeps no program from its end.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def end() -> None:
        context.term()
        with suppress(RuntimeError):  # nobody waits any more, and the loop is closed
            loop.call_soon_threadsafe(ended.set)

    with suppress(RuntimeError, TimeoutError):  # the interpreter ends, and begins no thread any more
        threading.Thread(target=end, name="batos-network", daemon=True).start()
        async with asyncio.timeout(_END):
            await ended.wait()


def _add_key(verb: str, args: dict[str, object]) -> dict[str, object]:
    """Give what begins a mission a key, by which the server knows the mission when it is asked again."""
    if verb == "submit" and isinstance(brief := args.get("brief"), Mapping):
        args["brief"] = {"idempotency_key": secrets.token_hex(16), **brief}
    elif verb == "send":
        args.setdefault("idempotency_key", secrets.token_hex(16))
    return args


def line_to(
    home: Path | str | None = None, *, server: str | None = None, patience: Patience | None = None, starts: bool = True
) -> Line:
    """Return a line to the server of a home, or to a named one; without either to that of the settings.

    A home's server is started where none runs, unless the setting `server` is `never` or `starts` is False.
    """
    if home is None:
        settings = config.load().settings
        home, server = settings.home, server or settings.named_server
    folder, named = Path(home).absolute(), server
    if named:
        return Line(lambda: keys.setting_address(named, folder), patience)
    find: Find = partial(keys.home_address, folder)
    return Line(find, patience, partial(_start, folder) if starts else None)


def _start(home: Path) -> None:
    """Start the home's server, if its settings let that be. Raises: BatosError: what keeps it from starting."""
    settings = config.load(flags={"home": home}).settings
    if not server_life.may_start(settings, os.environ):
        return
    try:
        server_life.ensure(home)
    except OSError as error:
        raise NoServer(f"no server can be started for the home {home}: {error.strerror}") from error
