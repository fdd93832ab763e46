"""Work for one emulated card, the orders in which it is done, and the best order that there is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from batos.inference.vram.call_scheduler import Call, CallScheduler, CallTurn
from batos.inference.vram.placement import Runner
from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.library.model_tags import parse
from ollama_emulator.library.models import Model
from virtual_time_side import VirtualClock

PERSONAS: Final = ("robin", "brick", "babs", "alfred")
#: Seconds of a load of five gigabytes, and of a call in the mean: sixty tokens at fifty a second.
LOAD, SERVICE = 5.0, 1.2
BASE, TWIN = "llama3.2:3b", "qwen2.5:1.5b"


@dataclass(frozen=True, slots=True)
class Request:
    """A call: when it comes, whose it is, how long the model works on it, and the calls of its mission that follow."""

    at: float
    persona: str
    seconds: float
    priority: int = 0
    mission: str = ""
    then: tuple[tuple[Request, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ServedCall:
    """A call that was answered, with the seconds that it waited for its place, loads among them."""

    request: Request
    waited: float
    ended: float


@dataclass(slots=True)
class Card:
    """An emulated card. `adapters`: each persona has one of its own; `bases` are shared out among the personas."""

    bases: Sequence[str] = (BASE,)
    adapters: bool = True
    _emulator: Emulator = field(init=False)

    def __post_init__(self) -> None:
        self._emulator = Emulator(Options(models=tuple(self.bases), load_s=LOAD), VirtualClock())

    @property
    def loads(self) -> int:
        """Return how many loads there were."""
        return self._emulator.scheduler.loads

    def model(self, persona: str) -> Model:
        """Return the model of a persona."""
        name = parse(self.bases[PERSONAS.index(persona) % len(self.bases)])
        assert name is not None
        found = self._emulator.daemon.find(name)
        assert found is not None
        return replace(found, adapters=(persona,)) if self.adapters else found

    def runner(self, persona: str) -> Runner:
        """Return what a persona's calls need in memory."""
        model = self.model(persona)
        return Runner(model.base, model.adapters)

    async def serve(self, request: Request, place: CallTurn | None) -> float:
        """Make a call, and return the moment at which the model began with it."""
        loop, scheduler = asyncio.get_running_loop(), self._emulator.scheduler
        before, loads = loop.time(), self.loads
        wanted = scheduler.ask(self.model(request.persona), {"num_ctx": 4096})
        async with scheduler.runner(wanted, None) as runner, runner.slots:
            began = loop.time()
            if place is not None:
                place.listening(None)("")
                place.note_load(began - before if self.loads > loads else 0.0)
            await asyncio.sleep(request.seconds)
        return began


#: Holds a call's place while it is made; yields what hears of its load.
Places: TypeAlias = Callable[[Request], AbstractAsyncContextManager[CallTurn | None]]


def direct() -> Places:
    """Return no order at all: each call goes to the daemon at once."""

    @asynccontextmanager
    async def place(request: Request) -> AsyncIterator[None]:
        yield

    return place


def first_come() -> Places:
    """Return the order in which calls come, one at a time."""
    lock = asyncio.Lock()

    @asynccontextmanager
    async def place(request: Request) -> AsyncIterator[None]:
        async with lock:
            yield

    return place


def affine() -> Places:
    """Return the order of a simple greedy: the oldest call of the persona that is loaded, else the oldest."""
    waiting: list[tuple[Request, asyncio.Future[None]]] = []
    state: dict[str, str | bool] = {"persona": "", "busy": False}

    def advance() -> None:
        if state["busy"] or not waiting:
            return
        chosen = next((each for each in waiting if each[0].persona == state["persona"]), waiting[0])
        waiting.remove(chosen)
        state.update(busy=True, persona=chosen[0].persona)
        chosen[1].set_result(None)

    @asynccontextmanager
    async def place(request: Request) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        waiting.append((request, turn))
        advance()
        await turn
        try:
            yield
        finally:
            state["busy"] = False
            advance()

    return place


def order_by_scheduler(card: Card, scheduler: CallScheduler) -> Places:
    """Return the order of our own scheduler."""

    @asynccontextmanager
    async def place(request: Request) -> AsyncIterator[CallTurn]:
        call = Call(card.runner(request.persona), mission=request.mission, priority=request.priority)
        async with scheduler.turn(call) as turn:
            yield turn

    return place


async def run(
    card: Card, requests: Sequence[Request], places: Places, scheduler: CallScheduler | None
) -> list[ServedCall]:
    """Do all work; a mission's calls come in their order, those of one step side by side."""
    loop, served = asyncio.get_running_loop(), list[ServedCall]()

    async def call(request: Request) -> None:
        came = loop.time()
        async with places(request) as turn:
            began = await card.serve(request, turn)
        served.append(ServedCall(request, began - came, loop.time()))

    async def mission(request: Request) -> None:
        await asyncio.sleep(max(0.0, request.at - loop.time()))
        if scheduler is None or not request.then:
            await follow(request)
            return
        with scheduler.attend(request.mission):
            await follow(request)

    async def follow(request: Request) -> None:
        await call(request)
        for step in request.then:
            await asyncio.sleep(0.05)  # the mind's own work between two calls
            await asyncio.gather(*map(call, step))

    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(mission(request))
    return served


# -- work


def at_random(seed: int, many: int = 60, pause: float = 0.6) -> list[Request]:
    """Return calls of the four personas that come at random: somewhat more than the card can do."""
    dice, at, found = random.Random(seed), 0.0, list[Request]()
    for _ in range(many):
        at += dice.expovariate(1 / pause)
        found.append(Request(at, dice.choice(PERSONAS), dice.uniform(0.4, 2 * SERVICE - 0.4)))
    return found


def at_random_for_long(seed: int) -> list[Request]:
    """Return four times as many: how the first and the last loads are shared out no longer matters."""
    return at_random(seed, 240)


def in_bursts(seed: int) -> list[Request]:
    """Return four bursts of fifteen calls."""
    dice = random.Random(seed)
    return [
        Request(60.0 * burst, dice.choice(PERSONAS), dice.uniform(0.4, 2 * SERVICE - 0.4))
        for burst in range(4)
        for _ in range(15)
    ]


def in_councils(seed: int) -> list[Request]:
    """Return eight councils: each divides, asks all personas side by side, and weaves."""
    dice = random.Random(seed)
    found, at = list[Request](), 0.0
    for number in range(8):
        at += dice.expovariate(1 / 10)
        name = f"m-{number}"
        one, *_ = order = dice.sample(PERSONAS, 4)
        parts = tuple(Request(0, each, dice.uniform(1, 3), mission=name) for each in order for _ in range(2))
        weave = (Request(0, one, 2.0, mission=name),)
        found.append(Request(at, one, 0.5, mission=name, then=(parts, weave)))
    return found


def in_cycles(seed: int) -> list[Request]:
    """Return eight missions of six calls, one after another, each of one persona."""
    dice = random.Random(seed)
    found, at = list[Request](), 0.0
    for number in range(8):
        at += dice.expovariate(1 / 6)
        name, persona = f"m-{number}", dice.choice(PERSONAS)
        steps = tuple((Request(0, persona, dice.uniform(0.5, 2), mission=name),) for _ in range(5))
        found.append(Request(at, persona, 1.0, mission=name, then=steps))
    return found


def with_a_greedy_one(seed: int) -> list[Request]:
    """Return ten minutes in which one persona is asked without end, and the others now and then."""
    dice = random.Random(seed)
    flood = [Request(number * 1.5, "robin", 2.0) for number in range(300)]
    others = [Request(dice.uniform(0, 500), dice.choice(PERSONAS[1:]), 2.0, mission="rare") for _ in range(15)]
    return [*flood, *others]


def with_priorities(seed: int) -> list[Request]:
    """Return ten minutes of the mind's own work, and a person's questions to other personas."""
    dice = random.Random(seed)
    own = [Request(number * 2.0, "alfred", 2.0, -9) for number in range(300)]
    asked = [Request(dice.uniform(0, 550), dice.choice(PERSONAS[:3]), 2.0, mission="person") for _ in range(30)]
    return [*own, *asked]


# -- the best order


def optimum(requests: Sequence[Request]) -> float:
    """Return the earliest moment at which all can be done, one after another, with a load at each change of persona.

    Calls of one persona are done as they come: no other order is sooner. So a state is how many of each are done and
    whose turn was the last, and of each state only the soonest way to it matters.
    """
    rows = [sorted((each for each in requests if each.persona == name), key=lambda each: each.at) for name in PERSONAS]
    states: dict[tuple[tuple[int, ...], int], float] = {((0,) * len(rows), -1): 0.0}
    for _ in requests:
        states = _step(states, rows)
    return min(states.values())


def _step(
    states: dict[tuple[tuple[int, ...], int], float], rows: Sequence[Sequence[Request]]
) -> dict[tuple[tuple[int, ...], int], float]:
    """Return all states after one more call. A load may begin before the call comes: the best order knows it."""
    after: dict[tuple[tuple[int, ...], int], float] = {}
    for (done, last), now in states.items():
        for place, row in enumerate(rows):
            if done[place] < len(row):
                request = row[done[place]]
                ready = now if place == last else now + LOAD
                key = (*done[:place], done[place] + 1, *done[place + 1 :]), place
                end = max(ready, request.at) + request.seconds
                after[key] = min(end, after.get(key, end))
    return after
