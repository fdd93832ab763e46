"""The daemon's scheduler on a simulated machine: one runner a base, serial loads, keep-alive, eviction, VRAM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from batos.emulator.clocks import Clock
from batos.emulator.gojson import stamp
from batos.emulator.models import Model
from batos.emulator.options import FOR_EVER, Settings
from batos.emulator.replies import ApiError

BUSY = "server busy, please try again.  maximum pending requests exceeded"
GONE = "llama-server process has terminated: exit status 1"
KILLED = "llama-server process has terminated: signal: killed"
GIB = 1 << 30
FIT_MARGIN = 1 * GIB  # what llama-server leaves free on the card
COMPUTE_BYTES = 320 << 20  # its buffers beside weights and cache, for a model of some gigabytes
_TIERS = ((23, 4096), (47, 32768))
_COMPARED = ("num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict")


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request needs of a runner: the model, its runner options, and the window with where it came from."""

    model: Model
    num_ctx: int
    chosen: bool
    options: Mapping[str, Any]
    shift: bool = True

    @property
    def window(self) -> int:
        """The tokens that really fit: rounded up to 256, held to what the weights were trained for."""
        return min(-(-self.num_ctx // 256) * 256, max(self.model.card.trained_window, 256))


@dataclass(slots=True)
class Runner:
    """A loaded base with its adapters; `refs` counts the requests on it, `hidden` is an unload that will be lost."""

    ask: Ask
    size: int
    size_vram: int
    slots: asyncio.Semaphore
    keep_alive_ns: int
    expires_ns: int
    refs: int = 0
    dead: bool = False
    hidden: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def serves(self, ask: Ask) -> bool:
        """Whether a request can join without a reload."""
        mine, other = self.ask, ask
        if self.dead or mine.model.adapters != other.model.adapters or mine.shift != other.shift:
            return False
        if (mine.chosen or other.chosen) and mine.num_ctx != other.num_ctx:
            return False
        for name in _COMPARED:
            if name == "num_gpu" and other.options.get(name, -1) == -1:
                continue
            if mine.options.get(name) != other.options.get(name):
                return False
        return True


@dataclass(slots=True)
class Scheduler:
    """Who runs where: `vram` in bytes (0 without a GPU), `load_s` seconds a load takes."""

    settings: Settings
    clock: Clock
    vram: int = 8 * GIB
    load_s: float = 0.0
    runners: dict[str, Runner] = field(default_factory=dict)
    loads: int = 0
    kill_next_load: str = ""
    delay_next_load: float = 0.0
    next_share: float = 1.0
    _waiting: int = 0
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def default_window(self) -> int:
        """The window when neither request, model nor environment names one."""
        if self.settings.window:
            return self.settings.window
        return next((window for gib, window in _TIERS if self.vram < gib * GIB), 262144)

    def ask(self, model: Model, options: Mapping[str, Any], shift: bool = True) -> Ask:
        """What a request with these merged options needs."""
        given = options.get("num_ctx")
        chosen = given is not None or bool(self.settings.window)
        num_ctx = max(4, int(given) if given is not None else self.default_window)
        num_ctx = min(num_ctx, model.card.trained_window)
        return Ask(model, num_ctx, chosen, {name: options.get(name) for name in _COMPARED}, shift)

    @asynccontextmanager
    async def runner(self, ask: Ask, keep_alive_ns: int | None) -> AsyncIterator[Runner]:
        """Hold the runner of a request, loaded if need be; ApiError when the queue is full or the load fails."""
        runner = await self._acquire(ask, keep_alive_ns)
        try:
            yield runner
        finally:
            self._release(runner)

    async def _acquire(self, ask: Ask, keep_alive_ns: int | None) -> Runner:
        runner = self._usable(ask)
        if runner is None:
            if self._one.locked() and self._waiting >= self.settings.max_queue:
                raise ApiError(503, BUSY)
            self._waiting += 1
            try:
                await self._one.acquire()
            finally:
                self._waiting -= 1
            try:
                runner = self._usable(ask) or await self._load(ask, keep_alive_ns)
                return self._hold(runner, keep_alive_ns)
            finally:
                self._one.release()
        return self._hold(runner, keep_alive_ns)

    def _hold(self, runner: Runner, keep_alive_ns: int | None) -> Runner:
        runner.refs += 1
        runner.idle.clear()
        if keep_alive_ns is not None:
            runner.keep_alive_ns = keep_alive_ns
        return runner

    def _release(self, runner: Runner) -> None:
        runner.refs -= 1
        if runner.refs:
            return
        runner.hidden = False
        runner.expires_ns = self.clock.now_ns() + runner.keep_alive_ns
        runner.idle.set()
        if runner.keep_alive_ns == 0:
            self._drop(runner)

    def _drop(self, runner: Runner) -> None:
        key = runner.ask.model.base
        if self.runners.get(key) is runner:
            del self.runners[key]

    def _expire(self) -> None:
        """Let go of what nobody has used for its keep-alive."""
        now = self.clock.now_ns()
        for runner in list(self.runners.values()):
            if not runner.refs and runner.expires_ns <= now:
                self._drop(runner)

    def _usable(self, ask: Ask) -> Runner | None:
        self._expire()
        runner = self.runners.get(ask.model.base)
        return runner if runner is not None and runner.serves(ask) else None

    async def _load(self, ask: Ask, keep_alive_ns: int | None) -> Runner:
        """Make room and start a runner; called by one request at a time."""
        resident = self.runners.get(ask.model.base)
        if resident is not None:
            while resident.refs:  # requests that suit it go on joining it
                await resident.idle.wait()
            self._drop(resident)
        await self._make_room(ask)
        self.loads += 1
        delay, self.delay_next_load = self.load_s + self.delay_next_load, 0.0
        if delay:
            await self.clock.sleep(delay)
        if self.kill_next_load:
            text, self.kill_next_load = self.kill_next_load, ""
            raise ApiError(500, text)
        fault = misfit(ask.model)
        if fault:
            raise ApiError(500, fault)
        runner = self._start(ask, self.settings.keep_alive_ns if keep_alive_ns is None else keep_alive_ns)
        self.runners[ask.model.base] = runner
        return runner

    async def _make_room(self, ask: Ask) -> None:
        most = self.settings.max_loaded or 3
        on_cpu = ask.options.get("num_gpu") == 0
        while self.runners:
            self._expire()
            fits = not self.vram or on_cpu or self._predicted(ask) <= self._free() * 8 // 10
            if not self.runners or (len(self.runners) < most and fits):
                return
            await self._evict()

    async def _evict(self) -> None:
        """Unload the first idle runner by keep-alive, then blob; where all are busy, the first of all once idle."""
        order = sorted(self.runners.values(), key=lambda runner: (runner.keep_alive_ns, runner.ask.model.base))
        victim = next((runner for runner in order if not runner.refs), order[0])
        while victim.refs:
            await victim.idle.wait()
        self._drop(victim)

    def _free(self) -> int:
        return max(0, self.vram - sum(runner.size_vram for runner in self.runners.values()))

    def _predicted(self, ask: Ask) -> int:
        return ask.model.manifest.size + ask.model.card.kv_bytes(ask.window, self.settings.parallel)

    def _start(self, ask: Ask, keep_alive_ns: int) -> Runner:
        card = ask.model.card
        parallel = 1 if card.embeds else self.settings.parallel
        weights = ask.model.manifest.size
        size = weights + card.kv_bytes(ask.window, parallel) + min(COMPUTE_BYTES, weights // 8)
        room = max(0, self._free() - FIT_MARGIN)
        on_card = 0 if ask.options.get("num_gpu") == 0 else min(int(size * self.next_share), room)
        self.next_share = 1.0
        expires = self.clock.now_ns() + keep_alive_ns
        return Runner(ask, size, on_card, asyncio.Semaphore(parallel), keep_alive_ns, expires)

    def unload(self, model: Model) -> None:
        """An unload by name: at once when idle, and lost when the runner is answering."""
        runner = self.runners.get(model.base)
        if runner is None:
            return
        if runner.refs:
            runner.hidden = True
        else:
            self._drop(runner)

    def reload_everything(self) -> None:
        """Make the next request of every runner load it anew."""
        for runner in self.runners.values():
            runner.dead = True

    def rows(self) -> list[dict[str, Any]]:
        """The entries of /api/ps, the longest-lived first."""
        self._expire()
        shown = [runner for runner in self.runners.values() if not runner.hidden]
        return [_row(runner) for runner in sorted(shown, key=lambda runner: -runner.expires_ns)]


def _row(runner: Runner) -> dict[str, Any]:
    model = runner.ask.model
    return {
        "name": model.name.display,
        "model": model.name.display,
        "size": runner.size,
        "digest": model.manifest.digest,
        "details": model.card.details(),
        "expires_at": stamp(min(runner.expires_ns, 2 * FOR_EVER)),
        "size_vram": runner.size_vram,
        "context_length": runner.ask.num_ctx,
    }


def misfit(model: Model) -> str:
    """Why the runner of a model dies while it loads, or nothing: an adapter for another shape of weights."""
    return GONE if model.misfits else ""
