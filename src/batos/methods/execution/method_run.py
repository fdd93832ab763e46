"""The run of a method: builds its view, runs its program in the cell, and merges its writes if it succeeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeAlias

from batos.cell.cell import MethodCall
from batos.cell.program import Program
from batos.errors import CellMissing, MethodFailed
from batos.methods.execution.compilation import program_of
from batos.methods.execution.invocation import Invocation, InvocationResult
from batos.methods.execution.method_host import MethodHost
from batos.methods.execution.receiver_view import View
from batos.methods.execution.usage import of_method
from batos.methods.execution.write_buffer import WriteBuffer
from batos.minds.context import MethodCell
from batos.objects.prototype import label

#: The most runs of a method while other parts change slots that it read; a repeated run pays for no call again.
MOST_RUNS: Final = 12


#: Raises MethodFailed if the sender of the message cannot use the result.
Takes: TypeAlias = Callable[[Invocation, InvocationResult], None]


def accept_any(errand: Invocation, ran: InvocationResult) -> None:
    """Accept any result: a method and `batos send` take whatever a method returns."""


async def run(errand: Invocation, takes: Takes = accept_any) -> InvocationResult:
    """Run a method to its end and return its result. Its writes are merged into the buffer below, or the image, on
    success only.

    `takes` may refuse the result, which then counts as the method's failure. Besides the errors listed, errors that
    messages may not catch pass through: a spent budget, a stopped mission, a daemon that cannot be reached.

    Raises: CellMissing: there is no cell. MethodFailed, CovenantViolation, CellKilled: the method failed, and wrote
    nothing.
    """
    cell = errand.context.io.methods.cell
    if cell is None:
        raise CellMissing(
            f"{errand.selector!r} of {label(errand.receiver)} is a method, and there is no cell to run it in"
        )
    return await of_method(errand, _run(errand, cell, takes))


async def _run(errand: Invocation, cell: MethodCell, takes: Takes) -> InvocationResult:
    """Compile the method and run it until its reads are still valid at its end."""
    assert errand.method is not None
    return await run_until_unchanged(errand, cell, await program_of(errand.method), takes)


async def run_until_unchanged(
    errand: Invocation, cell: MethodCell, program: Program, takes: Takes = accept_any
) -> InvocationResult:
    """Run the program until no slot that it read was changed by another part during the run, then merge its writes.

    Raises: MethodFailed: a slot that it read was changed during each of MOST_RUNS runs.
    """
    for _ in range(MOST_RUNS):
        sheet = WriteBuffer(errand.below or errand.mind, errand.context.mission.brief.user)
        ran = await _once(errand, cell, program, sheet)
        moved = sheet.stale_read()
        if moved is None:
            takes(errand, ran)
            # No await since the comparison: so the reads are still current when the writes are merged.
            errand.context.trace.changed(sheet.merge_down())
            errand.tally.seconds += ran.seconds
            if errand.below is None:
                errand.context.trace.saw(ran.trust)
            return ran
    raise MethodFailed(
        f"{moved} was changed by other parts of the mission each of the {MOST_RUNS} times that {errand.selector!r} ran",
        remedy="Keep what parts write at once in slots of their own.",
    )


async def _once(errand: Invocation, cell: MethodCell, program: Program, sheet: WriteBuffer) -> InvocationResult:
    """Run the program once over a fresh write buffer, and return its result; the writes stay in the buffer."""
    view = View(sheet, errand.receiver, program.view)
    host = MethodHost(errand, sheet, view, run)
    call = MethodCall(view.shown(), [*errand.args], dict(errand.kwargs), _seed(errand), _now(errand))
    outcome = await cell.run(program, call, host)
    host.take(outcome.writes)
    result = view.table.meant(outcome.result, f"the result of {errand.selector!r}")
    return InvocationResult(result, tuple(host.thoughts), host.trust, outcome.seconds)


def _seed(errand: Invocation) -> str:
    """Return the seed of the run's random numbers: equal in every attempt and retry, different for each path and
    mission time.
    """
    return hashlib.sha256(f"{errand.context.mission.shared.asked_at} {errand.path}".encode()).hexdigest()


def _now(errand: Invocation) -> datetime:
    """Return the time that the method sees: the moment when the question was asked, for the whole mission."""
    return datetime.fromisoformat(errand.context.mission.shared.asked_at)
