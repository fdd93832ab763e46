"""The rehearsal: runs a method in a cell as its checks say, with scripted answers to inference and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, cast

from batos.cell.cell import Cell, MethodCall
from batos.cell.host import MessageAnswer, Writes
from batos.cell.limits import CellLimits
from batos.cell.program import Program
from batos.cell.values import Plain, Ref, Value
from batos.methods.generation.method_checks import Check, display
from batos.protocol.errors import CellKilled, CellMissing, MethodFailed

#: The time in every rehearsal, so that a check has the same outcome whenever it is run.
NOW: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
#: A rehearsal is short: a run beyond these limits is a fault, and mutants often run on.
LIMITS: Final = CellLimits(seconds=1.0, turn_seconds=0.5, wall_seconds=2.0, messages=50, bytes=64 << 10)
#: Answered with None without an answer in the check, because it has no effect.
_SILENT: Final = "log_"
_INFER: Final = "infer_"
_UNASKED: Final = "nothing that it sent to `infer_` holds the text that it was called with"


class Unscripted(MethodFailed):
    """A method sent a message for which its check has no answer."""


@dataclass(slots=True)
class ScriptedHost:
    """The host of a rehearsal: answers every message from the check, in order. The only object is the receiver.

    No model is asked and nothing outside is reached, whatever the method sends.
    """

    replies: Mapping[str, Sequence[Plain]]
    sent: list[str] = field(default_factory=list)
    #: The questions to the model.
    asked: list[str] = field(default_factory=list)

    def heard(self, arguments: Sequence[Plain]) -> bool:
        """Test if the model was told the first text argument of the call, or was not asked at all."""
        said = next((each for each in arguments if isinstance(each, str)), "").strip().casefold()
        return not self.asked or any(said in each for each in self.asked)

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Return the check's next answer for the selector. Raises: Unscripted: there is none."""
        given = self.replies.get(selector, ())
        number = self.sent.count(selector)
        self.sent.append(selector)
        if selector == _INFER:
            self.asked.append(" ".join(map(str, (*args, *kwargs.values()))).casefold())
        if number < len(given):
            return MessageAnswer(cast(Value, given[number]))
        if selector == _SILENT:
            return MessageAnswer(None)
        has = f"{len(given)} answers" if given else "no answer"
        raise Unscripted(f"it sent `{selector}` {number + 1} times, and the check's `replies` has {has} for it")

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Raise Unscripted: a check has no other object."""
        raise Unscripted(f"it read `{slot}` of another object, and a check has none")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Runs checks in a cell. `given` are slots that each check begins with, unless the check says otherwise.

    With `speaks`, a method that asks the model must pass on the text that it was sent (a facet, a protocol).
    """

    cell: Cell
    given: Mapping[str, Plain] = field(default_factory=dict)
    speaks: bool = False

    async def all(self, program: Program, checks: Sequence[Check]) -> list[str]:
        """Run every check, and return the faults of those that fail. Raises: CellMissing: there is no cell."""
        faults: list[str] = []
        for number, check in enumerate(checks, 1):
            faults += [f"check {number}: {fault}" for fault in await self.one(program, check)]
        return faults

    async def one(self, program: Program, check: Check) -> list[str]:
        """Run one check and return its faults. Raises: CellMissing: there is no cell."""
        host = ScriptedHost(check.replies)
        try:
            result, after = await self.outcome(program, check, host)
        except CellMissing:
            raise
        except CellKilled as error:  # only the limit is named, because the excess differs each time
            return [f"called with {display(list(check.arguments))} it was stopped at its limit of {error.limit}"]
        except MethodFailed as error:
            return [f"called with {display(list(check.arguments))} it failed: {error.message}"]
        unasked = [] if not self.speaks or host.heard(check.arguments) else [_UNASKED]
        return check.faults(result, after) + unasked

    async def outcome(self, program: Program, check: Check, host: ScriptedHost) -> tuple[object, dict[str, object]]:
        """Return what the call of a check returns, and the slots after it. Raises: as the cell."""
        before = {**self.given, **check.before}
        view = {name: cast(Value, value) for name, value in before.items() if name in program.view}
        call = MethodCall(view, cast(Sequence[Value], check.arguments), seed=program.digest, now=NOW)
        outcome = await self.cell.run(program, call, host)
        after: dict[str, object] = {**before, **outcome.writes.values}
        for name in outcome.writes.deleted:
            after.pop(name, None)
        return outcome.result, after
