"""A request under way at a client: it handles the replies, and the loss of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from batos.client.wire.protocol import error_of
from batos.errors import BatosError

OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]
OnAcknowledged: TypeAlias = Callable[[Mapping[str, Any]], None]


def _nobody(*_told: Any) -> None:
    """Do nothing with an event: a caller need not listen."""


class PendingCall:
    """A request and its caller. An error of a listener is raised for that caller."""

    def __init__(self, data: bytes, on_event: OnEvent | None, on_acknowledged: OnAcknowledged | None) -> None:
        self.data = data
        self.done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._on_event = on_event or _nobody
        self._on_acknowledged = on_acknowledged or _nobody
        self._mission: str | None = None
        self._streamed = False
        self._lost = False

    def take(self, reply: Mapping[str, Any]) -> None:
        """Take in a reply to the request."""
        if self.done.done():
            return
        try:
            self._take(str(reply.get("kind")), reply, reply.get("data") or {})
        except Exception as error:  # the listener's: it is for who waits, and no other call is harmed
            self.done.set_exception(error)

    def _take(self, kind: str, reply: Mapping[str, Any], data: dict[str, Any]) -> None:
        if kind == "ack":
            if self._mission is None:
                self._mission = str(data.get("mission"))
                self._on_acknowledged(data)
        elif kind == "event":
            self._event(str(reply.get("event")), data)
        elif kind == "result":
            self.done.set_result(data)
        elif kind == "error":
            told = reply.get("error") or {}
            if told.get("code") != "no_server":  # a server that stops: it is asked again where it is back
                self.done.set_exception(error_of(told))

    def _event(self, event: str, keys: Mapping[str, Any]) -> None:
        if event == "beat":
            return
        if event in ("mission.token", "mission.retracted"):
            self._streamed = event == "mission.token"
        self._on_event(event, keys)

    def on_lost(self, endpoint: str) -> None:
        """Tell the listener that the server is gone."""
        self._lost = True
        self._say("connection.lost", endpoint)

    def on_restored(self, endpoint: str) -> None:
        """Tell the listener that the server is back and the request asked again: its stream begins anew."""
        if self._lost:
            self._lost = False
            self._say("connection.restored", endpoint)

    def _say(self, event: str, endpoint: str) -> None:
        if self.done.done():
            return
        try:
            if event == "connection.lost" and self._streamed:
                self._streamed = False
                self._on_event("mission.retracted", {"mission": self._mission})
            self._on_event(event, {"endpoint": endpoint})
        except Exception as error:  # the listener's, as above
            self.done.set_exception(error)

    def fail(self, error: BatosError) -> None:
        """End the call with an error: nothing more will come."""
        if not self.done.done():
            self.done.set_exception(error)

    def leave(self) -> None:
        """End a call that nobody waits for any more."""
        if self.done.done() and not self.done.cancelled():
            self.done.exception()  # it was told, or nobody was there to be told
        self.done.cancel()
