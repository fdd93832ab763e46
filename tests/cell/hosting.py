"""What tests of the cell say to it: slot names, a method run once, and a host whose answers are given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from tests.waiting import HANG

from batos.cell.cell import Cell, MethodCall, Outcome
from batos.cell.program import Program, prepare
from batos.cell.values import CellLimits, MessageAnswer, RaisedError, Ref, Writes
from batos.guardian.policy import SlotUse

Answer = Callable[..., Awaitable[Any]]
#: The limits that ship, but for those of time: a worker may be as slow as it likes.
PATIENT = CellLimits(seconds=HANG, turn_seconds=HANG, wall_seconds=HANG)


def uses(reads: str = "", writes: str = "", mutates: str = "", deletes: str = "") -> SlotUse:
    """Slot names, each a text of names between blanks."""
    return SlotUse(*(frozenset(names.split()) for names in (reads, writes, mutates, deletes)))


def method(source: str, slots: SlotUse | None = None, selector: str = "") -> Program:
    """A program of indented source."""
    return prepare(dedent(source), slots or SlotUse(), selector)


@dataclass
class HostMessage:
    """One message as the host saw it."""

    to: Ref | None
    selector: str
    args: list[Any]
    kwargs: dict[str, Any]
    pending: Writes


@dataclass
class Answers:
    """A host that answers by selector (`name` to self, `1.name` to an object) with a value, a Sent, or a coroutine
    function of the arguments; slots of objects by (number, slot). Anything else is not understood.
    """

    by: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[tuple[int, str], Any] = field(default_factory=dict)
    asked: list[HostMessage] = field(default_factory=list)

    async def send(
        self, to: Ref | None, selector: str, args: list[Any], kwargs: dict[str, Any], pending: Writes
    ) -> MessageAnswer:
        self.asked.append(HostMessage(to, selector, args, kwargs, pending))
        name = selector if to is None else f"{to.number}.{selector}"
        if name not in self.by:
            return MessageAnswer(raised=RaisedError("AttributeError", f"{name} is not understood"))
        found = self.by[name]
        if callable(found):
            found = await found(*args, **kwargs)
        return found if isinstance(found, MessageAnswer) else MessageAnswer(found)

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        if (of.number, slot) not in self.slots:
            return MessageAnswer(raised=RaisedError("AttributeError", slot))
        return MessageAnswer(self.slots[of.number, slot])

    @property
    def selectors(self) -> list[str]:
        """What was sent, in order."""
        return [each.selector for each in self.asked]


async def outcome(cell: Cell, program: Program, call: MethodCall | None = None, host: Answers | None = None) -> Outcome:
    """What a program comes to."""
    return await cell.run(program, call or MethodCall({}), host or Answers())


async def result(cell: Cell, source: str, *args: Any, view: Mapping[str, Any] | None = None, slots: str = "") -> Any:
    """The result of a method that reads the slots of the view and has nobody to send to."""
    names = uses(reads=" ".join(view or ()) + " " + slots)
    return (await outcome(cell, method(source, names), MethodCall(view or {}, args))).result


async def soon() -> None:
    """Several turns of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)
