"""Checks: calls of a method with their expected outcomes, and the rehearsal that runs it in a cell as they say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NoReturn, cast

from pydantic import BaseModel, Field

from batos.agency.records.effect_records import FORMS
from batos.cell.cell import Cell, MethodCall
from batos.cell.program import Program
from batos.cell.values import CellLimits, MessageAnswer, Plain, Ref, Value, Writes, plain
from batos.inference.schema import Decision
from batos.objects.prototype import is_reserved
from batos.protocol.errors import CellKilled, CellMissing, MethodFailed, UsageError

#: Stands in `slots` for a slot that the method must have deleted.
GONE: Final[Mapping[str, bool]] = {"$gone": True}
#: The relative and absolute difference by which two numbers may differ through rounding.
CLOSE: Final = 1e-9
#: The most characters of a value in a fault.
_SHOWN: Final = 160
#: The longest source in characters: the limit of the daemon's grammars.
SOURCE: Final = 1_999
#: The longest texts of a check, in characters.
SHORT, LONG = 120, 240
LEAST_CHECKS, MOST_CHECKS = 2, 3


class CheckText(BaseModel):
    """A call of the method and its expected outcome.

    Each field is JSON in a text, because a grammar needs closed types.
    """

    arguments: Annotated[str, Field(max_length=SHORT, description="a JSON list: what the method is called with")]
    before: Annotated[str, Field(max_length=SHORT, description="a JSON object: slots as they are before the call")]
    replies: Annotated[
        str, Field(max_length=LONG, description="a JSON object: for each selector it sends, the list of its answers")
    ]
    result: Annotated[str, Field(max_length=LONG, description="JSON: what the method must return")]
    slots: Annotated[str, Field(max_length=SHORT, description="a JSON object: slots as they must be after the call")]


class CoderReply(BaseModel):
    """A method and the checks that it must pass."""

    checks: Annotated[
        list[CheckText],
        Field(
            min_length=LEAST_CHECKS,
            max_length=MOST_CHECKS,
            description="calls that tell the method from one that does nothing",
        ),
    ]
    source: Annotated[
        str, Field(max_length=SOURCE, description="the method: one Python function, its imports before it")
    ]


REPLY: Final[Decision[CoderReply]] = Decision(CoderReply)


@dataclass(frozen=True, slots=True)
class Check:
    """A check as plain data: the call, the slots before it, the answers to its messages, and the expected outcome."""

    arguments: Sequence[Plain] = ()
    before: Mapping[str, Plain] = field(default_factory=dict)
    replies: Mapping[str, Sequence[Plain]] = field(default_factory=dict)
    result: Plain = None
    slots: Mapping[str, Plain] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the check as a Method stores it."""
        return {
            "arguments": list(self.arguments),
            "before": dict(self.before),
            "replies": {selector: list(answers) for selector, answers in self.replies.items()},
            "result": self.result,
            "slots": dict(self.slots),
        }

    @classmethod
    def from_dict(cls, shown: Mapping[str, object]) -> Check:
        """Return the check of a dict from `as_dict` or from a person.

        Raises: UsageError: a field is unknown or wrong; the message names it.
        """
        unknown = sorted(set(shown) - set(_KINDS))
        if unknown:
            raise UsageError(f"a check has no {unknown[0]!r}", field="checks", remedy=f"It has {', '.join(_KINDS)}.")
        try:
            return cls(**{name: _check_form(name, shown[name]) for name in shown})
        except _Wrong as wrong:
            raise UsageError(
                f"a check's {wrong}", field="checks", remedy="`batos help generation` shows one."
            ) from None

    @property
    def tells(self) -> bool:
        """Test if the check fails against a method that returns None and changes nothing."""
        unchanged = all(_absent(value, name, self.before) for name, value in self.slots.items())
        return not (self.result is None and unchanged)

    def faults(self, result: object, slots: Mapping[str, object]) -> list[str]:
        """Return the differences of a call's outcome from the expected one, in words for the method's author."""
        found = [] if equal(result, self.result) else [f"it returned {display(result)}, not {display(self.result)}"]
        for name, wanted in self.slots.items():
            if wanted == GONE:
                if name in slots:
                    found.append(f"the slot `{name}` is still there")
            elif name not in slots:
                found.append(f"there is no slot `{name}` afterwards; it must be {display(wanted)}")
            elif not equal(slots[name], wanted):
                found.append(f"the slot `{name}` is {display(slots[name])} afterwards, not {display(wanted)}")
        return found


def parse(texts: Iterable[CheckText]) -> tuple[tuple[Check, ...], list[str]]:
    """Return the checks of a reply, and a fault for each field that is wrong."""
    checks, faults = [], []
    for number, text in enumerate(texts, 1):
        fields: dict[str, Any] = {}
        for name, (_, empty) in _KINDS.items():
            try:
                fields[name] = _check_form(name, _decode(getattr(text, name), empty))
            except _Wrong as wrong:
                faults.append(f"check {number}: its {wrong}")
        if len(fields) == len(_KINDS):
            checks.append(Check(**fields))
    return tuple(checks), faults


def weaknesses(checks: Sequence[Check], written: Iterable[str]) -> list[str]:
    """Return the weaknesses of these checks.

    Too few of them may fail a method that does nothing, or a slot may be written and never compared.
    """
    telling = sum(check.tells for check in checks)
    found = []
    if telling < LEAST_TELLING:
        found.append(
            f"{telling} of its {len(checks)} checks fail against a method that returns None and changes nothing; "
            f"at least {LEAST_TELLING} must"
        )
    compared = {name for check in checks for name in check.slots}
    missing = sorted(set(written) - compared)
    if missing:
        found.append(f"it changes {', '.join(f'`{name}`' for name in missing)}, which no check compares in its `slots`")
    return found


#: The fewest checks that must fail against a method that does nothing.
LEAST_TELLING: Final = 2


def equal(one: object, other: object) -> bool:
    """Compare two plain values: 1 equals 1.0 but not True, and floats may differ by rounding."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (isinstance(one, float) | isinstance(other, float) and _close(one, other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and one == other


def display(value: object) -> str:
    """Return a value as JSON for a fault, cut to _SHOWN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _close(one: float, other: float) -> bool:
    """Test if two numbers are equal but for rounding."""
    try:
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    except OverflowError:  # a whole number too large for a float
        return False


def _absent(wanted: Plain, name: str, before: Mapping[str, Plain]) -> bool:
    """Test if a slot already has its expected value before the call."""
    if wanted == GONE:
        return name not in before
    return name in before and equal(before[name], wanted)


# -- reading


class _Wrong(Exception):
    """A fault of one field of a check; the message continues the words "check N: its"."""


#: The type of each field, and the meaning of an empty text ("": the field may not be empty).
_KINDS: Final[Mapping[str, tuple[type | None, str]]] = {
    "arguments": (list, "[]"),
    "before": (dict, "{}"),
    "replies": (dict, "{}"),
    "result": (None, ""),
    "slots": (dict, "{}"),
}


def _decode(text: str, empty: str) -> Any:
    """Return the value of a JSON text, or of `empty` for a blank one. Raises: _Wrong."""
    if not text.strip() and not empty:
        raise _Wrong("`result` is empty: write JSON, `null` for nothing")
    try:
        return json.loads(text.strip() or empty, parse_constant=_no_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise _Wrong("JSON is nested too deep") from None
    except ValueError as error:
        raise _Wrong(f"JSON is broken ({error}): {display(text)}") from None


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities in JSON."""
    raise _Wrong(f"JSON holds {name}, which is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dict. Raises: _Wrong: a key is there twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Wrong("JSON gives a key twice")
    return made


def _check_form(name: str, value: object) -> Any:
    """Return the value of a field if its form is right. Raises: _Wrong."""
    kind, _ = _KINDS[name]
    if kind is not None and not isinstance(value, kind):
        wanted = "a list" if kind is list else "an object"
        raise _Wrong(f"`{name}` must be JSON of {wanted}, not {display(value)}")
    try:
        found = plain(value, f"`{name}`")
    except MethodFailed as error:
        raise _Wrong(error.message) from None
    if name in ("before", "slots"):
        for slot in found:
            if not slot.isidentifier() or slot.startswith("_") or is_reserved(slot):
                raise _Wrong(f"`{name}` has {slot!r}, which can be no slot")
    if name == "replies":
        for selector, answers in found.items():
            if not isinstance(answers, list):
                raise _Wrong(f"`replies` must have a list of answers for `{selector}`, not {display(answers)}")
    return found


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


#: A capability of a rehearsal.
_CAPABILITY: Final = Ref(1)


@dataclass(slots=True)
class ScriptedHost:
    """The host of a rehearsal: answers every message from the check, in order.

    The only objects are the receiver, and a capability that says of each effect that it is staged. No model is asked
    and nothing outside is reached, whatever the method sends.
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
        if to == _CAPABILITY and selector in FORMS:
            return MessageAnswer("staged")
        if selector == "capability_":
            return MessageAnswer(_CAPABILITY)
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
