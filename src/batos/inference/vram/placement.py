"""Placement of a model after its load: on the card, the processor or both; and what a load puts out of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from batos.events import Events
from batos.inference.ollama.catalogue import ModelCard, RunnerRow
from batos.protocol.errors import ModelMissing, OllamaError
from batos.protocol.event_payloads import VRAM_SAMPLE, VRAM_SPILL
from batos.protocol.mission_documents import PlacementDocument

#: A call whose load took longer, in seconds, loaded its model: one that is there is found in milliseconds.
LOADED: Final = 0.1

#: Seconds for asking: the daemon's list of runners can block, and an answer is waiting to be used.
LOOK_SECONDS: Final = 5.0

Where: TypeAlias = Literal["card", "processor", "spilled"]


class Looks(Protocol):
    """The part of the bridge that finding a placement needs."""

    async def ps(self) -> Sequence[RunnerRow]:
        """List the runners."""
        ...

    async def show(self, model: str) -> ModelCard:
        """Return a model's card."""
        ...


@dataclass(frozen=True, slots=True)
class Placement:
    """A model's runner, listed under the name that made it load; sizes in bytes."""

    model: str
    runner: str
    where: Where
    size: int
    size_vram: int
    context_length: int | None

    def as_dict(self) -> PlacementDocument:
        """Return the placement as plain data."""
        return PlacementDocument(
            model=self.model,
            runner=self.runner,
            where=self.where,
            size=self.size,
            size_vram=self.size_vram,
            context_length=self.context_length,
        )


def place_of(row: RunnerRow, others: Sequence[RunnerRow]) -> Where:
    """Return where a runner lies. A runner with nothing on the card has spilled if others show that there is a card."""
    if row.size_vram >= row.size:
        return "card"
    return "spilled" if row.size_vram or any(other.size_vram for other in others) else "processor"


def wants_card(options: Mapping[str, Any]) -> bool:
    """Test if a call lets the daemon choose how much goes to the card: a call with num_gpu has chosen itself."""
    return int(options.get("num_gpu", -1)) < 0


class Bases:
    """Finds the runner that serves a model: one of its own digest, or of a model with the same base and adapters."""

    def __init__(self, daemon: Looks) -> None:
        self._daemon = daemon
        self._kin: dict[str, tuple[str, ...]] = {}

    async def runner(self, model: str, digest: str, rows: Sequence[RunnerRow]) -> RunnerRow | None:
        """Return the runner that serves a model, whatever model loaded it; None if there is none."""
        own = next((row for row in rows if row.digest == digest), None)
        if own is not None or not rows:
            return own
        kin = await self.kin(model, digest)
        for row in rows:
            if kin and await self.kin(row.name, row.digest) == kin:
                return row
        return None

    async def kin(self, model: str, digest: str) -> tuple[str, ...]:
        """Return base blob and adapters of a model, () if the daemon names none. Asks once, since a digest never
        changes.
        """
        if digest not in self._kin:
            try:
                card = await self._daemon.show(model)
                self._kin[digest] = (card.blob, *sorted(card.adapters)) if card.blob else ()
            except ModelMissing:  # deleted while its runner lives on
                self._kin[digest] = ()
        return self._kin[digest]


class Watch:
    """Looks where a model lies when a call may have loaded it: tells `vram.sample`, and `vram.spill` if it spilled.

    A look is one request, made when a call took long to load or is the first of this process on its model.
    """

    def __init__(self, daemon: Looks, events: Events, bases: Bases) -> None:
        self._daemon = daemon
        self._events = events
        self._bases = bases
        self._seen: set[str] = set()

    async def look(self, model: str, digest: str, options: Mapping[str, object], loaded: float) -> Placement | None:
        """Find where the model lies; return None if there is no reason to look or nothing to see. Failures are
        ignored.
        """
        if digest in self._seen and loaded < LOADED:
            return None
        self._seen.add(digest)
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                rows = await self._daemon.ps()
                row = await self._bases.runner(model, digest, rows)
        except (OllamaError, TimeoutError):
            return None
        if row is None:
            return None
        where = place_of(row, rows)
        if where == "spilled" and not wants_card(options):
            where = "card" if row.size_vram else "processor"
        found = Placement(model, row.name, where, row.size, row.size_vram, row.context_length)
        self._events.emit(VRAM_SAMPLE, PlacementDocument(**found.as_dict()))
        if where == "spilled":
            self._events.emit(VRAM_SPILL, PlacementDocument(**found.as_dict()))
        return found


#: The seconds that a load is taken to last before one was seen.
LOAD_SECONDS: Final = 5.0
#: Seconds for which the daemon surely keeps a runner that nobody asks: less than its five minutes.
KEPT_ALIVE: Final = 240.0


class Runner(NamedTuple):
    """A runner that a call needs in memory: a base's blob, and the adapters and options that it is loaded with.

    The daemon keeps one runner of a base. A runner that is not `on_card` is on the processor, and in nobody's way.
    """

    base: str
    loaded_with: tuple[object, ...] = ()
    on_card: bool = True


@dataclass(slots=True)
class Residents:
    """The runners in memory, the one used last at the end. Moments are in seconds of any clock that only grows.

    Two bases are taken to fit together until one has to be loaded again after the other was: from then on a load of one
    takes the place of the other, until one turns out to have been there all the time.
    """

    _there: list[Runner] = field(default_factory=list)
    #: Pairs of bases that were seen not to fit together.
    _apart: set[frozenset[str]] = field(default_factory=set)
    #: When each base was last used, and the bases that were loaded since.
    _used: dict[str, tuple[float, list[str]]] = field(default_factory=dict)
    #: The runner that is loaded next, and those in whose place.
    _expected: tuple[Runner, Sequence[Runner]] | None = None
    _seconds: dict[str, float] = field(default_factory=dict)

    def __contains__(self, runner: object) -> bool:
        """Test if a runner is taken to be in memory."""
        return runner in self._there

    def victims(self, runner: Runner) -> list[Runner]:
        """Return the runners that a load of another puts out of memory."""
        others = [each for each in self._there if each != runner]
        return [each for each in others if each.base == runner.base or _pair(each, runner) in self._apart]

    def replace(self, runner: Runner, victims: Sequence[Runner]) -> None:
        """Note that a runner is loaded next, in the place of others."""
        self._there = [*(each for each in self._there if each not in victims), runner]
        self._expected = runner, victims
        for _, loaded in self._used.values():
            loaded.append(runner.base)

    def note(self, runner: Runner, seconds: float, now: float) -> None:
        """Note that a runner answers at a moment, and how long its load took, in seconds (0: it was there)."""
        expected, used = self._expected, self._used.get(runner.base)
        is_expected = expected is not None and expected[0] == runner
        if seconds >= LOADED:
            self._seconds[runner.base] = (self._seconds.get(runner.base, seconds) + seconds) / 2
            if not is_expected and used is not None and used[1] and now - used[0] < KEPT_ALIVE:
                # The base that was loaded last took its place, and has lost it again.
                self._apart.add(frozenset((runner.base, used[1][-1])))
                self._there = [each for each in self._there if each.base != used[1][-1]]
        elif is_expected and expected is not None:
            self._find_together(runner, expected[1])
        self._expected = None if is_expected else expected
        self._there = [*(each for each in self._there if each != runner), runner]
        self._used[runner.base] = now, []

    def _find_together(self, runner: Runner, victims: Sequence[Runner]) -> None:
        """Take a runner and those that were to go for it to fit together: it was in memory all the time."""
        for each in victims:
            if each.base != runner.base:
                self._apart.discard(_pair(each, runner))
                self._there.insert(0, each)

    def load_seconds(self, runner: Runner) -> float:
        """Return how long a load of a runner is taken to last, in seconds."""
        return self._seconds.get(runner.base, LOAD_SECONDS)


def _pair(one: Runner, other: Runner) -> frozenset[str]:
    return frozenset((one.base, other.base))
