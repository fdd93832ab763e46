"""The scheduler under any order of requests, departures, unloads, kills and passing time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ollama_emulator.clocks import ManualClock
from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.library.model_tags import parse
from ollama_emulator.library.models import Model
from ollama_emulator.machine.runners import ModelRunner
from ollama_emulator.machine.scheduler import KILLED, NO_MEMORY, Scheduler, Trouble
from ollama_emulator.options import FOR_EVER, DaemonSettings

GIB = 1 << 30
SECOND = 10**9
NAMES = ("llama3.2:1b", "llama3.2:3b", "llama3.1:8b", "all-minilm", "qwen3:4b")


def _models() -> list[Model]:
    """Models of five bases, and siblings with an adapter of two of them."""
    daemon = Emulator(Options(models=NAMES)).daemon
    found = []
    for name in NAMES:
        parsed = parse(name)
        model = daemon.find(parsed) if parsed is not None else None
        assert model is not None
        found.append(model)
    daemon.close()
    return [*found, replace(found[0], adapters=("sha256:a",)), replace(found[1], adapters=("sha256:b",))]


MODELS = _models()
OFTEN = [MODELS[0]] * 6 + MODELS  # most requests meet on one runner


@dataclass(slots=True)
class Call:
    """One request on its way: its task, the runner it holds, whether it has a slot, and when it may end."""

    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    runner: ModelRunner | None = None
    answering: bool = False
    outcome: str = ""
    task: asyncio.Task[None] | None = None

    async def run(self, scheduler: Scheduler, model: Model, options: dict[str, int], keep_alive_ns: int | None) -> None:
        """Load, take a slot, answer until it may end."""
        try:
            async with scheduler.runner(scheduler.ask(model, options), keep_alive_ns) as runner:
                self.runner = runner
                async with runner.slots:
                    self.answering = True
                    await self.may_end.wait()
            self.outcome = "answered"
        except ApiError as refusal:
            self.outcome = f"refused {refusal.status}"
        except asyncio.CancelledError:
            self.outcome = "left"
            raise
        finally:
            self.runner, self.answering = None, False


class Scheduling(RuleBasedStateMachine):
    """Any order of events, on a clock that is moved by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.calls: list[Call] = []
        self.loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        limits = DaemonSettings(max_queue=3, parallel=1, max_loaded=2)
        self.scheduler = Scheduler(limits, self.clock, vram=8 * GIB, load_s=2.0)

    async def _settle(self, turns: int = 30) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    def settle(self) -> None:
        self.loop.run_until_complete(self._settle())

    @property
    def running(self) -> list[Call]:
        return [call for call in self.calls if not call.outcome]

    @rule(
        model=st.sampled_from(OFTEN),
        options=st.sampled_from(
            [{}, {}, {}, {}, {}, {}, {"num_ctx": 512}, {"num_gpu": 0}, {"num_gpu": 5}, {"num_batch": 64}]
        ),
        keep_alive=st.sampled_from([None, 0, 5, 300, FOR_EVER // SECOND]),
    )
    def ask(self, model: Model, options: dict[str, int], keep_alive: int | None) -> None:
        """A client comes."""
        call = Call()
        kept = None if keep_alive is None else keep_alive * SECOND

        async def begin() -> None:
            call.task = asyncio.create_task(call.run(self.scheduler, model, options, kept))

        self.loop.run_until_complete(begin())
        self.calls.append(call)

    @precondition(lambda self: any(call.answering for call in self.calls))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """An answer ends."""
        data.draw(st.sampled_from([call for call in self.calls if call.answering])).may_end.set()
        self.settle()

    @precondition(lambda self: bool(self.running))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A client goes, wherever its request is."""
        call = data.draw(st.sampled_from(self.running))
        assert call.task is not None
        call.task.cancel()
        call.outcome = "left"

    @precondition(lambda self: len(self.running) > 1)
    @rule(data=st.data(), steps=st.integers(0, 6), seconds=st.sampled_from([0.0, 2.0, 400.0]))
    def at_once(self, data: st.DataObject, steps: int, seconds: float) -> None:
        """Time passes, an answer ends and a client goes, so close together that each meets the other half done."""
        calls = self.running
        self.clock.advance(seconds)
        data.draw(st.sampled_from(calls)).may_end.set()
        self.loop.run_until_complete(self._settle(steps))
        call = data.draw(st.sampled_from(calls))
        if not call.outcome and call.task is not None:
            call.task.cancel()
            call.outcome = "left"

    @rule(model=st.sampled_from(MODELS))
    def unload(self, model: Model) -> None:
        """An unload by name."""
        self.scheduler.unload(model)

    @precondition(lambda self: bool(self.scheduler.runners))
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """A process is killed; nobody notices until the next request."""
        data.draw(st.sampled_from(list(self.scheduler.runners.values()))).dead = True

    @rule(error=st.sampled_from([KILLED, NO_MEMORY]), attempts=st.integers(1, 2))
    def trouble(self, error: str, attempts: int) -> None:
        """The next load goes wrong."""
        self.scheduler.trouble = Trouble(error, attempts)

    @rule(seconds=st.sampled_from([0.0, 1.0, 2.0, 10.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)
        self.settle()

    @rule()
    def let_run(self) -> None:
        """Everybody gets a turn."""
        self.settle()

    @invariant()
    def no_more_than_allowed(self) -> None:
        """Two runners at most, each under its own base, and their memory on the card."""
        runners = self.scheduler.runners
        assert len(runners) <= 2
        assert all(runner.ask.model.base == base for base, runner in runners.items())
        assert sum(runner.footprint.on_card for runner in runners.values()) <= 8 * GIB

    @invariant()
    def slots_are_used_once(self) -> None:
        """Nobody answers without a place, and no place twice; what is used is listed."""
        self.settle()
        for runner in self.scheduler.runners.values():
            mine = [call for call in self.calls if call.runner is runner]
            assert runner.refs == len(mine)
            assert runner.slots.used == sum(call.answering for call in mine) <= runner.slots.many
        held = {id(call.runner) for call in self.calls if call.runner is not None}
        assert held <= {id(runner) for runner in self.scheduler.runners.values()}

    @invariant()
    def the_queue_is_bounded(self) -> None:
        """Beyond it clients are refused, and nobody waits where nobody works."""
        state = self.scheduler.state()
        assert state["queued"] <= 3
        holding = sum(call.runner is not None for call in self.running)
        assert holding + state["queued"] + 1 >= len(self.running)

    def teardown(self) -> None:
        """However it stands: once answers end, unloads come and time passes, every request has its end."""
        try:
            self._wind_up()
        finally:
            for call in self.calls:
                if call.task is not None:
                    call.task.cancel()
            self.scheduler.close()
            self.settle()
            self.loop.close()

    def _wind_up(self) -> None:
        for _ in range(200):
            # Whom a client left waiting in the queue is seen off by the scheduler later than the client goes.
            if not self.running and not self.scheduler.state()["queued"]:
                break
            for call in self.running:
                call.may_end.set()
            self.settle()
            for runner in list(self.scheduler.runners.values()):
                self.scheduler.unload(runner.ask.model)
            self.clock.advance(400)
            self.settle()
        assert not self.running
        self.settle()
        assert all(runner.refs == 0 and runner.slots.used == 0 for runner in self.scheduler.runners.values())
        assert self.scheduler.state()["queued"] == 0
        allowed = {"answered", "left", "refused 503", "refused 500"}
        assert {call.outcome for call in self.calls} <= allowed


TestScheduling = Scheduling.TestCase
# A failure is told as it was found, with the line that runs it again: to shrink fifty steps takes minutes where other
# tests run beside this one, longer than a test may take.
TestScheduling.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    print_blob=True,
)
