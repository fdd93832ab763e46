"""The rehearsal: a method is called in a cell as its checks say, with scripted inference and scripted messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol, cast

from batos.cell.cell import MethodCall, Outcome
from batos.cell.host import Host, Sent, Writes
from batos.cell.limits import CellLimits
from batos.cell.program import Program
from batos.cell.values import Plain, Ref, Value
from batos.errors import CellKilled, CellMissing, MethodFailed
from batos.methods.generation.method_checks import Check, display

#: The time that it is in every rehearsal, so that a check comes out the same whenever it is run.
NOW: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
#: A rehearsal is small: what runs on is wrong, and mutants do.
LIMITS: Final = CellLimits(seconds=1.0, turn_seconds=0.5, wall_seconds=2.0, messages=50, bytes=64 << 10)
#: Answered with nothing where a check has no answer for it: it tells nobody anything.
_SILENT: Final = "log_"
_INFER: Final = "infer_"
_UNASKED: Final = "nothing that it sent to `infer_` holds the text that it was called with"


class Cells(Protocol):
    """What a rehearsal needs of a cell."""

    async def run(self, program: Program, call: MethodCall, host: Host) -> Outcome:
        """One run; MethodFailed."""
        ...


class Unscripted(MethodFailed):
    """A method sent a message for which its check has no answer."""


@dataclass(slots=True)
class Scripted:
    """The host of a rehearsal: every message is answered from the check, in order; no object is there but the receiver.

    No model is asked and nothing outside is reached, whatever the method sends.
    """

    replies: Mapping[str, Sequence[Plain]]
    sent: list[str] = field(default_factory=list)
    #: What the model was asked, if it was.
    asked: list[str] = field(default_factory=list)

    def heard(self, arguments: Sequence[Plain]) -> bool:
        """Whether the model, if it was asked at all, was told the text that the method was called with."""
        said = next((each for each in arguments if isinstance(each, str)), "").strip().casefold()
        return not self.asked or any(said in each for each in self.asked)

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> Sent:
        """The next answer that the check has for the selector."""
        given = self.replies.get(selector, ())
        number = self.sent.count(selector)
        self.sent.append(selector)
        if selector == _INFER:
            self.asked.append(" ".join(map(str, (*args, *kwargs.values()))).casefold())
        if number < len(given):
            return Sent(cast(Value, given[number]))
        if selector == _SILENT:
            return Sent(None)
        has = f"{len(given)} answers" if given else "no answer"
        raise Unscripted(f"it sent `{selector}` {number + 1} times, and the check's `replies` has {has} for it")

    async def read(self, of: Ref, slot: str) -> Sent:
        """No other object can be in a check."""
        raise Unscripted(f"it read `{slot}` of another object, and a check has none")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Where checks are run: slots that are there before each, unless it says otherwise.

    `speaks`: a method that asks the model must ask it what it was asked itself (a facet, a protocol).
    """

    cell: Cells
    given: Mapping[str, Plain] = field(default_factory=dict)
    speaks: bool = False

    async def all(self, program: Program, checks: Sequence[Check]) -> list[str]:
        """Run every check; a fault in words for each that does not come out. CellMissing: there is no cell."""
        faults: list[str] = []
        for number, check in enumerate(checks, 1):
            faults += [f"check {number}: {fault}" for fault in await self.one(program, check)]
        return faults

    async def one(self, program: Program, check: Check) -> list[str]:
        """Run one check: what is wrong with what came of it."""
        before = {**self.given, **check.before}
        view = {name: cast(Value, value) for name, value in before.items() if name in program.view}
        call = MethodCall(view, cast(Sequence[Value], check.arguments), seed=program.digest, now=NOW)
        host = Scripted(check.replies)
        try:
            outcome = await self.cell.run(program, call, host)
        except CellMissing:
            raise
        except CellKilled as error:  # how far it went over is another number each time
            return [f"called with {display(list(check.arguments))} it was stopped at its limit of {error.limit}"]
        except MethodFailed as error:
            return [f"called with {display(list(check.arguments))} it failed: {error.message}"]
        after = {**before, **outcome.writes.values}
        for name in outcome.writes.deleted:
            after.pop(name, None)
        unasked = [] if not self.speaks or host.heard(check.arguments) else [_UNASKED]
        return check.faults(outcome.result, after) + unasked
