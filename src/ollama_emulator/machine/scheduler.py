"""The daemon's scheduler: one runner for each base, loads one by one, keep-alive, eviction, and a bounded queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from ollama_emulator.clocks import Clock
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.library.models import Model
from ollama_emulator.machine import memory
from ollama_emulator.machine.memory import Footprint, OutOfMemory
from ollama_emulator.machine.runners import Ask, Engine, ModelRunner
from ollama_emulator.options import FOR_EVER, DaemonSettings

BUSY = "server busy, please try again.  maximum pending requests exceeded"
GONE = "llama-server process has terminated: exit status 1"
KILLED = "llama-server process has terminated: signal: killed"
NO_MEMORY = "llama-server reported out-of-memory during startup: cudaMalloc failed: out of memory"
STALLED = "timed out waiting for llama-server to start - "
_MODELS_A_GPU = 3
_CENTURY_NS = 100 * 365 * 86400 * 10**9  # a keep-alive this long sets no timer


@dataclass(slots=True)
class Trouble:
    """A fault of the next load: `error` for its first `attempts`, `seconds` of delay, the `share` of it on the card."""

    error: str = ""
    attempts: int = 1
    seconds: float = 0.0
    share: float = 1.0


@dataclass(slots=True)
class _Pending:
    """A request that still waits for a runner; a client that leaves cancels `answer`."""

    ask: Ask
    keep_alive_ns: int | None
    answer: asyncio.Future[ModelRunner]
    trouble: Trouble | None
    retried: bool = False


@dataclass(slots=True)
class Lease:
    """A request's hold on its runner, for an `async with`."""

    scheduler: Scheduler
    ask: Ask
    keep_alive_ns: int | None
    _runner: ModelRunner | None = None

    async def __aenter__(self) -> ModelRunner:
        self._runner = await self.scheduler.acquire(self.ask, self.keep_alive_ns)
        return self._runner

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self.scheduler.release(self._runner)


@dataclass(slots=True)
class Scheduler:
    """The loaded runners, by base, and the queue. `vram` is in bytes (0: no GPU), `load_s` the seconds of a load.

    `loads` counts the loads. `trouble` hits the next request for a runner, `delay_s` delays the next load by seconds.
    There are no timers: an expired runner is removed when runners are next looked at. `open_engine` loads the weights
    of a real model, with a number of slots.
    """

    settings: DaemonSettings
    clock: Clock
    vram: int = 8 * memory.GIB
    load_s: float = 0.0
    runners: dict[str, ModelRunner] = field(default_factory=dict)
    loads: int = 0
    trouble: Trouble | None = None
    delay_s: float = 0.0
    loading: Ask | None = None
    open_engine: Callable[[Ask, int], Awaitable[Engine | None]] | None = None
    _queue: deque[_Pending] = field(default_factory=deque)
    _worker: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _unloads: int = 0
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def default_window(self) -> int:
        """Return the window in tokens if neither the request, the model nor the settings give one."""
        return memory.default_window(self.vram)

    def ask(self, model: Model, options: Mapping[str, Any], shift: bool | None = None) -> Ask:
        """Return the needs of a request from its merged options."""
        window = self.settings.window or self.default_window
        return Ask.from_options(model, options, window, bool(self.settings.window), shift)

    def runner(self, ask: Ask, keep_alive_ns: int | None) -> Lease:
        """Return a hold on a runner. Raises, when entered: ApiError: the queue is full or the load fails."""
        return Lease(self, ask, keep_alive_ns)

    async def acquire(self, ask: Ask, keep_alive_ns: int | None) -> ModelRunner:
        """Return a runner for a request, loaded if needed, held until `release`. Cancelling aborts its load."""
        trouble, self.trouble = self.trouble, None
        resident = self._resident(ask.model.base)
        if resident is not None:
            if trouble is not None:
                resident.dead = True
            if resident.serves(ask):
                return self._hold(resident, keep_alive_ns)
        pending = _Pending(ask, keep_alive_ns, asyncio.get_running_loop().create_future(), trouble)
        self._submit(pending)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            answer = pending.answer
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self.release(answer.result())  # the runner was ready just as the client left
            raise

    def release(self, runner: ModelRunner) -> None:
        """End a request's hold; the last request of a runner starts its keep-alive."""
        runner.refs -= 1
        if runner.refs:
            return
        if runner.keep_alive_ns <= 0:
            self._unload(runner)
        else:
            runner.expires_ns = runner.armed_ns = self.clock.now_ns() + runner.keep_alive_ns
            self._changed.set()

    def unload(self, model: Model) -> None:
        """End the runner of a model, after its last answer if it is busy. A load in progress goes on."""
        runner = self._resident(model.base)
        if runner is not None:
            runner.expires_ns = self.clock.now_ns()
            self._expel(runner)

    def end_all(self) -> None:
        """End all runners as soon as they are idle, after one ran out of memory while answering."""
        for runner in list(self.runners.values()):
            self._expel(runner)

    def rows(self) -> list[dict[str, Any]]:
        """Return the entries of /api/ps, the latest expiry first."""
        self._expire()
        now = self.clock.now_ns()
        return [runner.row(now) for runner in sorted(self.runners.values(), key=lambda one: -one.shown_expiry(now))]

    def state(self) -> dict[str, Any]:
        """Return the state as JSON: the number of loads, the runners with their slots, and the queue."""
        self._expire()
        return {
            "loads": self.loads,
            "queued": len(self._queue),
            "loading": self.loading.model.name.display if self.loading is not None else None,
            "runners": [runner.state() for runner in self.runners.values()],
        }

    def close(self) -> None:
        """Stop the scheduler. Requests that wait are not answered: the caller cancels their tasks."""
        if self._worker is not None:
            self._worker.cancel()

    async def free(self) -> None:
        """Free the memory of the real models, once no request holds a runner any more."""
        for runner in list(self.runners.values()):
            self._unload(runner)
        await asyncio.gather(*self._closing)

    # holding and letting go

    def _hold(self, runner: ModelRunner, keep_alive_ns: int | None) -> ModelRunner:
        runner.refs += 1
        runner.armed_ns = None
        if keep_alive_ns is not None:
            runner.keep_alive_ns = keep_alive_ns
        return runner

    def _resident(self, base: str) -> ModelRunner | None:
        self._expire()
        return self.runners.get(base)

    def _expire(self) -> None:
        """Remove idle runners whose keep-alive is over."""
        for runner in self.runners.values():
            if runner.armed_ns is not None:
                break
        else:
            return
        now = self.clock.now_ns()
        for runner in list(self.runners.values()):
            if runner.armed_ns is not None and runner.armed_ns <= now:
                self._unload(runner)

    def _expel(self, runner: ModelRunner) -> None:
        """End a runner: now if idle, else after its last request, unless a request with its own keep-alive joins."""
        runner.keep_alive_ns = 0
        runner.armed_ns = None
        if not runner.refs:
            self._unload(runner)

    def _unload(self, runner: ModelRunner) -> None:
        if self.runners.get(runner.ask.model.base) is runner:
            del self.runners[runner.ask.model.base]
            self._unloads += 1
            self._changed.set()
            self._close_engine(runner.engine)

    def _close_engine(self, engine: Engine | None) -> None:
        """Free the memory of a real model beside other work."""
        if engine is not None:
            closing = asyncio.get_running_loop().create_task(engine.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    # the queue and its one worker

    def _submit(self, pending: _Pending) -> None:
        """Give a request to the worker, or to the queue if that is busy. Raises: ApiError: 503, the queue is full."""
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work(pending))
        elif len(self._queue) >= self.settings.max_queue:
            raise ApiError(503, BUSY)
        else:
            self._queue.append(pending)

    async def _work(self, pending: _Pending) -> None:
        try:
            while True:
                await self._serve(pending)
                if not self._queue:
                    return
                pending = self._queue.popleft()
        finally:
            self._worker = None

    async def _serve(self, pending: _Pending) -> None:
        """Find a runner for a request; stop if its client has left."""
        answer = pending.answer
        try:
            while not answer.done():
                runner = await self._find_runner(pending)
                if runner is not None and not answer.done():
                    answer.set_result(self._hold(runner, pending.keep_alive_ns))
        except ApiError as refusal:
            if not answer.done():
                answer.set_exception(refusal)
        except Exception as defect:  # a defect of the emulator: both the client and the loop get it
            if not answer.done():
                answer.set_exception(defect)
            raise

    async def _find_runner(self, pending: _Pending) -> ModelRunner | None:
        """Take one step towards a runner: take the resident one, end another, or load.

        Return None if more steps are needed.
        """
        resident = self._resident(pending.ask.model.base)
        if resident is not None:
            if resident.serves(pending.ask):
                return resident
            await self._end_runner(resident)
        elif len(self.runners) >= (self.settings.max_loaded or _MODELS_A_GPU) or self._is_crowded(pending):
            await self._end_runner(self._victim())
        else:
            return await self._load(pending)
        return None

    async def _end_runner(self, victim: ModelRunner) -> None:
        """End a runner, and wait until any runner is unloaded: this one, or one that expired."""
        before = self._unloads
        self._expel(victim)
        while self._unloads == before:
            self._changed.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._changed.wait())]
            armed = [runner.armed_ns for runner in self.runners.values() if runner.armed_ns is not None]
            left = min(armed, default=FOR_EVER) - self.clock.now_ns()
            if armed and left < _CENTURY_NS:
                waits.append(asyncio.ensure_future(self.clock.sleep(left / 10**9)))
            await _await_first(waits)
            self._expire()

    def _victim(self) -> ModelRunner:
        """Choose the runner to end: the idle one with the shortest keep-alive (then by digest), else the first."""
        order = sorted(self.runners.values(), key=lambda runner: (runner.keep_alive_ns, runner.ask.model.base))
        return next((runner for runner in order if not runner.refs), order[0])

    # loads

    def _free_memory(self) -> int:
        return max(0, self.vram - sum(runner.footprint.on_card for runner in self.runners.values()))

    def _is_crowded(self, pending: _Pending) -> bool:
        """Return whether a runner must end first: the load is predicted to take over 80% of the free memory."""
        ask = pending.ask
        partial = 0 < ask.layers < int(ask.model.card.value("block_count", 1)) + 1
        if not self.runners or not self.vram or ask.layers == 0 or partial:
            return False
        return sum(self._expect_load(ask)[1:]) > self._free_memory() * 80 // 100

    def _expect_load(self, ask: Ask) -> tuple[int, int, int]:
        """Return the batch of a load, its predicted bytes, and the bytes that a large batch adds."""
        card, tokens, free = ask.model.card, ask.num_ctx * self._slots(ask), self._free_memory()
        expected = memory.predict(ask.weights, card, tokens)
        if ask.batch is not None:
            return ask.batch, expected, 0
        batch, surcharge = memory.automatic_batch(card, ask.num_ctx, tokens, expected, free or self.vram)
        return batch, expected, surcharge

    def _slots(self, ask: Ask) -> int:
        return 1 if ask.lone else self.settings.parallel

    async def _load(self, pending: _Pending) -> ModelRunner | None:
        """Start a runner; return None if the client left meanwhile, or if the load is to be tried again."""
        self.loads += 1
        self.loading = pending.ask
        try:
            await self._start(pending)
            if pending.answer.done():
                return None
            runner = self._make_runner(pending)
            if self.open_engine is not None:
                runner.engine = await self.open_engine(runner.ask, runner.parallel)
            if pending.answer.done():
                self._close_engine(runner.engine)
                return None
        except OutOfMemory:
            if not self._prepare_retry(pending):
                raise ApiError(500, NO_MEMORY) from None
            for other in list(self.runners.values()):
                await self._end_runner(other)
            return None
        finally:
            self.loading = None
        self.runners[pending.ask.model.base] = runner
        return runner

    async def _start(self, pending: _Pending) -> None:
        """Wait for a load, or until its client leaves. Raises: ApiError, OutOfMemory: a fault makes it fail."""
        stalled, self.delay_s = self.delay_s, 0.0
        trouble = pending.trouble
        if trouble is not None:
            stalled += trouble.seconds
        limit = self.settings.load_timeout_ns / 10**9
        late = stalled > limit > 0
        seconds = self.load_s + (limit if late else stalled)
        if seconds:
            await _await_first([asyncio.ensure_future(self.clock.sleep(seconds)), pending.answer], keep=pending.answer)
        if pending.answer.done():
            return
        if late:
            raise ApiError(500, STALLED)
        if trouble is not None and trouble.error and trouble.attempts > 0:
            trouble.attempts -= 1
            if "out of memory" in trouble.error:
                raise OutOfMemory
            raise ApiError(500, trouble.error)
        if pending.ask.model.misfits or not memory.cache_type(self.settings.cache_type):
            raise ApiError(500, GONE)

    def _prepare_retry(self, pending: _Pending) -> bool:
        """Prepare the one retry after running out of memory: a smaller default window, or the other runners ended."""
        ask = pending.ask
        if pending.retried:
            return False
        lower = None if ask.chosen else memory.lower_window(ask.num_ctx)
        if lower is not None:
            pending.ask = replace(ask, num_ctx=lower)
        pending.retried = lower is not None or bool(self.runners)
        return pending.retried

    def _make_runner(self, pending: _Pending) -> ModelRunner:
        """Build the runner of a load with its place on the card and the processor, as faults change it."""
        ask, free = pending.ask, self._free_memory()
        slots = self._slots(ask)
        size = memory.footprint(ask.weights, ask.model.card, ask.window, slots, self.settings.cache_type)
        layers = ask.layers if self.vram else 0
        where = memory.place_runner(size, ask.model.card, layers, free)
        if pending.trouble is not None:
            where = Footprint(size, min(where.on_card, int(size * pending.trouble.share)))
        kept = self.settings.keep_alive_ns if pending.keep_alive_ns is None else pending.keep_alive_ns
        return ModelRunner(ask, where, slots, kept, self._expect_load(ask)[0], on_card=bool(layers))


async def _await_first(waits: list[asyncio.Future[Any]], keep: asyncio.Future[Any] | None = None) -> None:
    """Wait for the first of several futures; cancel the others, except `keep`."""
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            if wait is not keep:
                wait.cancel()
