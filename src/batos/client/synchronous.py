"""Client: `with Client() as client: print(client.ask("Why?").answer)`; each call is that of the asynchronous client.

A call runs on the event loop of a thread that the client has, so that there is one way to a server and not two.
Listeners (`on_event`) are called in that thread.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from batos.client.asynchronous import AsyncClient, Attached
from batos.client.line import Patience
from batos.client.named_documents import Document
from batos.client.portal import Portal
from batos.client.streams import Stream
from batos.client.wire.keys import Credentials

P = ParamSpec("P")
T = TypeVar("T")


def _wait_for(method: Callable[Concatenate[AsyncClient, P], Awaitable[T]]) -> Callable[Concatenate[Client, P], T]:
    """Return the method of a client that waits for this one of its twin."""

    @functools.wraps(method)
    def run(client: Client, /, *args: P.args, **more: P.kwargs) -> T:
        return client.portal.run(method, client.twin, *args, **more)

    return run


class Client:
    """A client of a BAT OS server for a program without an event loop: its calls are those of AsyncClient.

    Client() speaks to the server of the default home (or to the one that the setting `server` names),
    Client(home) to that home's, Client(server=...) to tcp://127.0.0.1:PORT (with the home's token) or to the
    one that a key file is for (docs/protocol.md). The first call connects; `with` connects at once.
    """

    def __init__(
        self, home: Path | str | None = None, *, server: str | None = None, patience: Patience | None = None
    ) -> None:
        self._take(AsyncClient(home, server=server, patience=patience))

    def _take(self, twin: AsyncClient) -> None:
        self.portal, self.twin = Portal(), twin
        # The client is closed at the latest when the program ends, or when nobody refers to it any more.
        self._finalizer = weakref.finalize(self, self.portal.close, twin.close)

    @classmethod
    def by(cls, endpoint: str, credentials: Credentials, patience: Patience | None = None) -> Self:
        """Make a client of the server at an address, with these credentials."""
        made = cls.__new__(cls)
        made._take(AsyncClient.by(endpoint, credentials, patience))
        return made

    def __enter__(self) -> Self:
        """Connect. NoServer: none runs or answers; Unauthorised: it does not know this client."""
        self.portal.run(self.twin.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection; accepted missions continue at the server."""
        self.close()

    def close(self) -> None:
        """Close the connection; calls under way fail with NoServer."""
        self._finalizer()

    def stream(self, text: str, *, files: Sequence[Attached] = (), as_of: str | None = None, **brief: object) -> Stream:
        """Ask and read the answer as it is written, token by token."""
        return Stream(self.portal, self.twin.stream(text, files=files, as_of=as_of, **brief))

    def watch(self, topics: Sequence[str] = ("",)) -> Generator[Document, None, None]:
        """Yield notices of what happens, as `AsyncClient.watch` does."""
        yield from self.portal.each(self.twin.watch, topics)

    ask = _wait_for(AsyncClient.ask)
    submit = _wait_for(AsyncClient.submit)
    wait = _wait_for(AsyncClient.wait)
    send = _wait_for(AsyncClient.send)
    attach = _wait_for(AsyncClient.attach)
    missions = _wait_for(AsyncClient.missions)
    show = _wait_for(AsyncClient.show)
    turns = _wait_for(AsyncClient.turns)
    inspect = _wait_for(AsyncClient.inspect)
    why = _wait_for(AsyncClient.why)
    status = _wait_for(AsyncClient.status)
    hello = _wait_for(AsyncClient.hello)
    cancel = _wait_for(AsyncClient.cancel)
    pause = _wait_for(AsyncClient.pause)
    resume = _wait_for(AsyncClient.resume)
    genesis = _wait_for(AsyncClient.genesis)
    undo = _wait_for(AsyncClient.undo)
    redo = _wait_for(AsyncClient.redo)
    remember = _wait_for(AsyncClient.remember)
    recall = _wait_for(AsyncClient.recall)
    forget = _wait_for(AsyncClient.forget)
    grants = _wait_for(AsyncClient.grants)
    effects = _wait_for(AsyncClient.effects)
    approvals = _wait_for(AsyncClient.approvals)
    approve = _wait_for(AsyncClient.approve)
    reject = _wait_for(AsyncClient.reject)
    request = _wait_for(AsyncClient.request)
    call = _wait_for(AsyncClient.call)
