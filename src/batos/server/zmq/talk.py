"""One request under way: its numbered replies, and the peer that they go to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batos.client.wire.protocol import VERSION, Kind, encoded
from batos.errors import Busy
from batos.server.zmq.outbox import Outbox


@dataclass(slots=True, eq=False)
class Peer:
    """Somebody who is connected and has asked something that is under way."""

    identity: bytes
    user: str
    outbox: Outbox
    talks: dict[str, Talk] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Talk:
    """A request and its replies. `single`: a REQ peer, which takes one reply and gets the last one alone."""

    peer: Peer
    name: str | None
    delimited: bool
    single: bool
    size: int = 0
    attempt: int = 1
    #: Its last reply is being made: nothing may follow.
    ending: bool = False
    task: asyncio.Task[None] | None = None
    _seq: int = 0

    def reply(self, kind: Kind, **fields: Any) -> dict[str, Any]:
        """The next reply; it has the next number, whether it reaches the peer or not."""
        self._seq += 1
        return {"v": VERSION, "id": self.name, "kind": kind, "seq": self._seq, "attempt": self.attempt, **fields}

    def frames(self, data: bytes) -> list[bytes]:
        """An encoded reply as it goes over the wire after the peer's identity."""
        return [b"", data] if self.delimited else [data]

    def say(self, kind: Kind, **fields: Any) -> list[bytes]:
        """The next reply, as it goes over the wire."""
        return self.frames(encoded(self.reply(kind, **fields)))

    def fitting(self, data: bytes, spare: int) -> list[bytes]:
        """The last reply; where a reader so slow has no room for it, or all have not, a short one that says so."""
        if not self.peer.outbox.room(len(data)) or (self.peer.outbox.stuck and len(data) > spare):
            lost = Busy("the reply was lost: this client reads too slowly", remedy="Ask for it: `show` or `wait`.")
            return self.say("error", error=lost.as_dict())
        return self.frames(data)

    def heard(self, event: str, keys: Mapping[str, Any]) -> list[bytes] | None:
        """An event as a reply; `attempt` follows the mission's. None: its peer takes none, or has no room for it."""
        attempt = keys.get("attempt")
        if event == "mission.status" and isinstance(attempt, int):
            self.attempt = max(1, attempt)
        if self.single or self.peer.outbox.full:
            self._seq += 1  # it is lost, and that shows; nothing is written down for nobody
            return None
        return self.say("event", event=event, data=dict(keys))

    def acknowledged(self, told: Mapping[str, Any]) -> list[bytes]:
        """An acknowledgement as a reply; it may say at which attempt a mission is."""
        self.attempt = max(1, int(told.get("attempt", 1)))
        return self.say("ack", data=dict(told))
