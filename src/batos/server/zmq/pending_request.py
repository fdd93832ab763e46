"""A request under way at the server: its numbered replies, its peer, and the counts of all that are under way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from batos.protocol.errors import Busy
from batos.protocol.wire_messages import VERSION, Kind, encode
from batos.server.dispatch.guests import guest, guest_share
from batos.server.zmq.outbox import Outbox


@dataclass(slots=True, eq=False)
class ConnectedClient:
    """Somebody who is connected and has asked something that is under way."""

    identity: bytes
    user: str
    outbox: Outbox
    requests: dict[str, PendingRequest] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request and its replies. `takes_one_reply`: a REQ peer, which takes one reply and gets the last one alone."""

    peer: ConnectedClient
    name: str | None
    is_delimited: bool
    takes_one_reply: bool
    size: int = 0
    attempt: int = 1
    #: Its last reply is being made: nothing may follow.
    is_ending: bool = False
    task: asyncio.Task[None] | None = None
    _seq: int = 0

    def call(self, name: str | None) -> None:
        """Give the request the name that its client wrote into it."""
        self.name = name

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin the work on the request, in a task of its own."""
        self.task = asyncio.create_task(work)

    def end(self) -> None:
        """Note that the last reply is being made: nothing may follow it."""
        self.is_ending = True

    def reply(self, kind: Kind, **fields: object) -> dict[str, Any]:
        """Make the next reply; it takes the next number, even if it never reaches the peer."""
        self._seq += 1
        return {"v": VERSION, "id": self.name, "kind": kind, "seq": self._seq, "attempt": self.attempt, **fields}

    def frames(self, data: bytes) -> list[bytes]:
        """Return an encoded reply as it goes over the wire after the peer's identity."""
        return [b"", data] if self.is_delimited else [data]

    def say(self, kind: Kind, **fields: object) -> list[bytes]:
        """Make the next reply and return its frames."""
        return self.frames(encode(self.reply(kind, **fields)))

    def fitting(self, data: bytes, spare: int) -> list[bytes]:
        """Return the frames of the last reply; a short one that says so where a slow reader leaves no room for it."""
        if not self.peer.outbox.room(len(data)) or (self.peer.outbox.stuck and len(data) > spare):
            lost = Busy("the reply was lost: this client reads too slowly", remedy="Ask for it: `show` or `wait`.")
            return self.say("error", error=lost.as_dict())
        return self.frames(data)

    def event_frames(self, event: str, keys: Mapping[str, object]) -> list[bytes] | None:
        """Make a reply of an event and return its frames; None: the peer takes no events, or has no room.

        The `attempt` of later replies follows the mission's.
        """
        attempt = keys.get("attempt")
        if event == "mission.status" and isinstance(attempt, int):
            self.attempt = max(1, attempt)
        if self.takes_one_reply or self.peer.outbox.full:
            self._seq += 1  # it is lost, and that shows; nothing is written down for nobody
            return None
        return self.say("event", event=event, data=dict(keys))

    def acknowledgement_frames(self, told: Mapping[str, Any]) -> list[bytes]:
        """Make a reply of an acknowledgement, which may name a mission's attempt, and return its frames."""
        self.attempt = max(1, int(told.get("attempt", 1)))
        return self.say("ack", data=dict(told))


class RequestCounts:
    """Counts requests and their bytes. A guest has a share of both, over however many connections it asks."""

    def __init__(self, total: int, size: int) -> None:
        self._total, self._size = total, size
        self.under_way = 0
        self._bytes = 0
        self._of: Counter[str] = Counter()
        self._bytes_of: Counter[str] = Counter()

    def objection(self, came_in: str, size: int) -> Busy | None:
        """Find a reason to refuse a request of a client, as the gate names it; None if there is none."""
        if self.under_way >= self._total or self._bytes + size > self._size:
            return busy("too many requests are under way")
        user = guest(came_in)
        if user is None:
            return None
        if self._of[user] >= guest_share(self._total) or self._bytes_of[user] + size > guest_share(self._size):
            return busy(f"too many requests of the {user} are under way")
        return None

    def add(self, came_in: str, size: int) -> None:
        """Count a request that begins."""
        self._change(came_in, 1, size)

    def remove(self, came_in: str, size: int) -> None:
        """Give back the room of a request that has ended."""
        self._change(came_in, -1, -size)

    def _change(self, came_in: str, requests: int, size: int) -> None:
        self.under_way += requests
        self._bytes += size
        user = guest(came_in)
        if user is not None:
            self._of[user] += requests
            self._bytes_of[user] += size
            if not self._of[user]:
                del self._of[user], self._bytes_of[user]


def busy(why: str) -> Busy:
    """Return the refusal of a request for want of room."""
    return Busy(why, remedy="Wait for one of them, then ask again.")
