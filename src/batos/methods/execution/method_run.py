"""Running a method: its view built, its program run in the cell, its writes laid into the image at a good end."""

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
from batos.minds.context import Runs
from batos.objects.prototype import label

#: How often a method is run when other parts of its mission change what it read; each time costs only its own time.
MOST_RUNS: Final = 12


#: Raises MethodFailed where whoever sent the message can take nothing from what came of it.
Takes: TypeAlias = Callable[[Invocation, InvocationResult], None]


def accept_any(errand: Invocation, ran: InvocationResult) -> None:
    """A method and `batos send` take whatever a method gives."""


async def run(errand: Invocation, takes: Takes = accept_any) -> InvocationResult:
    """Run a method to its end; what it wrote is in the image, or on the sheet below, when this returns, and only then.

    What `takes` refuses is its failure like any other. MethodFailed, CovenantViolation, CellKilled: it failed, and
    wrote nothing. CellMissing: there is no cell. And what its messages may not catch: a spent budget, a mission that is
    held, a daemon that is away.
    """
    cell = errand.context.io.methods.cell
    if cell is None:
        raise CellMissing(
            f"{errand.selector!r} of {label(errand.receiver)} is a method, and there is no cell to run it in"
        )
    return await of_method(errand, _run(errand, cell, takes))


async def _run(errand: Invocation, cell: Runs, takes: Takes) -> InvocationResult:
    assert errand.method is not None
    return await run_until_unchanged(errand, cell, await program_of(errand.method), takes)


async def run_until_unchanged(
    errand: Invocation, cell: Runs, program: Program, takes: Takes = accept_any
) -> InvocationResult:
    """What the first run gives that rests on what is there when it ends; its changes are laid down with that."""
    for _ in range(MOST_RUNS):
        sheet = WriteBuffer(errand.below or errand.mind, errand.context.mission.brief.user)
        ran = await _once(errand, cell, program, sheet)
        moved = sheet.stale_read()
        if moved is None:
            takes(errand, ran)
            # No await since it was looked at: what is laid now rests on what is there.
            errand.context.trace.changed(sheet.merge_down())
            errand.tally.seconds += ran.seconds
            if errand.below is None:
                errand.context.trace.saw(ran.trust)
            return ran
    raise MethodFailed(
        f"{moved} was changed by other parts of the mission each of the {MOST_RUNS} times that {errand.selector!r} ran",
        remedy="Keep what parts write at once in slots of their own.",
    )


async def _once(errand: Invocation, cell: Runs, program: Program, sheet: WriteBuffer) -> InvocationResult:
    view = View(sheet, errand.receiver, program.view)
    host = MethodHost(errand, sheet, view, run)
    call = MethodCall(view.shown(), [*errand.args], dict(errand.kwargs), _seed(errand), _now(errand))
    outcome = await cell.run(program, call, host)
    host.take(outcome.writes)
    result = view.table.meant(outcome.result, f"the result of {errand.selector!r}")
    return InvocationResult(result, tuple(host.thoughts), host.trust, outcome.seconds)


def _seed(errand: Invocation) -> str:
    """Chance is the same in every attempt and retry, and differs by place and by when the question was asked."""
    return hashlib.sha256(f"{errand.context.mission.scene.asked_at} {errand.path}".encode()).hexdigest()


def _now(errand: Invocation) -> datetime:
    """Time stands still at the moment when the question was asked."""
    return datetime.fromisoformat(errand.context.mission.scene.asked_at)
