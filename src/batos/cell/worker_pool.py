"""Worker processes: a warm pool, in which one that dies is replaced; suspended runs are kept as differences."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from batos.cell.values import CellLimits
from batos.protocol.errors import CellKilled, CellMissing

if TYPE_CHECKING:
    import pydantic_monty as monty

#: Methods of which a first dump is kept to tell others from: 32 KB each at most, which is what zlib looks back on.
_KEPT: Final = 64
_WINDOW: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Dump:
    """A suspended run: it never leaves this process, and is good for the interpreter that made it alone."""

    packed: bytes
    like: bytes

    @property
    def whole(self) -> bytes:
        """Return the bytes that the interpreter loads."""
        return zlib.decompressobj(zdict=self.like).decompress(self.packed)


class Dumps:
    """Packs dumps; 31 KB of a small method become about 1 KB, in a fifth of a millisecond."""

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}

    def pack(self, digest: str, whole: bytes) -> Dump:
        """Compress a dump of the program with this digest. Any thread may call it."""
        like = self._first.get(digest)
        if like is None:
            if len(self._first) >= _KEPT:
                self._first = {}
            like = self._first.setdefault(digest, whole[-_WINDOW:])
        packer = zlib.compressobj(level=1, zdict=like)
        return Dump(packer.compress(whole) + packer.flush(), like)


T = TypeVar("T")
#: A worker that has served so many calls is replaced: what one leaves behind in its heap is bounded.
_CALLS_A_WORKER: Final = 1000
#: Seconds that the pool's own watchdogs leave to ours.
_GRACE: Final = 1.0


def interpreter() -> ModuleType:
    """Load the bindings of the interpreter: 10 MB of native code, loaded only to run a method."""
    return importlib.import_module("pydantic_monty")


class Worker:
    """A worker process lent to one run for one or more turns. Its work is done in threads."""

    def __init__(self, pool: monty.Monty, kinds: ModuleType, limits: CellLimits, policy: Mapping[str, object]) -> None:
        self.kinds = kinds
        self.session: monty.MontySession
        self.collected: monty.CollectString = kinds.CollectString(limits.output)
        self._entered = False
        self._pid: int | None = None
        self._doomed = ""
        self._lock = threading.Lock()
        self._pool = pool
        self._limits = limits
        self._policy = policy

    def enter(self) -> None:
        """Take a process from the pool, in a thread. CellMissing when none can be started."""
        for last in (False, True):
            self.session = self._pool.checkout(limits=_limits(self._limits), os_policy=_policy(self._policy))
            try:
                self.session.__enter__()
                break
            except self.kinds.MontyCrashedError as error:  # one that died while it was idle: there are others
                if last:
                    raise CellMissing(f"the cell's workers die as they start: {error}") from None
            except (RuntimeError, OSError, self.kinds.MontyError) as error:
                raise CellMissing(f"no worker of the cell starts: {error}") from None
        with self._lock:
            self._entered, self._pid = True, self.session.worker_pid
            doomed = self._doomed
        if doomed:
            self.leave()
            raise CellKilled("the run was given up", doomed)

    def kill(self, why: str) -> None:
        """Kill the process now, whatever it does, from any thread; what waits for it is told `why`."""
        with self._lock:
            self._doomed = self._doomed or why
            if self._entered and self._pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)

    def cpu(self) -> float | None:
        """Return the CPU seconds that its process has used; None where the system does not tell them."""
        if sys.platform != "linux" or self._pid is None:
            return None
        try:
            # The result of clock_getcpuclockid(3), for which Python has no name.
            return time.clock_gettime(~self._pid << 3 | 2)
        except OSError:  # the process is gone
            return None

    @property
    def kill_reason(self) -> str:
        """Return the reason why the process was killed, "" if it was not."""
        return self._doomed

    def leave(self) -> None:
        """Give the process back to the pool; it forgets everything. Harmless when done twice."""
        with self._lock:
            entered, self._entered = self._entered, False
        if entered:
            with contextlib.suppress(self.kinds.MontyError):  # a dead one is replaced by the pool
                self.session.__exit__(None, None, None)


def _policy(policy: Mapping[str, object]) -> monty.OSPolicy:
    return cast("monty.OSPolicy", dict(policy))


def _limits(limits: CellLimits) -> monty.ResourceLimits:
    return {
        "max_memory": limits.memory,
        "max_feed_duration_secs": limits.seconds,
        "max_turn_duration_secs": limits.turn_seconds,
        "max_recursion_depth": limits.recursion,
        # Names that are looked up in vain count too, so that this is more than the messages, which we count.
        "max_suspensions": limits.messages * 2 + 100,
        "max_total_sleep_secs": 0,
    }


class WorkerPool:
    """At most `count` processes, started when the first is needed. All methods are for the event loop."""

    def __init__(
        self,
        count: int,
        limits: CellLimits,
        *,
        binary: Path | None = None,
        load: Callable[[], ModuleType] = interpreter,
    ) -> None:
        self.dumps = Dumps()
        self._count = max(count, 1)
        self._limits = limits
        self._binary = binary
        self._load = load
        self._free = asyncio.Semaphore(self._count)
        self._opening = asyncio.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._pool: monty.Monty | None = None
        self._kinds: ModuleType | None = None
        self._closed = False

    async def take(self, policy: Mapping[str, object]) -> Worker:
        """Wait in order for the right to use a process; the first work takes the process itself.

        Raises: CellMissing: the cell is closed or cannot start.
        """
        await self._free.acquire()
        try:
            await self._open()
            if self._closed or self._pool is None or self._kinds is None:
                raise CellMissing("the cell is closed")
            return Worker(self._pool, self._kinds, self._limits, policy)
        except BaseException:
            self._free.release()
            raise

    def give(self, worker: Worker) -> None:
        """Give it back when it does no work."""
        worker.leave()
        self._free.release()

    @property
    def is_wanted(self) -> bool:
        """Test if somebody waits for a process."""
        return self._free.locked()

    async def work(self, worker: Worker, function: Callable[[], T]) -> T:
        """Run a function in a thread, with a deadline of wall time. When it fails the worker is given back, killed if
        the error is CellKilled; when this is cancelled too, as soon as its thread ends, which killing brings about.
        """
        if self._threads is None:
            raise CellMissing("the cell is closed")
        loop = asyncio.get_running_loop()
        done = self._threads.submit(function)
        deadline = loop.call_later(self._limits.wall_seconds, worker.kill, "hang")
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            worker.kill("given up")
            self._give_when(done, worker, loop)
            raise
        except BaseException as error:
            if isinstance(error, CellKilled):
                worker.kill(error.limit)
            self.give(worker)
            raise
        finally:
            deadline.cancel()

    def _give_when(self, done: Future[T], worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        def give(_: Future[T]) -> None:
            worker.leave()
            with contextlib.suppress(RuntimeError):  # the loop may be closed before a thread ends
                loop.call_soon_threadsafe(self._free.release)

        done.add_done_callback(give)

    async def _open(self) -> None:
        async with self._opening:
            if self._pool is not None or self._closed:
                return
            threads = ThreadPoolExecutor(self._count, thread_name_prefix="batos-cell")
            try:
                self._kinds, self._pool = await asyncio.wrap_future(threads.submit(self._start))
            except BaseException:
                threads.shutdown(wait=False)
                raise
            self._threads = threads

    def _start(self) -> tuple[ModuleType, monty.Monty]:
        try:
            kinds = self._load()
        except (ImportError, OSError) as error:
            raise CellMissing(f"the cell's interpreter cannot be loaded: {error}") from None
        pool = None
        try:
            pool = kinds.Monty(
                binary_path=self._binary,
                min_processes=1,
                max_processes=self._count,
                request_timeout=self._limits.wall_seconds + _GRACE,
                max_checkouts_per_worker=_CALLS_A_WORKER,
                turn_duration_limit_grace=_GRACE / 2,
                feed_duration_limit_grace=_GRACE / 2,
            )
            pool.__enter__()
            with pool.checkout() as session:
                if session.feed_run("1 + 1") != 2:
                    raise CellMissing("the cell's interpreter cannot count")
        except (kinds.MontyError, RuntimeError, OSError) as error:
            if pool is not None:
                _stop(pool)
            raise CellMissing(f"the cell's interpreter does not run: {error}") from None
        return kinds, pool

    async def aclose(self) -> None:
        """Stop all processes; who works is killed."""
        self._closed = True
        async with self._opening:
            pool, threads, self._pool, self._threads = self._pool, self._threads, None, None
        if pool is None or threads is None:
            return
        for _ in range(self._count):  # whoever works ends first: nothing is torn from under a thread
            await self._free.acquire()
        for _ in range(self._count):
            self._free.release()
        await asyncio.to_thread(threads.shutdown)
        await asyncio.to_thread(_stop, pool)


def _stop(pool: monty.Monty) -> None:
    with contextlib.suppress(Exception):  # it is over, however it ends
        pool.__exit__(None, None, None)
