"""Checks: a call of a method with its expected outcome, parsed strictly from a coder's reply, and their strength."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NoReturn

from pydantic import BaseModel, Field

from batos.cell.values import Plain, plain
from batos.inference.decisions.schema import Decision
from batos.objects.prototype import is_reserved
from batos.protocol.errors import MethodFailed, UsageError

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
