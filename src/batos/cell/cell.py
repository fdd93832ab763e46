"""The cell: runs generated methods in worker processes, and answers them between their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from batos.cell.program import Program
from batos.cell.values import CellLimits, Host, MessageAnswer, Value, Writes
from batos.cell.worker_pool import Dump, WorkerPool, interpreter
from batos.cell.worker_turns import HostCall, WorkerTurn, WorkerTurns, input_text, pending_writes
from batos.events import Events
from batos.protocol.errors import CellKilled, CovenantViolation, MethodFailed
from batos.protocol.event_payloads import CELL_KILL, CellKill


@dataclass(slots=True)
class _CallQueue:
    """A run and the runs that its messages bring about: how deep this one is, and what all of them have sent."""

    depth: int = 0
    sent: list[int] = field(default_factory=lambda: [0])


_LINE: ContextVar[_CallQueue] = ContextVar("batos_cell_line")

#: Turns of the event loop that an answer may take while the worker is kept for it: dumping costs more than that.
_PATIENCE: Final = 6


class MethodRun:
    """A method under way. After `go` its attributes say what came of it."""

    def __init__(
        self, workers: WorkerPool, program: Program, limits: CellLimits, host: Host, policy: Mapping[str, object]
    ) -> None:
        self._workers = workers
        self._program = program
        self._limits = limits
        self._host = host
        self._policy = policy
        self._view: Mapping[str, Value] = {}  # what the receiver was when last looked at
        self._line = _CallQueue()
        self._turns: WorkerTurns | None = None  # while a worker is held
        self._tasks: dict[int, asyncio.Task[MessageAnswer]] = {}
        self.result: Value = None
        self.writes = Writes()
        self.sends = 0
        self.printed = ""
        self.seconds = 0.0
        self.cpu = 0.0

    async def go(self, view: Mapping[str, Value], args: list[Value], kwargs: dict[str, Value]) -> None:
        """Run to the end."""
        self._view = {name: value for name, value in view.items() if name in self._program.view}
        above = _LINE.get(None)
        self._line = _CallQueue(above.depth + 1, above.sent) if above is not None else _CallQueue()
        if self._line.depth > self._limits.nesting:
            raise CellKilled(f"{self._program.selector} is {self._line.depth} messages deep", "nesting")
        token = _LINE.set(self._line)  # what the host does for this run, it does in this context
        try:
            turn = await self._begin(args, kwargs)
            while not turn.is_done:
                turn = await self._on(turn)
        finally:
            _LINE.reset(token)
            self._drop()
            await self._stop(self._tasks.values())
        self.result = turn.result
        self.writes = pending_writes(turn.slots, turn.is_marked, self._view, self._program)

    async def _begin(self, args: list[Value], kwargs: dict[str, Value]) -> WorkerTurn:
        turns = await self._take()
        view, program, limits = self._view, self._program, self._limits
        return self._count(
            await self._work(turns, lambda: turns.start(input_text(program, view, args, kwargs, limits)))
        )

    async def _on(self, turn: WorkerTurn) -> WorkerTurn:
        """Ask the host what the method asked, and go on with what has been answered."""
        for asked in turn.asked:
            self._tasks[asked.number] = asyncio.create_task(self._ask(asked))
        wanted = [turn.now] if turn.now is not None else sorted(turn.pending)
        awaited = [self._tasks[number] for number in wanted if number in self._tasks]
        if not awaited:
            raise MethodFailed(f"{self._program.selector} waits for an answer that cannot come")
        dump = await self._wait(awaited)
        answers = {number: task.result() for number, task in self._tasks.items() if task in awaited and task.done()}
        for number, sent in answers.items():
            self._look(sent)
            del self._tasks[number]
        if dump is None and (turns := self._turns) is not None:
            return self._count(await self._work(turns, lambda: turns.answer(answers, turn.now)))
        if dump is None:  # nothing is held and nothing was kept: there is no such turn
            raise MethodFailed(f"{self._program.selector} lost its worker")
        resumed = await self._take()
        return self._count(await self._work(resumed, lambda: resumed.load(dump, answers, turn.now)))

    async def _wait(self, tasks: list[asyncio.Task[MessageAnswer]]) -> Dump | None:
        """Wait until one is answered; a wait that is not over at once gives the worker back, and has its dump."""
        for _ in range(_PATIENCE):
            if any(task.done() for task in tasks):
                return None
            await asyncio.sleep(0)
        dump = None
        if (turns := self._turns) is not None:
            dumps = self._workers.dumps
            dump = await self._work(turns, lambda: turns.dump(dumps))
            self._drop()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return dump

    async def _ask(self, asked: HostCall) -> MessageAnswer:
        if asked.reads and asked.to is not None:
            return await self._host.read(asked.to, asked.selector)
        writes = pending_writes(asked.slots, asked.is_marked, self._view, self._program)
        return await self._host.send(asked.to, asked.selector, asked.args, asked.kwargs, writes)

    def _look(self, sent: MessageAnswer) -> None:
        """Take the receiver's slots after a message as the new view, with which later writes are compared.

        Raises: MethodFailed: a slot that the method uses is gone.
        """
        if sent.slots is None:
            return
        fresh = {name: value for name, value in sent.slots.items() if name in self._program.view}
        lost = self._view.keys() - fresh.keys() - self._program.changes
        if lost:
            raise MethodFailed(f"{', '.join(sorted(lost))} went while {self._program.selector} waited")
        self._view = fresh

    def _count(self, turn: WorkerTurn) -> WorkerTurn:
        self.seconds += turn.seconds
        self.cpu += turn.cpu
        self.printed += turn.printed
        self.sends += len(turn.asked)
        self._line.sent[0] += len(turn.asked)
        if self._line.sent[0] > self._limits.nested_messages:
            raise CellKilled(
                f"{self._program.selector} and what it sent to: over {self._limits.nested_messages} messages",
                "messages",
            )
        if self.seconds > self._limits.seconds:
            raise CellKilled(f"{self._program.selector} ran for more than {self._limits.seconds:g} seconds", "time")
        if len(self.printed) > self._limits.output:
            raise CellKilled(f"{self._program.selector} printed more than {self._limits.output} characters", "output")
        return turn

    async def _take(self) -> WorkerTurns:
        worker = await self._workers.take(self._policy)
        self._turns = WorkerTurns(worker, self._program, self._limits, self._limits.messages - self.sends)
        return self._turns

    async def _work(self, turns: WorkerTurns, function: Any) -> Any:
        """Run a function in the worker. If it fails the worker goes back to the pool and this run has none."""
        self._turns = None
        found = await self._workers.work(turns.worker, function)
        self._turns = turns
        return found

    def _drop(self) -> None:
        """Return the worker to its pool, if one is held."""
        turns, self._turns = self._turns, None
        if turns is not None:
            self._workers.give(turns.worker)

    async def _stop(self, tasks: Iterable[asyncio.Task[MessageAnswer]]) -> None:
        """End the messages that nobody waits for any more; that one was never awaited is no error of the run's."""
        left = list(tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
            for task in left:
                if not task.cancelled():
                    task.exception()


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a method: the slots of the receiver that it names, arguments, and values of clock and seed."""

    view: Mapping[str, Value]
    args: Sequence[Value] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    seed: str = ""
    now: datetime | None = None  # None: the time at which it begins


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: `result` is plain data or one Ref; `writes` are marked, or empty."""

    result: Value
    writes: Writes
    sends: int
    printed: str
    seconds: float  # of the processor, in its own code: where the system does not tell them, those that passed in it


class Cell:
    """A pool of workers; none is started before the first run, and nothing of the interpreter is loaded.

    `binary` and `load` are seams: another executable of the interpreter, another way to load its bindings.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: CellLimits | None = None,
        events: Events | None = None,
        *,
        binary: Path | None = None,
        load: Callable[[], ModuleType] = interpreter,
    ) -> None:
        self._limits = limits or CellLimits()
        self._events = events or Events()
        self._workers = WorkerPool(workers, self._limits, binary=binary, load=load)

    async def run(self, program: Program, call: MethodCall, host: Host) -> Outcome:
        """Run a method: MethodFailed when it raises or gives no plain data, CovenantViolation when it wrote without
        the marker, CellKilled over a limit, CellMissing without an interpreter; whatever `host` raises.
        """
        policy = {
            "datetime": call.now or datetime.now(UTC),
            "sleep": "zero",
            "random_start": {"seed": f"{program.digest} {call.seed}"},
        }
        run = MethodRun(self._workers, program, self._limits, host, policy)
        try:
            await run.go(call.view, list(call.args), dict(call.kwargs))
        except CellKilled as error:
            self._events.emit(CELL_KILL, CellKill(selector=program.selector, limit=error.limit))
            raise
        if run.writes and not run.writes.is_marked:
            raise _marker_violation(program, run.writes)
        return Outcome(run.result, run.writes, run.sends, run.printed, run.cpu)

    async def aclose(self) -> None:
        """Stop the workers; runs that wait end in CellMissing when they would go on."""
        await self._workers.aclose()


def _marker_violation(program: Program, writes: Writes) -> CovenantViolation:
    names = ", ".join(sorted({*writes.values, *writes.deleted}))
    why = f"it changed {names} and ended without self._p_changed = True"
    remedy = "End every path that changes a slot with self._p_changed = True."
    fault = {"line": 0, "column": 0, "rule": "covenant", "why": why, "remedy": remedy}
    return CovenantViolation(f"{program.selector}: {why}; nothing was kept", faults=(fault,), remedy=remedy)
