"""The bulletin: every event but the tokens and citations, numbered, sent to watchers under its mission's topic."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, cast

import zmq
import zmq.asyncio

from batos.client.wire.addresses import Address
from batos.client.wire.listening import bind_socket
from batos.protocol.errors import ConfigError
from batos.protocol.wire_messages import VERSION, encode
from batos.server.zmq.auth import EVENTS, Gate

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
