"""Deadlines by phase: one timer for a whole call, armed again lazily, because a timer for every token costs much."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from batos.protocol.errors import OllamaTimeout

#: The share of the time for a first token that each thousand characters of a prompt add to it: a processor reads some
#: ten tokens a second.
LONGER: Final = 0.25
#: The time to a first token over that of reading the prompt at the pace that was seen: another program may ask as well.
MARGIN: Final = 4.0
#: Characters of a prompt that tell of the pace, and the most seconds a character: two tokens a minute and less is none.
LEAST_READ: Final = 400
SLOWEST: Final = 5.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The seconds that each phase of a call may take.

    `connect` is for the TCP connection. `load` is for bringing a model into memory. The daemon sends nothing while a
    model loads, so the first line may take load + first_token, or first_token alone if the model is known to be loaded;
    first_token is that of a short prompt, and a long one may take so much longer as its reading does.
    `between_tokens` is the longest silence inside an answer, `reply` the time for a call that runs no model (list,
    show, ps), `progress` the longest silence inside a pull, create or upload. `drain` is for the end of a stream after
    its line with `done`: the connection can be used again only after the stream ended.
    """

    connect: float = 5.0
    load: float = 300.0
    first_token: float = 120.0
    between_tokens: float = 30.0
    reply: float = 30.0
    progress: float = 300.0
    drain: float = 1.0

    def first_token_after(self, characters: int, pace: float = 0.0) -> float:
        """Return the seconds to the first token of an answer to so many; `pace` is the seconds that one was seen to
        take, 0.0 if none was read yet.
        """
        return self.first_token + max(self.first_token * LONGER * (characters // 1_000), MARGIN * pace * characters)


class ReadingPace:
    """Remembers the slowest reading of each model, in seconds a character: prompts that are cached are read at once."""

    __slots__ = ("_slowest",)

    def __init__(self) -> None:
        self._slowest: dict[str, float] = {}

    def find(self, model: str) -> float:
        """Return the seconds that a character takes; 0.0 where nothing was read yet."""
        return self._slowest.get(model, 0.0)

    def note(self, model: str, characters: int, seconds: float) -> None:
        """Note what a reply tells of its prompt; a few words tell nothing, and no machine is slower than a limit."""
        if characters >= LEAST_READ:
            self._slowest[model] = max(self.find(model), min(seconds / characters, SLOWEST))


class Pulse:
    """Tells when something last came from the daemon for calls that wait for each other's turn, on the loop's clock.

    All chats of a bridge share one, because the daemon may load one model at a time, and all embeds another: they wait
    behind chats too, and tell nothing of these. A call that runs no model waits for no turn, and what it is told says
    nothing of a runner: none of these has a share.
    """

    __slots__ = ("_behind", "_last")

    def __init__(self, behind: Pulse | None = None) -> None:
        """Begin it; with `behind` these calls wait for the turns of others as well."""
        self._behind, self._last = behind, 0.0

    @property
    def last(self) -> float:
        """Return when something last came for any of the calls that are waited for."""
        return self._last if self._behind is None else max(self._last, self._behind.last)

    def note(self, now: float) -> None:
        """Note that something came for one of these calls."""
        self._last = now


class PhaseTimer:
    """Cancels the task that entered it when a phase takes too long, and turns that into OllamaTimeout.

    The first phase is the wait for a first line. The daemon answers calls one after the other, so while `pulse` says
    that others are being answered, that wait is a place in the queue and no silence: it is counted from the last sign
    of life. Later phases count the call's own silence.

    `touch()` restarts the phase and costs one reading of the clock: the timer behind it is only armed again when it
    rings too early. A cancellation from outside is never mistaken for a deadline.
    """

    __slots__ = (
        "_cancelling",
        "_due",
        "_expired",
        "_handle",
        "_last_chance",
        "_loop",
        "_pulse",
        "_queued",
        "_task",
        "phase",
        "seconds",
    )

    def __init__(self, phase: str, seconds: float, pulse: Pulse | None = None) -> None:
        self.phase = phase
        self.seconds = seconds
        self._pulse = pulse or Pulse()
        self._queued = pulse is not None
        self._expired = False
        self._last_chance = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + self.seconds
        self._handle: asyncio.Handle = self._loop.call_at(self._due, self._ring)
        return self

    def enter(self, phase: str, seconds: float) -> None:
        """Begin another phase, because something was received."""
        self.phase = phase
        self.seconds = seconds
        self._queued = False
        now = self._loop.time()
        self._pulse.note(now)
        due = now + seconds
        if due < self._due:
            self._handle.cancel()
            self._handle = self._loop.call_at(due, self._ring)
        self._due = due

    def touch(self) -> None:
        """Restart the phase, because something was received."""
        now = self._loop.time()
        self._pulse.note(now)
        self._due = now + self.seconds

    def _ring(self) -> None:
        if self._queued:
            self._due = max(self._due, self._pulse.last + self.seconds)
        if self._loop.time() < self._due:
            self._last_chance = False
            self._handle = self._loop.call_at(self._due, self._ring)
        elif not self._last_chance:
            # If the loop itself was late, the bytes may lie ready: let whoever waits for them run first.
            self._last_chance = True
            self._handle = self._loop.call_soon(self._ring)
        else:
            self._expired = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise OllamaTimeout(self.phase, self.seconds) from raised
