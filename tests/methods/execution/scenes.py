"""An invocation within a mission that is stepped through, for tests of what the kernel does with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.minds.scripted import Stepping, stepping, submit

from batos.cell.cell import MethodCall, Outcome
from batos.cell.program import Program, prepare
from batos.cell.values import Host, Value, Writes
from batos.guardian.policy import SlotUse
from batos.memory.evidence import Evidence
from batos.methods.execution.resolution import Invocation, ToMethod
from batos.minds import states
from batos.minds.context import MethodCell
from batos.minds.results import Synthesis
from batos.objects.method import Method
from batos.uvm import UVM


class FakeCell:
    """A cell whose methods are functions of the host: what a cell that is broken, or lies, could do."""

    def __init__(self, work: Callable[[MethodCall, Host], Awaitable[tuple[Value, Writes]]]) -> None:
        self.work = work
        self.runs = 0

    async def run(self, program: Program, call: MethodCall, host: Host) -> Outcome:
        """Whatever the function says."""
        self.runs += 1
        result, writes = await self.work(call, host)
        return Outcome(result, writes, 0, "", 0.0)


SOURCE = "def try_(self):\n    return None\n"


def program(*slots: str) -> Program:
    """A program that uses these slots, and may change each of them."""
    names = frozenset(slots)
    return replace(prepare(SOURCE, SlotUse(), "try_"), view=names, changes=names)


@asynccontextmanager
async def errands(uvm: UVM, mission: str = "") -> AsyncIterator[tuple[Stepping, Invocation[ToMethod]]]:
    """A mission of BRICK, and a message to its method `try_` within it; nothing of it is committed."""
    async with stepping(uvm, mission or await submit(uvm)) as opened:
        setattr(opened.cycle, states.WORK_SLOT, Synthesis())
        yield opened, make_invocation(opened)


def make_invocation(opened: Stepping, **changes: Any) -> Invocation[ToMethod]:
    """A message to BRICK's method `try_`."""
    persona = opened.context.mind.persona
    fields = {
        "context": opened.context,
        "interpreter": opened.interpreter,
        "message": ToMethod(persona, persona, "try_", Method("try_", SOURCE)),
        "path": "brick/try",
        "evidence": Evidence(),
        "trust": "user",
    }
    return Invocation(**{**fields, **changes})


def with_cell(given: Invocation[ToMethod], cell: MethodCell) -> Invocation[ToMethod]:
    """The same message, in a mission whose methods run in this cell."""
    io = given.context.io
    return replace(given, context=replace(given.context, io=replace(io, methods=replace(io.methods, cell=cell))))
