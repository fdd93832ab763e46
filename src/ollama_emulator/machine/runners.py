"""A loaded model: the options that it was started with, the requests that it serves, its slots and its expiry."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import stamp
from ollama_emulator.library.models import Model
from ollama_emulator.machine import memory
from ollama_emulator.machine.memory import Footprint
from ollama_emulator.machine.pacing import Prefixes
from ollama_emulator.options import FOR_EVER

NOT_RUNNING = "llama-server process no longer running: -1 "
_LEAST = 4  # tokens of the smallest window
_STEP = 256  # tokens: a window is rounded up to a multiple of them
_DRAFT = 4
# architectures whose runners take one request at a time, whatever OLLAMA_NUM_PARALLEL says
_LONE = frozenset(
    "mllama qwen3vl qwen3vlmoe qwen35 qwen35moe qwen3next lfm2 lfm2moe "
    "nemotron_h nemotron_h_moe nemotron_h_omni".split()
)


@dataclass(frozen=True, slots=True)
class Ask:
    """The model of a request, and the options that its runner must be started with.

    `num_ctx` is capped to the trained length; `chosen` says that the request, the model or the settings gave it.
    `layers` is num_gpu (-1: as many as fit). A None for `batch` or `mmap` leaves the choice to the daemon.
    """

    model: Model
    num_ctx: int
    chosen: bool
    shift: bool = True
    layers: int = -1
    batch: int | None = None
    mmap: bool | None = None
    main_gpu: int | None = None
    threads: int = 0
    draft: int = _DRAFT

    @classmethod
    def from_options(
        cls, model: Model, options: Mapping[str, Any], window: int, fixed: bool, shift: bool | None
    ) -> Ask:
        """Return the needs of a request from its merged options.

        `window` is the default for `num_ctx`, in tokens; `fixed` says that the settings gave it.
        """
        given = options.get("num_ctx")
        num_ctx = max(_LEAST, int(given) if given is not None else window)
        batch, main_gpu = options.get("num_batch"), options.get("main_gpu")
        return cls(
            model,
            min(num_ctx, model.card.trained_window),
            fixed or given is not None,
            model.card.architecture != "deepseek2" if shift is None else shift,
            max(-1, int(_or(options.get("num_gpu"), -1))),
            None if batch is None else int(batch),
            options.get("use_mmap"),
            None if main_gpu is None else int(main_gpu),
            int(_or(options.get("num_thread"), 0)),
            int(_or(options.get("draft_num_predict"), _DRAFT)),
        )

    @property
    def window(self) -> int:
        """Return the context window in tokens: `num_ctx` rounded up to 256, at most the trained length."""
        return min(-(-self.num_ctx // _STEP) * _STEP, max(self.model.card.trained_window, _STEP))

    @property
    def lone(self) -> bool:
        """Return whether the runner takes only one request at a time, whatever OLLAMA_NUM_PARALLEL says."""
        return self.model.card.embeds or self.model.card.architecture in _LONE

    @property
    def weights(self) -> int:
        """Return the size of the weights' file in bytes."""
        found = [layer.size for layer in self.model.manifest.layers if layer.digest == self.model.base]
        return found[0] if found else self.model.manifest.size


def _or(value: Any, default: int) -> Any:
    return default if value is None else value


class Slots:
    """The slots of a runner, given to requests in the order in which they ask, for an `async with`.

    Raises: ApiError: 500, the runner has died.
    """

    __slots__ = ("_runner", "_waiting", "many", "used")

    def __init__(self, runner: ModelRunner, many: int) -> None:
        self._runner = runner
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.many = many
        self.used = 0

    @property
    def waiting_count(self) -> int:
        """Return the number of requests that wait for a slot."""
        return len(self._waiting)

    def is_full(self) -> bool:
        """Return whether all slots are taken."""
        return self.used >= self.many

    async def __aenter__(self) -> None:
        if self.is_full() or self._waiting:
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._give()  # the slot was given to it just as the client left
                else:
                    self._waiting.remove(place)
                raise
        else:
            self.used += 1
        if self._runner.dead:
            self._give()
            raise ApiError(500, NOT_RUNNING)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give()

    def _give(self) -> None:
        """Give a slot back: to the next waiting request, or to the runner."""
        for place in self._waiting:
            if not place.done():
                self._waiting.remove(place)
                place.set_result(None)
                return
        self.used -= 1


class Engine(Protocol):
    """Real weights that are loaded behind a runner."""

    async def close(self) -> None:
        """Wait for the answers in progress to stop, and free the memory."""
        ...


@dataclass(slots=True)
class ModelRunner:
    """A simulated runner process, started for `ask`. `refs` counts the requests that hold it, `batch` is in tokens.

    `expires_ns` is the expiry that /api/ps shows (None before the first answer ended). An idle runner ends at
    `armed_ns`. A `dead` runner was killed: like the daemon's it stays listed until the next request finds out.
    `engine` has the weights of a real model; a runner without one invents.
    """

    ask: Ask
    footprint: Footprint
    parallel: int
    keep_alive_ns: int
    batch: int
    on_card: bool = True
    expires_ns: int | None = None
    armed_ns: int | None = None
    refs: int = 0
    dead: bool = False
    slots: Slots = field(init=False)
    prefixes: Prefixes = field(default_factory=Prefixes)
    engine: Engine | None = None

    def __post_init__(self) -> None:
        self.slots = Slots(self, self.parallel)

    def serves(self, ask: Ask) -> bool:
        """Return whether a request can use this runner, or needs it reloaded with other options."""
        mine = self.ask
        if self.dead or mine.model.adapters != ask.model.adapters or mine.shift != ask.shift:
            return False
        if (mine.chosen or ask.chosen) and mine.num_ctx != ask.num_ctx:
            return False
        if ask.layers >= 0 and ask.layers != mine.layers:
            return False
        same = (mine.main_gpu, mine.threads, mine.draft) == (ask.main_gpu, ask.threads, ask.draft)
        return same and self._same_batch(ask) and self._same_mmap(ask)

    def _same_batch(self, ask: Ask) -> bool:
        """Return whether a request's batch suits: two automatic ones do; a named one must equal the one in force."""
        if self.ask.batch is None and ask.batch is None:
            return True
        wanted = memory.default_batch(ask.model.card, ask.num_ctx) if ask.batch is None else ask.batch
        return wanted == self.batch

    def _same_mmap(self, ask: Ask) -> bool:
        """Return whether a request's `use_mmap` suits. The daemon turns it off on the CPU: there only True differs."""
        if self.ask.mmap is None and not self.on_card:
            return ask.mmap is not True
        return self.ask.mmap == ask.mmap

    def shown_expiry(self, now_ns: int) -> int:
        """Return the expiry that /api/ps shows: out of date during an answer, in the past if the runner is to end."""
        return now_ns + self.keep_alive_ns if self.expires_ns is None else self.expires_ns

    def row(self, now_ns: int) -> dict[str, Any]:
        """Return the runner's entry in /api/ps."""
        model = self.ask.model
        return {
            "name": model.name.display,
            "model": model.name.display,
            "size": self.footprint.size,
            "digest": model.manifest.digest,
            "details": {**model.details, "parent_model": ""},
            "expires_at": stamp(min(self.shown_expiry(now_ns), 2 * FOR_EVER)),
            "size_vram": self.footprint.on_card,
            "context_length": self.ask.num_ctx,
        }

    def state(self) -> dict[str, Any]:
        """Return the runner as JSON: its model, its options, and the requests that hold it or wait for a slot."""
        return {
            "model": self.ask.model.name.display,
            "base": self.ask.model.base,
            "adapters": list(self.ask.model.adapters),
            "num_ctx": self.ask.num_ctx,
            "window": self.ask.window,
            "requests": self.refs,
            "slots": self.slots.many,
            "answering": self.slots.used,
            "waiting": self.slots.waiting_count,
            "dead": self.dead,
        }
