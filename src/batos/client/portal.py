"""A thread with its own event loop, which runs asynchronous code for a synchronous program."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, ParamSpec, TypeVar

from batos.protocol.errors import NoServer, UsageError

P = ParamSpec("P")
T = TypeVar("T")


class Portal:
    """Runs coroutines on its thread's loop, for any number of threads at once. The thread begins with the first one.

    The thread is a daemon: a program that forgot to close a client ends all the same. `serve` runs what keeps its loop.
    """

    def __init__(self, serve: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
        self._serve = serve
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._over: asyncio.Event
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._closed = False
        self._process = os.getpid()

    def run(self, work: Callable[P, Awaitable[T]], *args: P.args, **more: P.kwargs) -> T:
        """Return the result of `work(...)`, awaited on the loop. An interrupt here (Ctrl-C) cancels it there."""

        async def await_work() -> T:
            return await work(*args, **more)

        loop = self.running()
        future = asyncio.run_coroutine_threadsafe(await_work(), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def each(self, work: Callable[P, AsyncIterator[T]], *args: P.args, **more: P.kwargs) -> Generator[T, None, None]:
        """Yield the items of the iterator of `work(...)`, one by one, to its end."""
        iterator = work(*args, **more)
        try:
            while True:
                try:
                    yield self.run(iterator.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            if not self._closed:
                self.run(_close, iterator)

    @contextmanager
    def holding(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enter an asynchronous context on the loop, and leave it there."""
        held = in_a_task(context)
        value = self.run(held.__aenter__)
        try:
            yield value
        finally:
            self.run(held.__aexit__, None, None, None)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Await `last()` on the loop, end the thread, and raise what ended it; a second call does nothing.

        Nor does one in a child of the process: the thread is not there.
        """
        if os.getpid() != self._process:
            return
        with self._guard:
            thread, began = self._thread, not self._closed
            self._closed = True
        if thread is None or not began:
            return
        loop = self._ready.result()
        try:
            if last is not None:
                asyncio.run_coroutine_threadsafe(last(), loop).result()
        finally:
            loop.call_soon_threadsafe(self._over.set)
            thread.join()
        if self._failure is not None:
            raise self._failure

    def running(self) -> asyncio.AbstractEventLoop:
        """Return the loop, whose thread begins with the first call.

        Raises: NoServer: it was closed. UsageError: this is a child of the process that made it.
        """
        check_process(self._process)  # before the lock, which nobody gives back after a fork
        with self._guard:
            if self._closed:
                raise NoServer("this client was closed")
            if self._thread is threading.current_thread():
                raise RuntimeError("a listener runs in the client's own thread: it cannot wait for the client there")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="batos-client", daemon=True)
                self._thread.start()
            return self._ready.result()

    def _run(self) -> None:
        try:
            self._serve(self._keep())
        except BaseException as error:  # raised by whoever ends the thread
            self._failure = error

    async def _keep(self) -> None:
        """Keep the loop until the end; whoever runs this cancels what is left on it."""
        self._over = asyncio.Event()
        self._ready.set_result(asyncio.get_running_loop())
        await self._over.wait()


def check_process(process: int) -> None:
    """Raise UsageError if this is not the process of that number: a fork has neither threads nor connections of it."""
    if os.getpid() != process:
        raise UsageError(
            "this client was made in another process", remedy="Make a client in each process, after the fork."
        )


@asynccontextmanager
async def in_a_task(context: AbstractAsyncContextManager[T]) -> AsyncGenerator[T, None]:
    """Enter and leave the context in one task of its own, whichever tasks enter and leave this."""
    ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        try:
            async with context as value:
                ready.set_result(value)
                await over.wait()
        except BaseException as error:  # whoever waits for the beginning is to get it, and no one else
            if ready.done():
                raise
            ready.set_exception(error)

    task = asyncio.create_task(hold())
    try:
        yield await ready
    finally:
        over.set()
        await task


async def _close(iterator: AsyncIterator[Any]) -> None:
    """Close a generator whose reader has left."""
    if (close := getattr(iterator, "aclose", None)) is not None:
        await close()
