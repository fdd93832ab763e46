"""The messages to peers: to one, kept in bounds, and the bulletin of every event for watchers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import zmq
import zmq.asyncio

from batos.client.addresses import Address
from batos.client.server_connection import bind_socket
from batos.protocol.errors import ConfigError
from batos.protocol.wire_messages import VERSION, encode
from batos.server.zmq.auth import EVENTS, Gate

#: Replies of which the network's own queue takes a peer's fill; longer ones are handed over one at a time.
LARGE = 64 * 1024
#: Events, and their bytes, that wait for a slow reader; what does not fit is lost.
MOST_EVENTS, EVENT_BYTES = 256, 2**20
#: Bytes of all that waits for it, ends among them; of an end that does not fit, it is told that it was lost.
BYTES = 32 * 2**20

Outcome: TypeAlias = Literal["sent", "full", "gone"]


class _QueuedMessage(NamedTuple):
    frames: list[bytes]
    left: Callable[[], None] | None


class Outbox:
    """The replies to one peer, in order. `send` never waits: what a peer does not take is kept or lost."""

    __slots__ = ("_bytes", "_identity", "_large", "_router", "_waiting")

    def __init__(self, router: zmq.asyncio.Socket, identity: bytes) -> None:
        self._router = router
        self._identity = identity
        self._waiting: deque[_QueuedMessage] = deque()
        self._bytes = 0
        self._large: zmq.MessageTracker | None = None

    @property
    def stuck(self) -> bool:
        """Test if a message waits."""
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Test if no event has room, however short."""
        return not self._spare(0)

    @property
    def waiting_bytes(self) -> int:
        """Count the bytes that wait."""
        return self._bytes

    def room(self, size: int) -> bool:
        """Test if the end of a request, with so many bytes, may wait if it has to."""
        return not self._waiting or self._bytes + size <= BYTES

    def _spare(self, size: int) -> bool:
        return len(self._waiting) < MOST_EVENTS and self._bytes + size <= EVENT_BYTES

    def put(self, frames: list[bytes], left: Callable[[], None] | None = None) -> Outcome:
        """Send, or keep where there is room ("full": it waits or is lost); `left` is called when it has gone out.

        A message with a `left` is the end of a request: it is kept whatever the room, and its sender keeps it small.
        """
        outcome: Outcome = "full" if self._waiting else self._send(frames)
        if outcome == "sent":
            if left is not None:
                left()
        elif outcome == "full" and (left is not None or self._spare(len(frames[-1]))):
            self._waiting.append(_QueuedMessage(frames, left))
            self._bytes += len(frames[-1])
        return outcome

    def flush(self) -> Outcome:
        """Send what waits, as far as the peer takes it."""
        while self._waiting:
            outcome = self._send(self._waiting[0].frames)
            if outcome != "sent":
                return outcome
            frames, left = self._waiting.popleft()
            self._bytes -= len(frames[-1])
            if left is not None:
                left()
        return "sent"

    def _send(self, frames: list[bytes]) -> Outcome:
        large = len(frames[-1]) > LARGE
        if large and self._large is not None and not self._large.done:
            return "full"
        # Not to wait makes it send at once or fail at once: the future is done.
        parts = [self._identity, *frames]
        sent = self._router.send_multipart(parts, zmq.DONTWAIT, copy=not large, track=large)
        done = cast("asyncio.Future[zmq.MessageTracker | None]", sent)
        error = done.exception()
        if error is None:
            self._large = done.result() if large else self._large
            return "sent"
        if isinstance(error, zmq.Again):
            return "full"
        if isinstance(error, zmq.ZMQError) and error.errno == zmq.EHOSTUNREACH:
            return "gone"
        raise error


#: Notices that wait for one watcher; beyond it they are lost to it, which the numbers show.
_WAITING: Final = 1_000
#: Missions whose notices are counted on; of those beyond it the one that was silent longest begins at 1 again.
_COUNTED: Final = 4_096
#: The words of an answer and of its documents, which are for who asked.
_PRIVATE: Final = frozenset({"mission.token", "mission.citation"})


class Bulletin:
    """A socket for watchers: the home, and no guest. Tokens and citations are for who asked, and not told here."""

    def __init__(self, context: zmq.asyncio.Context, gate: Gate, address: Address, now: Callable[[], datetime]) -> None:
        self._context = context
        self._gate = gate
        self._now = now
        self._counts: OrderedDict[str, int] = OrderedDict()
        self.mechanism = ""
        #: The topics that are watched, as far as was looked.
        self._topics: set[bytes] = set()
        self._socket, self.address = self._open(address)

    def _open(self, address: Address) -> tuple[zmq.asyncio.Socket, Address]:
        socket = self._context.socket(zmq.XPUB)  # a PUB that tells of its subscriptions
        socket.sndhwm = _WAITING
        self.mechanism = self._gate.guard(socket, address, EVENTS)
        return socket, bind_socket(socket, address, "events")

    def on_event(self, event: str, keys: Mapping[str, object]) -> None:
        """Tell watchers of an event."""
        if event in _PRIVATE:
            return
        mission = keys.get("mission")
        stream = "system" if mission is None else f"mission.{mission}"
        topic = f"{stream}.{event.removeprefix('mission.')}"
        at = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        notice = {**keys, "v": VERSION, "seq": self._next(stream), "at": at, "event": event}
        # PUB never waits: what a slow watcher does not take is lost to it.
        sent = self._socket.send_multipart([topic.encode("utf-8", "replace"), encode(notice)], zmq.DONTWAIT)
        cast("asyncio.Future[None]", sent).exception()

    def _next(self, stream: str) -> int:
        count = self._counts.pop(stream, 0) + 1
        self._counts[stream] = count
        if len(self._counts) > _COUNTED:
            self._counts.popitem(last=False)
        return count

    def is_watched(self) -> bool:
        """Test if somebody watches."""
        with suppress(zmq.ZMQError):
            while True:
                told: Any = self._socket.recv(zmq.DONTWAIT)
                word: bytes = told.result()
                (self._topics.add if word[:1] == b"\x01" else self._topics.discard)(word[1:])
        return bool(self._topics)

    async def shut_out(self) -> None:
        """Let every watcher come in anew, by the keys as they are now: one who is no longer known does not."""
        self._socket.close(linger=0)
        self._topics.clear()
        for _ in range(100):
            try:
                self._socket, self.address = self._open(self.address)
                return
            except ConfigError:  # the network thread has not let go of the port yet
                await asyncio.sleep(0.02)
        self._socket, self.address = self._open(self.address)

    def close(self) -> None:
        """Tell nobody any more."""
        self._socket.close(linger=0)
