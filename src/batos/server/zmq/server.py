"""The server: a ROUTER socket that takes requests for the dispatcher, and a PUB socket for watchers, both guarded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import zmq
import zmq.asyncio

from batos.client.addresses import Address
from batos.client.keys import Keyring
from batos.client.server_connection import bind_socket
from batos.concurrency.threads import on_this_loop
from batos.image.ids import utc_now
from batos.protocol import wire_messages
from batos.protocol.errors import BatosError, InternalError, NoServer, ProtocolError, Unauthorised
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import limit_guest
from batos.server.zmq.auth import REQUESTS, Gate
from batos.server.zmq.outbox import Bulletin, Outbox
from batos.server.zmq.pending_request import ConnectedClient, PendingRequest, RequestCounts, busy
from batos.terminal import logs

#: Milliseconds for which the last replies are still sent when the server stops.
_LINGER = 500
#: Messages, and about their bytes, that are taken before those who work on earlier ones have a turn: with a turn for
#: each, many clients would wait for one another while missions think.
_AT_ONCE, _AT_ONCE_BYTES = 16, 64 * 1024
#: Frames of a message that are kept, one more than there may be, and how many others are passed over in a turn.
_FRAMES, _PASSED_OVER = 4, 100


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The most that the server takes; times in seconds, sizes in bytes."""

    #: Requests under way, of one peer and of all; beyond it they are told `busy`. A guest has a quarter of `total`.
    peer: int = 64
    total: int = 4_096
    #: Bytes of all requests under way; a guest has a quarter.
    size: int = 64 * 2**20
    #: Longest frame that is read at all; who sends a longer one is cut off, who sends less is told the limit.
    frame: int = 2 * wire_messages.MESSAGE_BYTES
    #: Bytes that wait for all slow readers together.
    held: int = 128 * 2**20
    #: Between the signs of life that a peer with requests under way is sent.
    beat: float = 5.0
    #: Between looks at peers who read slowly, and at keys that were revoked.
    look: float = 0.05
    revoked: float = 1.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where a server listens, and how each socket is guarded (`plain`, `curve`)."""

    bind: Address
    events: Address
    bind_by: str
    events_by: str


class Server:
    """Serves one dispatcher. Nothing that a client sends, or does not read, stops it or the others."""

    def __init__(self, dispatcher: Dispatcher, keyring: Keyring, limits: ServerLimits | None = None) -> None:
        self._dispatcher = dispatcher
        self._keyring = keyring
        self._limits = limits or ServerLimits()
        self._peers: dict[bytes, ConnectedClient] = {}
        self._stuck: set[bytes] = set()
        self._counts = RequestCounts(self._limits.total, self._limits.size)
        #: When a client was heard last, by the loop's clock.
        self.heard = 0.0
        self._bulletin: Bulletin | None = None
        self._router: zmq.asyncio.Socket
        self._gate: Gate

    @property
    def under_way(self) -> int:
        """Count the requests that are under way."""
        return self._counts.under_way

    @property
    def is_watched(self) -> bool:
        """Test if somebody watches events."""
        return self._bulletin is not None and self._bulletin.is_watched()

    @property
    def waiting_bytes(self) -> int:
        """Count the bytes that wait for slow readers."""
        return sum(peer.outbox.waiting_bytes for peer in self._peers.values())

    @asynccontextmanager
    async def serving(self, bind: Address, events: Address) -> AsyncIterator[Places]:
        """Listen until the block ends; what is under way then is told that the server stops.

        ConfigError names the setting of an address at which it cannot listen.
        """
        context = zmq.asyncio.Context()
        self._gate, self._router = Gate(context, self._keyring), context.socket(zmq.ROUTER)
        tasks: list[asyncio.Task[None]] = []
        try:
            # Before anything is bound: nobody may come in unasked.
            tasks.append(asyncio.create_task(self._gate.run(), name="gate"))
            places, bulletin = self._open(context, bind, events)
            loops = (self._listen, self._look, self._beat, partial(self._watch_keys, bulletin))
            tasks += [asyncio.create_task(_keep_running(each)) for each in loops]
            unsubscribe = self._dispatcher.uvm.events.subscribe(on_this_loop(bulletin.on_event))
            try:
                yield places
            finally:
                unsubscribe()
                await self._stop(tasks)
                bulletin.close()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._router.close(linger=_LINGER)
            self._gate.close()
            # In a thread: it waits for the last replies, and for ever if a socket were left open.
            await asyncio.to_thread(context.term)

    def _open(self, context: zmq.asyncio.Context, bind: Address, events: Address) -> tuple[Places, Bulletin]:
        router, limits = self._router, self._limits
        router.router_mandatory = 1
        router.maxmsgsize = limits.frame
        # Each message is taken as it comes, so that this many wait of one peer only if it floods: docs/decisions/0014.
        router.sndhwm, router.rcvhwm = 64, 4_000
        router.backlog = 512
        by = self._gate.guard(router, bind, REQUESTS)
        where = bind_socket(router, bind, "bind")
        bulletin = self._bulletin = Bulletin(context, self._gate, events, utc_now)
        return Places(where, bulletin.address, by, bulletin.mechanism), bulletin

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks[1:]:
            task.cancel()
        ending = [
            pending.task
            for peer in self._peers.values()
            for pending in peer.requests.values()
            if pending.task is not None
        ]
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await self._dispatcher.wait_until_settled()

    # -- taking requests

    async def _listen(self) -> None:
        taken = size = 0
        while True:
            frames = await self._message()
            try:
                self._take(frames)
            except Exception as error:  # whatever one message does, the next one is taken
                logs.fault(error, loud=False)
            taken, size = taken + 1, size + len(frames[-1])
            # A few at a time, and those who work on what came before have their turn.
            if taken >= _AT_ONCE or size >= _AT_ONCE_BYTES:
                taken = size = 0
                await asyncio.sleep(0)

    async def _message(self) -> list[zmq.Frame]:
        """Receive the next message. libzmq bounds no number of frames: those beyond a request's own are passed over."""
        frames: list[zmq.Frame] = [await self._router.recv(copy=False)]
        over, more = 0, frames[0].more
        while more:
            frame: zmq.Frame = await self._router.recv(copy=False)
            more = frame.more
            if len(frames) < _FRAMES:
                frames.append(frame)
                continue
            over += 1
            if over % _PASSED_OVER == 0:
                await asyncio.sleep(0)
        return frames

    def _take(self, frames: Sequence[zmq.Frame]) -> None:
        self.heard = asyncio.get_running_loop().time()
        identity, rest = frames[0].bytes, frames[1:]
        delimited = len(rest) > 1 and not len(rest[0])
        body = rest[-1]
        user, kind = str(body.get("User-Id")), str(body.get("Socket-Type"))
        peer = self._peer(identity, user)
        pending = PendingRequest(peer, None, delimited, kind == "REQ", len(body))
        why = self._objection(pending, rest)
        if why is None:
            self._begin(pending, body.bytes)
        else:
            with suppress(ProtocolError):  # what cannot be read has no name
                pending.call(wire_messages.request_id(wire_messages.parse(body.bytes)))
            told = pending.say("error", error=why.as_dict())
            # The refusal is the end of a request, and is kept as one is, as long as there is room.
            kept = peer.outbox.room(len(told[-1])) and self.waiting_bytes + len(told[-1]) <= self._limits.held
            self._put(peer, told, _nothing if kept else None)

    def _objection(self, pending: PendingRequest, rest: Sequence[zmq.Frame]) -> BatosError | None:
        """Find a reason to refuse a request before it is looked at; None if there is none."""
        limits, peer = self._limits, pending.peer
        if not self._gate.admits(peer.user):
            return Unauthorised("this client's token or key is no longer known")
        if len(rest) != (2 if pending.is_delimited else 1):
            return ProtocolError("a request is one frame of JSON, after an empty one or by itself")
        if len(peer.requests) >= limits.peer:
            return busy(f"{limits.peer} requests of this client are under way")
        return self._counts.objection(peer.user, pending.size)

    def _peer(self, identity: bytes, user: str) -> ConnectedClient:
        peer = self._peers.get(identity)
        if peer is not None and peer.user != user:  # a name that somebody else had before
            self._forget(peer)
            peer = None
        return peer or ConnectedClient(identity, user, Outbox(self._router, identity))

    def _begin(self, pending: PendingRequest, data: bytes) -> None:
        """Count it as under way, under a name that no other of its peer has, until its end has gone out."""
        place = f"#{id(pending)}"
        pending.peer.requests[place] = pending
        self._peers[pending.peer.identity] = pending.peer
        self._counts.add(pending.peer.user, pending.size)
        pending.begin(self._answer(pending, data))

    def _release(self, pending: PendingRequest) -> None:
        """Give back the room of a request whose end has gone out, or whose peer has vanished."""
        peer = pending.peer
        if peer.requests.pop(f"#{id(pending)}", None) is None:
            return
        self._counts.remove(peer.user, pending.size)
        if not peer.requests and not peer.outbox.stuck and self._peers.get(peer.identity) is peer:
            del self._peers[peer.identity]

    # -- working on one

    async def _answer(self, pending: PendingRequest, data: bytes) -> None:
        try:
            frames = await self._result(pending, data)
        except asyncio.CancelledError:
            frames = pending.say("error", error=_stopping().as_dict())
        except BatosError as error:
            frames = pending.say("error", error=error.as_dict())
        except Exception as error:  # a fault of ours is told as one, and harms nobody else
            logs.fault(error, loud=False)
            told = InternalError(f"{type(error).__name__}: {error}")
            frames = pending.say("error", error=told.as_dict())
        if self._peers.get(pending.peer.identity) is pending.peer:
            self._put(pending.peer, frames, lambda: self._release(pending))
        else:
            self._release(pending)

    async def _result(self, pending: PendingRequest, data: bytes) -> list[bytes]:
        value = wire_messages.parse(data)
        pending.call(wire_messages.request_id(value))
        request = wire_messages.read_request(value)
        if any(each.name == pending.name for each in pending.peer.requests.values() if each is not pending):
            raise ProtocolError("a request of this id is under way", field="id", remedy="Give each one its own.")
        result = await self._dispatcher.handle(
            request.verb,
            limit_guest(request.verb, request.args, pending.peer.user),
            on_this_loop(lambda event, keys: self._tell(pending, pending.event_frames(event, keys))),
            on_this_loop(lambda told: self._tell(pending, pending.acknowledgement_frames(told))),
        )
        pending.end()
        reply = pending.reply("result", data=result)
        if any(isinstance(value, dict | list | tuple) for value in result.values()):
            # The reply may be long, and nobody else is to wait while it is written down.
            written = await asyncio.to_thread(wire_messages.encode, reply)
        else:
            written = wire_messages.encode(reply)
        return pending.fitting(written, self._limits.held - self.waiting_bytes)

    def _tell(self, pending: PendingRequest, frames: list[bytes] | None) -> None:
        if (
            frames is not None
            and not pending.takes_one_reply
            and self._peers.get(pending.peer.identity) is pending.peer
        ):
            self._put(pending.peer, frames)

    # -- sending

    def _put(self, peer: ConnectedClient, frames: list[bytes], left: Callable[[], None] | None = None) -> None:
        outcome = peer.outbox.put(frames, left)
        if outcome == "gone":
            self._forget(peer)
            if left is not None:
                left()
        elif peer.outbox.stuck:
            self._peers[peer.identity] = peer
            self._stuck.add(peer.identity)

    def _forget(self, peer: ConnectedClient) -> None:
        """Forget a peer that has vanished: its missions go on, and their events are told to nobody."""
        if self._peers.get(peer.identity) is peer:
            del self._peers[peer.identity]
        self._stuck.discard(peer.identity)
        for pending in tuple(peer.requests.values()):
            if pending.task is not None and not pending.task.done():
                pending.task.cancel()
            self._release(pending)

    async def _look(self) -> None:
        """Send on to slow readers as they read."""
        while True:
            await asyncio.sleep(self._limits.look)
            for identity in tuple(self._stuck):
                peer = self._peers.get(identity)
                outcome = "sent" if peer is None else peer.outbox.flush()
                if outcome != "full":
                    self._stuck.discard(identity)
                if peer is not None and outcome == "gone":
                    self._forget(peer)
                elif peer is not None and outcome == "sent" and not peer.requests:
                    self._peers.pop(identity, None)

    async def _beat(self) -> None:
        """Tell every peer that waits long that the server is there; so one that has vanished is noticed too."""
        before: set[PendingRequest] = set()
        while True:
            await asyncio.sleep(self._limits.beat)
            now = {pending for peer in self._peers.values() for pending in peer.requests.values() if _waits(pending)}
            told: set[bytes] = set()
            for pending in now & before:
                if pending.peer.identity not in told:
                    told.add(pending.peer.identity)
                    self._tell(pending, pending.say("event", event="beat", data={}))
            before = now

    async def _watch_keys(self, bulletin: Bulletin) -> None:
        """End the requests of clients whose key was revoked, and let watchers in anew; again and again."""
        while True:
            await asyncio.sleep(self._limits.revoked)
            bulletin.is_watched()  # what is told of subscriptions is read, and does not pile up
            gone = self._gate.shut_out()
            if gone:
                for peer in tuple(self._peers.values()):
                    if peer.user in gone:
                        self._forget(peer)
                await bulletin.shut_out()


async def _keep_running(loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a loop that never ends by itself; log what ends it nevertheless."""
    try:
        await loop()
    except Exception as error:
        logs.fault(error, loud=True)
        raise


def _waits(pending: PendingRequest) -> bool:
    """Test if a client waits for a request who can be told that it is still under way."""
    return pending.name is not None and not (pending.takes_one_reply or pending.is_ending or pending.peer.outbox.stuck)


def _stopping() -> NoServer:
    return NoServer("the server stops; accepted missions are kept", remedy="Ask again when the server runs.")


def _nothing() -> None:
    """Do nothing: nobody waits for this end to go out."""
