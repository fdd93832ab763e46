"""The order of all calls to one daemon: few loads, nobody waits beyond a bound; and the card, shared by sessions.

The daemon keeps one runner for a base, and loads it anew for other adapters or options, which takes seconds. So calls
whose runner is in memory go first, the rest waits until they are through, and then the runner that most wait for is
loaded. A call that has waited beyond the bound, or has a higher priority, has its runner loaded before: the one in its
way takes no new calls, and is loaded over as soon as it is idle.

A mission asks again in a moment, so its runner is kept for it so long: a load costs more than the pause.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from batos.events import Events
from batos.inference.ollama.chat import ChatRequest, runner_key
from batos.inference.vram.placement import LOOK_SECONDS, Bases, Looks, Placement, Residents, Runner, Watch, wants_card
from batos.protocol.errors import OllamaError

Messages: TypeAlias = Sequence[Mapping[str, str]]

#: As many as a daemon may ever be told to answer at once: nobody waits.
ALL: Final = 64
#: Seconds after which a call that waits for a load is overdue.
BOUND: Final = 60.0
#: A runner that was loaded is not loaded over by what is only overdue before it has answered for so many times the
#: seconds of its load: where all are overdue, so much of the time is work.
LEAST_WORK: Final = 6.0
#: The share of a load's seconds for which a runner is kept for a mission that asked it last.
KEPT: Final = 0.25


@dataclass(frozen=True, slots=True)
class Call:
    """A call that wants a turn: its runner, its prompt, its mission, and how much it matters (higher goes first).

    `within` are the seconds for which it can wait; None: for as long as it takes.
    """

    runner: Runner
    messages: Messages = ()
    mission: str = ""
    priority: int = 0
    within: float | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    call: Call
    came: float
    turn: asyncio.Future[CallTurn]


class _Wish(NamedTuple):
    """A runner that is not in memory, as those that wait for it want it: the best is the greatest."""

    rank: int
    overdue: float
    waiting: int
    oldest: float
    runner: Runner


@dataclass(slots=True)
class CallScheduler:
    """Gives turns to the calls of all sessions of one event loop. A runner answers `many` calls at a time.

    A call of another mission goes to the daemon before its turn, so that the daemon has no pause between two. Where
    it turns out to answer both at once, `many` grows. `bound` are the seconds within which a call has its runner loaded
    where the card can do what is asked of it. Times are those of the loop's clock.
    """

    many: int = ALL
    bound: float = BOUND
    residents: Residents = field(default_factory=Residents)
    #: The number of turns that began with a load.
    loads: int = 0
    _waiting: list[_Waiting] = field(default_factory=list)
    #: The calls that have a turn at each runner, and how many of them have had a token.
    _turns: defaultdict[Runner, list[CallTurn]] = field(default_factory=lambda: defaultdict(list))
    _last: dict[Runner, Messages] = field(default_factory=dict)
    #: The runner that is being loaded, until its first call has had a token: the daemon loads one at a time.
    _loading: Runner | None = None
    #: Runners that take no new calls, because one that is to be loaded needs their place, by that one's priority.
    _drained: dict[Runner, int] = field(default_factory=dict)
    _attended: Counter[str] = field(default_factory=Counter)
    #: For which runner a mission's next call is waited for, and until when.
    _kept: dict[str, tuple[Runner, float]] = field(default_factory=dict)
    #: When each runner was loaded last, and when another took its place.
    _loaded_at: dict[Runner, float] = field(default_factory=dict)
    _replaced_at: dict[Runner, float] = field(default_factory=dict)
    _alarm: asyncio.TimerHandle | None = None

    @contextmanager
    def attend(self, mission: str) -> Iterator[None]:
        """Keep a mission's runner for a moment after each of its calls, since it will ask again."""
        self._attended[mission] += 1
        try:
            yield
        finally:
            self._attended[mission] -= 1
            if not self._attended[mission]:
                del self._attended[mission]
                self._kept.pop(mission, None)
                self._advance()

    @asynccontextmanager
    async def turn(self, call: Call) -> AsyncIterator[CallTurn]:
        """Wait until a call may be made, and hold its place while inside.

        Raises: TimeoutError: its turn did not come in time.
        """
        if not call.runner.on_card:
            yield CallTurn(self, call)
            return
        async with asyncio.timeout(call.within):
            turn = await self._begin(call)
        try:
            yield turn
        finally:
            self._end(turn)

    def queue(self) -> dict[Runner, int]:
        """Return how many calls wait for each runner."""
        return dict(Counter(each.call.runner for each in self._waiting if not each.turn.done()))

    # -- waiting

    async def _begin(self, call: Call) -> CallTurn:
        loop = asyncio.get_running_loop()
        kept = self._kept.get(call.mission)
        if kept is not None and kept[0] != call.runner:
            del self._kept[call.mission]
        waiting = _Waiting(call, loop.time(), loop.create_future())
        self._waiting.append(waiting)
        self._advance()
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.cancelled():  # nobody gave it a turn
                self._waiting = [each for each in self._waiting if each is not waiting]
                self._advance()
            else:
                self._end(waiting.turn.result())
            raise

    def _end(self, turn: CallTurn) -> None:
        call = turn.call
        self._turns[call.runner].remove(turn)
        if call.runner == self._loading:
            self._loading = None
        if call.mission in self._attended:
            pause = KEPT * self.residents.load_seconds(call.runner)
            self._kept[call.mission] = call.runner, asyncio.get_running_loop().time() + pause
        self._advance()

    def note_token(self, turn: CallTurn) -> None:
        """Note that a call has had its first token: its runner is loaded, and answers so many at a time."""
        turn.has_token = True
        runner = turn.call.runner
        self.many = max(self.many, sum(each.has_token for each in self._turns[runner]))
        if self._loading == runner:
            self._loading = None
            self._advance()

    # -- deciding

    def _advance(self) -> None:
        """Begin each call that may begin now, and set the alarm for the next moment at which one may."""
        now = asyncio.get_running_loop().time()
        self._waiting = [each for each in self._waiting if not each.turn.done()]
        self._drained = {}
        self._load_next(now)
        self._serve(now)
        self._set_alarm(now)

    def _rank(self, waiting: _Waiting, now: float) -> int:
        """Return how much a call matters: what nobody waits for comes nearer to a person's question with each bound."""
        priority = waiting.call.priority
        return priority if priority >= 0 else min(0, priority + int((now - waiting.came) / self.bound))

    def _load_next(self, now: float) -> None:
        """Choose the runner that is loaded now, if any; where those in its way are busy, they take no new calls."""
        if self._loading is not None:
            return
        for wish in sorted(self._wishes(now), reverse=True):
            victims = self.residents.victims(wish.runner)
            if all(self._may_replace(each, wish, now) for each in victims):
                if any(self._turns[each] for each in victims):
                    self._drained = dict.fromkeys(victims, wish.rank)
                else:
                    self.residents.replace(wish.runner, victims)
                    self._replaced_at |= dict.fromkeys(victims, now)
                    self._loading, self._loaded_at[wish.runner] = wish.runner, now
                    self.loads += 1
                return

    def _wishes(self, now: float) -> list[_Wish]:
        """Return the runners that calls wait for and that are not in memory."""
        groups: defaultdict[Runner, list[_Waiting]] = defaultdict(list)
        for each in self._waiting:
            if each.call.runner not in self.residents:
                groups[each.call.runner].append(each)
        return [self._wish(runner, group, now) for runner, group in groups.items()]

    def _wish(self, runner: Runner, group: Sequence[_Waiting], now: float) -> _Wish:
        oldest = min(each.came for each in group)
        denied = now - max(oldest, self._replaced_at.get(runner, oldest))  # who was served just now waits no longer
        rank = max(self._rank(each, now) for each in group)
        return _Wish(rank, max(0.0, denied - self._patience(runner)), len(group), -oldest, runner)

    def _patience(self, runner: Runner) -> float:
        """Return the seconds after which a call is overdue: the bound, less what may be done and loaded before."""
        return max(self.bound / 4, self.bound - (2 + LEAST_WORK) * self.residents.load_seconds(runner))

    def _may_replace(self, victim: Runner, wish: _Wish, now: float) -> bool:
        """Test if a runner may be loaded over: it is idle and unwanted, or the other matters more, or is overdue."""
        ranks = [self._rank(each, now) for each in self._waiting if each.call.runner == victim]
        if not ranks:
            return not self._turns[victim] and self._end_of_keep(victim, now) <= now
        is_due = wish.overdue and now - self._loaded_at.get(victim, -math.inf) >= self._least_work(victim)
        return wish.rank > max(ranks) or (bool(is_due) and wish.rank == max(ranks))

    def _least_work(self, runner: Runner) -> float:
        return (1 + LEAST_WORK) * self.residents.load_seconds(runner)

    def _end_of_keep(self, runner: Runner, now: float) -> float:
        return max((end for kept, end in self._kept.values() if kept == runner), default=now)

    def _serve(self, now: float) -> None:
        """Begin calls at the runners in memory: by rank, then by how much of the last prompt they share."""
        for runner in {each.call.runner for each in self._waiting if each.call.runner in self.residents}:
            while (best := self._best(runner, now)) is not None:
                self._go(best)

    def _best(self, runner: Runner, now: float) -> _Waiting | None:
        """Return the next call that a runner may take; None: there is none."""
        last, drained_for = self._last.get(runner, ()), self._drained.get(runner, -math.inf)
        ranked = [(self._rank(each, now), each) for each in self._waiting if each.call.runner == runner]
        able = [(rank, each) for rank, each in ranked if rank > drained_for and self._has_room(each.call, rank)]
        return max(able, key=lambda each: (each[0], common(each[1].call.messages, last)))[1] if able else None

    def _has_room(self, call: Call, rank: int) -> bool:
        """Test if a call may go to its runner: as one of `many`, or as the one of another mission that is next."""
        under_way = self._turns[call.runner]
        if len(under_way) < self.many:
            return True
        is_alone = all(each.call.mission != call.mission for each in under_way)
        return len(under_way) == self.many and rank >= 0 and is_alone and self._loading != call.runner

    def _go(self, waiting: _Waiting) -> None:
        turn = CallTurn(self, waiting.call)
        self._waiting.remove(waiting)
        self._turns[waiting.call.runner].append(turn)
        self._last[waiting.call.runner] = waiting.call.messages
        waiting.turn.set_result(turn)

    def _set_alarm(self, now: float) -> None:
        """Look again when a call becomes overdue, or a runner is no longer kept, or has answered for long enough."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        away = [each for each in self._waiting if each.call.runner not in self.residents]
        waits = [self._patience(each) + at for each, at in self._replaced_at.items()]
        waits += [each.came + self._patience(each.call.runner) for each in away]
        if away:
            works = [at + self._least_work(each) for each, at in self._loaded_at.items() if each in self.residents]
            kept = [end for _, end in self._kept.values()]
            if moments := [each for each in (*waits, *works, *kept) if each > now]:
                self._alarm = asyncio.get_running_loop().call_at(min(moments), self._advance)


@dataclass(slots=True, eq=False)
class CallTurn:
    """The turn of a call."""

    scheduler: CallScheduler
    call: Call
    has_token: bool = False

    def listening(self, on_token: Callable[[str], None] | None) -> Callable[[str], None]:
        """Return what hears the call's tokens before `on_token` does."""

        def hear(piece: str) -> None:
            if not self.has_token:
                self.scheduler.note_token(self)
            if on_token is not None:
                on_token(piece)

        return hear

    def note_load(self, seconds: float) -> None:
        """Note how long the daemon loaded for the call, in seconds (0: its runner was in memory)."""
        if self.call.runner.on_card:
            self.scheduler.residents.note(self.call.runner, seconds, asyncio.get_running_loop().time())


def common(one: Messages, other: Messages) -> int:
    """Return the number of characters that two prompts share from their beginning, without the marks between
    messages.
    """
    shared = 0
    for mine, yours in zip(one, other, strict=False):
        if mine == yours:
            shared += len(mine["content"])
            continue
        if mine["role"] == yours["role"]:
            shared += _alike(mine["content"], yours["content"])
        break
    return shared


def _alike(one: str, other: str) -> int:
    """Return the length of the longest common beginning, found by halving because slices compare at the speed of
    memory.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class SharedCard:
    """The card behind one daemon, for the calls of one event loop; `many` is how many a runner answers at once.

    `bound` are the seconds after which a call that waits for a load is overdue.
    """

    daemon: Looks
    events: Events
    many: int = ALL
    bound: float = BOUND
    scheduler: CallScheduler = field(init=False)
    _bases: Bases = field(init=False)
    _watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = CallScheduler(self.many, self.bound)
        self._bases = Bases(self.daemon)
        self._watch = Watch(self.daemon, self.events, self._bases)

    @asynccontextmanager
    async def turn(
        self, request: ChatRequest, digest: str, mission: str, priority: int = 0, within: float | None = None
    ) -> AsyncIterator[CallTurn]:
        """Wait until a mission's call may be made, and hold its place while inside; `digest` is its model's.

        Raises: TimeoutError: its turn did not come within so many seconds.
        """
        runner = await self.runner(request.model, digest, request.options)
        async with self.scheduler.turn(Call(runner, request.messages, mission, priority, within)) as turn:
            yield turn

    def attend(self, mission: str) -> AbstractContextManager[None]:
        """Keep the runner of a mission's last call for it for a moment, while the mission runs."""
        return self.scheduler.attend(mission)

    async def runner(self, model: str, digest: str, options: Mapping[str, object]) -> Runner:
        """Return what a call needs in memory; a model about which the daemon says nothing shares with nobody."""
        kin: tuple[str, ...] = ()
        with suppress(OllamaError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                kin = await self._bases.kin(model, digest)
        base, *adapters = kin or (digest,)
        return Runner(base, (*adapters, *runner_key("", options)), wants_card(options) or bool(options.get("num_gpu")))

    async def look(self, model: str, digest: str, options: Mapping[str, object], loaded: float) -> Placement | None:
        """Find where a model lies after a call, as `Watch.look` does."""
        return await self._watch.look(model, digest, options, loaded)
