"""The cell: runs generated methods in worker processes, one fresh interpreter per call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from batos.cell.host import Host, Writes
from batos.cell.limits import CellLimits
from batos.cell.program import Program
from batos.cell.running import MethodRun
from batos.cell.values import Value
from batos.cell.worker_pool import WorkerPool, interpreter
from batos.events import Events
from batos.protocol.errors import CellKilled, CovenantViolation
from batos.protocol.event_payloads import CELL_KILL, CellKill


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a method: the slots of the receiver that it names, the arguments, and the values of clock and random
    seed.
    """

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
