"""The client for other programs: `async with Client.at(home) as client: await client.ask("...")`."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import zmq
import zmq.asyncio

from batos.cognition.brief import File
from batos.errors import BatosError, BriefError, Busy, NoServer, ProtocolError, TimedOut
from batos.front.wire import place
from batos.front.wire.calls import Acknowledged, Call, Hear
from batos.front.wire.connection import PASSING, Connection
from batos.front.wire.keys import Credentials
from batos.front.wire.place import Place
from batos.front.wire.protocol import MESSAGE_BYTES, VERSION, encoded
from batos.front.wire.shapes import PIECE_BYTES

Find: TypeAlias = Callable[[], Place]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits, in seconds."""

    #: For a connection, and for a refused one to be taken (a server that is just starting).
    connect: float = 5.0
    refused: float = 1.0
    #: For a server that was lost to come back, before what is under way fails.
    reconnect: float = 60.0
    #: For any sign of life while something is asked; a server gives one every few seconds.
    silence: float = 60.0


class Client:
    """A connection to a server that outlives the server's restarts. Calls may be made concurrently, on one event loop.

    Every call that was under way when the server was lost is asked again when it is back: reading and waiting harm
    nothing twice, and a mission is found again by its idempotency key. `hear` is then told `connection.lost` and
    `connection.restored`, and `mission.retracted` where tokens had come, since they do not go on where they broke off.
    """

    def __init__(self, find: Find, patience: Patience | None = None) -> None:
        self._find = find
        self._patience = patience or Patience()
        self._context = zmq.asyncio.Context()
        self._connection: Connection | None = None
        self._watching: set[Connection] = set()
        self._reader: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._calls: dict[str, Call] = {}
        self._count = 0
        self._heard = 0.0

    @classmethod
    def at(cls, home: Path | str, patience: Patience | None = None) -> Self:
        """A client of the server of a home of this machine."""
        return cls(lambda: place.of_home(Path(home)), patience)

    @classmethod
    def to(cls, server: str, home: Path | str = ".", patience: Patience | None = None) -> Self:
        """A client of the server that `server` names: tcp://127.0.0.1:PORT (with the home's token), or a key file."""
        return cls(lambda: place.named(server, Path(home)), patience)

    @classmethod
    def by(cls, endpoint: str, credentials: Credentials, patience: Patience | None = None) -> Self:
        """A client of the server at an address, with these credentials."""
        return cls(lambda: Place(endpoint, "", credentials, credentials), patience)

    async def __aenter__(self) -> Self:
        """Connect. NoServer: none runs or answers; Unauthorised: it does not know this client."""
        try:
            await self._connected()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; what was accepted goes on at the server."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way fail."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        self._drop()
        for watching in self._watching:
            watching.close()
        self._fail(NoServer("this client was closed"))
        # In a thread, since it waits for the network's; for ever, if a socket were left open.
        await asyncio.to_thread(self._context.term)

    # -- asking

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        hear: Hear | None = None,
        acknowledged: Acknowledged | None = None,
        *,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Ask one thing and give its result (docs/protocol.md has the verbs).

        Raises the BatosError that the server told, by its code; NoServer: it was lost and did not come back;
        TimedOut: nothing came for too long, or the result not within `seconds`.
        """
        self._count += 1
        name = str(self._count)
        given = _keyed(verb, dict(args or {}))
        data = encoded({"v": VERSION, "id": name, "verb": verb, "args": given})
        if len(data) > MESSAGE_BYTES:
            raise ProtocolError(f"a message has at most {MESSAGE_BYTES} bytes, and this one {len(data)}")
        call = Call(data, hear, acknowledged)
        with self._under_way(name, call):
            # Where the connection is lost just now, it is sent when that is back.
            if (connection := await self._connected()) is not None:
                connection.send(data)
            try:
                async with asyncio.timeout(seconds):
                    return await self._result(call)
            except TimeoutError:
                raise TimedOut(
                    f"no result of {verb} after {seconds:g} s", remedy="Ask again, or wait longer."
                ) from None

    @contextmanager
    def _under_way(self, name: str, call: Call) -> Iterator[None]:
        self._calls[name] = call
        try:
            yield
        finally:
            del self._calls[name]
            call.leave()

    async def _result(self, call: Call) -> dict[str, Any]:
        silence = self._patience.silence
        while not call.done.done():
            now = asyncio.get_running_loop().time()
            left = self._heard + silence - now
            if left <= 0 and self._connection is not None:
                raise TimedOut(f"the server has given no sign of life for {silence:g} s", remedy="See its log.")
            await asyncio.wait({call.done}, timeout=max(left, 0.5))
        return call.done.result()

    # -- the connection

    async def _connected(self) -> Connection | None:
        """The connection, opened if there is none; None while one that was lost is being restored."""
        async with self._turn:
            if self._connection is None and (self._reader is None or self._reader.done()):
                self._find()  # where there is none, nobody waits for one
                self._connection = await self._reach(self._patience.refused)
                self._reader = asyncio.create_task(self._read())
            return self._connection

    async def _reach(self, seconds: float) -> Connection:
        """Connect, and try again for so long where nothing listens."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, 0.05
        while True:
            try:
                found = self._find()
                connection = await Connection.opened(
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
                call.lost(endpoint)
            try:
                connection = await self._reach(self._patience.reconnect)
                for call in tuple(self._calls.values()):
                    call.restored(connection.endpoint)
                    connection.send(call.data)
            except BatosError as error:
                self._fail(error)
                return
            self._connection = connection

    async def _converse(self, connection: Connection) -> None:
        lost = asyncio.ensure_future(connection.lost())
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

    async def watch(self, topics: Sequence[str] = ("",)) -> AsyncIterator[dict[str, Any]]:
        """Notices of what happens, for all topics that begin so: v, seq, at, event, and the event's keys.

        Raises NoServer when the server is lost, or this client closed.
        """
        found = self._find()
        events = found.events or str((await self.call("hello")).get("events", ""))

        def subscribe(socket: zmq.asyncio.Socket) -> None:
            for topic in topics:
                socket.subscribe(topic.encode())

        connection = await Connection.opened(
            self._context, zmq.SUB, events, found.watching, self._patience.connect, subscribe
        )
        self._watching.add(connection)
        lost = asyncio.ensure_future(connection.lost())
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

    # -- the verbs

    async def hello(self) -> dict[str, Any]:
        """Who is there, and what it takes."""
        return await self.call("hello")

    async def submit(self, text: str, *, files: Sequence[File] = (), **brief: Any) -> str:
        """Give it a question and go: the id of a mission that is durable. `brief` has further fields of a brief."""
        told = await self.call("submit", {"brief": {**brief, "text": text, "attachments": await self.attach(files)}})
        return str(told["mission"])

    async def ask(
        self,
        text: str,
        hear: Hear | None = None,
        acknowledged: Acknowledged | None = None,
        *,
        files: Sequence[File] = (),
        **brief: Any,
    ) -> dict[str, Any]:
        """Ask and wait for the end: the mission, whatever its status is then; `answer` where it is done."""
        whole = {**brief, "text": text, "attachments": await self.attach(files)}
        return await self.call("submit", {"brief": whole, "follow": True}, hear, acknowledged)

    async def wait(self, mission: str, hear: Hear | None = None, seconds: float | None = None) -> dict[str, Any]:
        """Wait for a mission's end; TimedOut after `seconds`, and the mission goes on."""
        args = {"mission": mission, "follow": hear is not None}
        return await self.call("wait", args if seconds is None else {**args, "seconds": seconds}, hear)

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Hand over the bytes of files; gives the references that a brief carries. What is there is not sent."""
        for file in files:
            for tries in range(3):
                if await self._sent(file, again=tries > 0):
                    break
            else:
                raise BriefError(f"{file.ref.name} does not arrive whole", field="attachments", remedy="Send it again.")
        return [file.ref.model_dump() for file in files]

    async def _sent(self, file: File, *, again: bool) -> bool:
        """Send a file from where the server has it, or `again` from its beginning; whether it is whole there."""
        told = await self._piece(file, 0, b"")
        at = 0 if again else int(told["have"])
        while "size" not in told and at < len(file.data):
            piece = file.data[at : at + PIECE_BYTES]
            try:
                told = await self._piece(file, at, piece)
            except BriefError as error:
                if error.field == "attachments" and "agree" in error.message:
                    return False
                raise
            at += len(piece)
        return "size" in told

    async def _piece(self, file: File, offset: int, piece: bytes) -> dict[str, Any]:
        args = {"sha256": file.ref.sha256, "offset": offset, "data": base64.b64encode(piece).decode()}
        for pause in (0.1, 0.5, 2.0):
            try:
                return await self.call("attach", args)
            except Busy:
                await asyncio.sleep(pause)
        return await self.call("attach", args)

    async def missions(self, limit: int = 20, **which: str) -> list[dict[str, Any]]:
        """The newest missions, a line each; `status` and `user` pick."""
        return list((await self.call("missions", {"limit": limit, **which}))["missions"])

    async def show(self, mission: str, *, prompts: bool = False) -> dict[str, Any]:
        """A mission whole."""
        return await self.call("show", {"mission": mission, "prompts": prompts})

    async def turns(self, conversation: str, start: int = 1, limit: int = 20) -> dict[str, Any]:
        """A conversation's turns by position."""
        return await self.call("turns", {"conversation": conversation, "start": start, "limit": limit})

    async def inspect(self, reference: str | None = None) -> dict[str, Any]:
        """An object or a slot of the image; without one the names of its root."""
        return await self.call("inspect", {} if reference is None else {"object": reference})

    async def send(
        self, receiver: str, selector: str, arguments: Sequence[Any] = (), hear: Hear | None = None
    ) -> dict[str, Any]:
        """Send a message to an object and wait for the mission that delivers it."""
        message = {"receiver": receiver, "selector": selector, "arguments": list(arguments)}
        return await self.call("send", {**message, "follow": True}, hear)

    async def cancel(self, mission: str) -> dict[str, Any]:
        """End a mission at once."""
        return await self.call("cancel", {"mission": mission})

    async def pause(self, mission: str) -> dict[str, Any]:
        """Let a mission stand still when the calls under way are paid for."""
        return await self.call("pause", {"mission": mission})

    async def resume(self, mission: str) -> dict[str, Any]:
        """Let a mission go on; what was paid for is not paid again."""
        return await self.call("resume", {"mission": mission})

    async def status(self) -> dict[str, Any]:
        """How it stands with the server."""
        return await self.call("status")

    async def genesis(self, hear: Hear | None = None, *, plan: bool = False, prune: bool = False) -> dict[str, Any]:
        """Bring models and image to what the codex says; `plan`: only say what would be done."""
        return await self.call("genesis", {"plan": plan, "prune": prune}, hear)


def _keyed(verb: str, args: dict[str, Any]) -> dict[str, Any]:
    """What begins a mission has a key, by which the server knows it when it is asked again."""
    if verb == "submit" and isinstance(args.get("brief"), Mapping):
        args["brief"] = {"idempotency_key": secrets.token_hex(16), **args["brief"]}
    elif verb == "send":
        args.setdefault("idempotency_key", secrets.token_hex(16))
    return args
