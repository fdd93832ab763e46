"""An answer as it is written, token by token: for a program with an event loop, and for one without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

from batos.client.named_documents import Mission, Token
from batos.client.portal import Portal
from batos.client.wire.pending import OnAcknowledged, OnEvent

_Asking: TypeAlias = Callable[[OnEvent, OnAcknowledged], Coroutine[Any, Any, Mission]]


class AsyncStream:
    """An answer as it is written: `async for token in stream`, then `await stream.mission()`."""

    def __init__(self, asking: _Asking) -> None:
        self._tokens: asyncio.Queue[Token | None] = asyncio.Queue()
        self._asking = asking
        self._task: asyncio.Task[Mission] | None = None
        self._ended = False
        self._text = ""
        self._id = ""

    @property
    def text(self) -> str:
        """Return the text of the answer that was read so far and was not retracted."""
        return self._text

    @property
    def id(self) -> str:
        """Return the mission's id; empty before the server has accepted it."""
        return self._id

    def __aiter__(self) -> Self:
        """Return the stream itself, which can be read once."""
        return self

    async def __anext__(self) -> Token:
        """Return the next piece. Raises the BatosError of the request; the pieces of a failed mission just end."""
        if self._task is None:
            self._task = self._begin()
        token = None if self._ended else await self._tokens.get()
        if token is None:
            if not self._ended:
                self._ended = True
                await self.mission()
            raise StopAsyncIteration
        self._text = "" if token.retracted else self._text + token
        return token

    async def mission(self) -> Mission:
        """Wait for the mission's end and return the mission with any status. Raises the BatosError of the request."""
        if self._task is None:
            self._task = self._begin()
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Stop listening; the mission continues at the server."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Return the stream, which is closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.close()

    def _begin(self) -> asyncio.Task[Mission]:
        task = asyncio.ensure_future(self._asking(self._on_event, self._on_acknowledged))
        task.add_done_callback(lambda _: self._tokens.put_nowait(None))
        return task

    def _on_acknowledged(self, told: Mapping[str, object]) -> None:
        self._id = str(told["mission"])

    def _on_event(self, event: str, keys: Mapping[str, object]) -> None:
        if event == "mission.token":
            self._tokens.put_nowait(Token(str(keys["text"])))
        elif event == "mission.retracted":
            self._tokens.put_nowait(Token(retracted=True))


class Stream:
    """An answer as it is written: `for token in stream`, then `stream.mission()`."""

    def __init__(self, portal: Portal, twin: AsyncStream) -> None:
        self._portal, self._twin = portal, twin

    @property
    def text(self) -> str:
        """Return the text of the answer that was read so far and was not retracted."""
        return self._twin.text

    @property
    def id(self) -> str:
        """Return the mission's id; empty before the server has accepted it."""
        return self._twin.id

    def __iter__(self) -> Self:
        """Return the stream itself, which can be read once."""
        return self

    def __next__(self) -> Token:
        """Return the next piece. Raises the BatosError of the request; the pieces of a failed mission just end."""
        try:
            return self._portal.run(self._twin.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def mission(self) -> Mission:
        """Wait for the mission's end and return the mission with any status. Raises the BatosError of the request."""
        return self._portal.run(self._twin.mission)

    def close(self) -> None:
        """Stop listening; the mission continues at the server."""
        self._portal.run(self._twin.close)

    def __enter__(self) -> Self:
        """Return the stream, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        self.close()
