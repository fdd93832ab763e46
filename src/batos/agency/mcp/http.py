"""The way to a server at an address: each message is a POST, and its answer JSON or a stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from batos import __version__
from batos.agency.api_transport import gate_of
from batos.agency.look_ups.page_fetching import FetchedPage, Fetcher, FetchLimits, SentBody
from batos.agency.look_ups.web_addresses import AddressGate, ServiceGate, WebAddress, is_public
from batos.agency.mcp import frames
from batos.agency.mcp.frames import MOST_BYTES, EventReader, Frame, RpcFailed
from batos.protocol.errors import LookUpFailed

_SESSION = "mcp-session-id"
_ACCEPT = "application/json, text/event-stream"


def make_fetcher(seconds: float) -> Fetcher:
    """Return what posts: no redirection is followed, and no more than the limits is read."""
    limits = FetchLimits(whole=seconds, wire=MOST_BYTES, decoded=MOST_BYTES, redirections=0)
    return Fetcher(f"batos/{__version__}", limits=limits)


def gate_for(base: WebAddress) -> AddressGate:
    """Return the gate of a server: one of this machine or its network by its address, any other by its public host."""
    is_near = base.host == "localhost" or (base.is_literal and not is_public(base.host))
    return ServiceGate(base) if is_near else gate_of(base)


@dataclass(slots=True)
class HttpTransport:
    """Speaks with the server at an address; `secret` are the headers by which it knows the person."""

    address: WebAddress
    fetcher: Fetcher
    secret: Mapping[str, str] = field(default_factory=dict)
    #: The session that a server of the older era began.
    session: str = ""

    async def exchange(self, frame: Frame, headers: Mapping[str, str]) -> Frame:
        """Post a request, and return the response that has its id. Raises: LookUpFailed: there is none."""
        found: list[Frame] = []

        def take(data: bytes) -> bool:
            message = frames.decode(data)
            if message is not None and frames.is_response(message, frame["id"]):
                found.append(message)
            elif message is not None and frames.is_request(message) and message["method"] != "ping":
                raise LookUpFailed(f"it asks for {str(message['method'])[:60]}, which is refused")
            return bool(found)

        events = EventReader()
        page = await self._post(frame, headers, lambda piece: any(map(take, events.feed(piece))))
        if not found and page.media_type != "text/event-stream":
            take(page.body)
        if found:
            return found[0]
        told = frames.decode(page.body) or {}
        if "error" in told:  # an error of the transport itself has no id
            return told
        if page.status in (401, 403) or page.status >= 500 or page.status < 400:
            remedy = (
                "A secret is a line in HOME/secrets/NAME, with --secret-header." if page.status in (401, 403) else ""
            )
            raise LookUpFailed(f"{self.address.origin} answered {page.status} and no message", remedy=remedy)
        raise RpcFailed({"code": page.status, "message": f"status {page.status}"})

    async def notify(self, frame: Frame, headers: Mapping[str, str]) -> None:
        """Post a notification. Raises: LookUpFailed: the server is not reached."""
        await self._post(frame, headers, lambda _: False)

    async def _post(self, frame: Frame, headers: Mapping[str, str], ends: frames.Ends) -> FetchedPage:
        body = SentBody(frames.encode(frame), ends=ends)
        more = {"Accept": _ACCEPT, "Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
        page = await self._send(body, more)
        self.session = page.headers.get(_SESSION, self.session)[:1_024]
        return page

    async def _send(self, body: SentBody, more: Mapping[str, str]) -> FetchedPage:
        known = {"Mcp-Session-Id": self.session} if self.session else {}
        return await self.fetcher.fetch(
            self.address, gate_for(self.address), (), {**more, **known, **self.secret}, body
        )

    async def close(self) -> None:
        """Let a session of the older era end."""
        if self.session:
            await self._send(SentBody(b"", "DELETE"), {})
