"""The messages to one peer: sent at once if they can be, else kept in bounds, so that a slow reader stops nobody."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, cast

import zmq
import zmq.asyncio

#: Replies of which the network's own queue takes a peer's fill; longer ones are handed over one at a time.
LARGE = 64 * 1024
#: Events, and their bytes, that wait for a slow reader; what does not fit is lost.
EVENTS, EVENT_BYTES = 256, 2**20
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
        return len(self._waiting) < EVENTS and self._bytes + size <= EVENT_BYTES

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
