"""A request under way at a client: it handles the replies and the loss of the server; and files that are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from batos.protocol.errors import BatosError, NoServer
from batos.protocol.wire_messages import error_of

if TYPE_CHECKING:
    from batos.client.server_connection import ServerConnection
import base64
from collections.abc import Sequence
from typing import Protocol

from batos.protocol.brief import File
from batos.protocol.errors import BriefError, Busy
from batos.protocol.wire_messages import PIECE_BYTES

OnEvent: TypeAlias = Callable[[str, Mapping[str, object]], None]
OnAcknowledged: TypeAlias = Callable[[Mapping[str, object]], None]


def nobody(*_told: object) -> None:
    """Do nothing with an event: a caller need not listen."""


class PendingCall:
    """A request and its caller. An error of a listener is raised for that caller.

    `once` is its verb where it may not be asked a second time: what it does may have been done already.
    """

    def __init__(
        self, data: bytes, on_event: OnEvent | None, on_acknowledged: OnAcknowledged | None, once: str = ""
    ) -> None:
        self.data = data
        self._once = once
        self._sent = False
        self.done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._on_event = on_event or nobody
        self._on_acknowledged = on_acknowledged or nobody
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
            if told.get("code") != NoServer.code:
                self.done.set_exception(error_of(told))
            elif self._once:
                self._leave_open()
            # Else it is a server that stops: it is asked again where it is back.

    def _event(self, event: str, keys: Mapping[str, object]) -> None:
        if event == "beat":
            return
        if event in ("mission.token", "mission.retracted"):
            self._streamed = event == "mission.token"
        self._on_event(event, keys)

    def send(self, connection: ServerConnection) -> None:
        """Send the request; over a connection that has just been lost it is sent when that is back."""
        self._sent = connection.send(self.data) or self._sent

    def _leave_open(self) -> None:
        """End the call without knowing whether it was done."""
        what = f"the server stopped before it told what came of {self._once}, which may have been done"
        self.fail(NoServer(what, remedy="Look whether it was, before you ask again."))

    def on_lost(self, endpoint: str) -> None:
        """Tell the listener that the server is gone; a request that may not be asked twice ends here."""
        self._lost = True
        if self._once and self._sent:
            self._leave_open()
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


class Asks(Protocol):
    """Asks one thing of a mind and returns its result."""

    async def __call__(self, verb: str, args: Mapping[str, object], /) -> dict[str, object]:
        """Ask it."""
        ...


async def send_files(ask: Asks, files: Sequence[File]) -> list[dict[str, object]]:
    """Hand over the bytes of files that the mind lacks; return the references that a brief carries."""
    for file in files:
        for tries in range(3):
            if await _sent(ask, file, again=tries > 0):
                break
        else:
            raise BriefError(f"{file.ref.name} did not arrive whole", field="attachments", remedy="Send it again.")
    return [file.ref.model_dump() for file in files]


async def _sent(ask: Asks, file: File, *, again: bool) -> bool:
    """Send the part of a file that the mind lacks, or `again` all of it; return True if that completes it."""
    told = await _piece(ask, file, 0, b"")
    at = 0 if again else int(told["have"])
    while "size" not in told and at < len(file.data):
        piece = file.data[at : at + PIECE_BYTES]
        try:
            told = await _piece(ask, file, at, piece)
        except BriefError as error:
            if error.field == "attachments" and "agree" in error.message:
                return False
            raise
        at += len(piece)
    return "size" in told


async def _piece(ask: Asks, file: File, offset: int, piece: bytes) -> dict[str, Any]:
    args = {"sha256": file.ref.sha256, "offset": offset, "data": base64.b64encode(piece).decode()}
    for pause in (0.1, 0.5, 2.0):
        try:
            return await ask("attach", args)
        except Busy:
            await asyncio.sleep(pause)
    return await ask("attach", args)
