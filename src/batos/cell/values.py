"""Values that may cross the wall as JSON text, and the kernel's side that answers a method's messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from batos.protocol.errors import MethodFailed

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


@dataclass(frozen=True, slots=True)
class Ref:
    """Another object, as a number of a table that the host keeps for one run; whoever resolves it checks it there."""

    number: int


#: Plain data that may hold marks of other objects.
Value: TypeAlias = "bool | int | float | str | Ref | list[Value] | dict[str, Value] | None"

#: The one key of the dictionary that stands for a Ref in JSON; plain data may have no such key.
MARK: Final = "\0ref"
DEPTH = 60
_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
#: 4,300 digits is what Python itself converts; nobody counts that far.
INTEGER_BITS = 2048


def plain(value: object, what: str, *, refs: bool = False) -> Any:
    """Copy a value into exact JSON types; tuples and sets become lists. `refs` permits marks of other objects.

    Sets are sorted by their representation, so that a replay gives the same list.

    Raises: MethodFailed: a part of the value is not plain data.
    """
    return _copy(value, what, refs, ())


def _copy(value: object, what: str, refs: bool, above: tuple[int, ...]) -> Value:
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return _text(value, what)
    if type(value) is int or type(value) is float:
        return _number(value, what)
    if type(value) is Ref and refs:
        return value
    if id(value) in above or len(above) >= DEPTH:
        raise _refusal(what, "holds itself, or is nested too deep", f"at most {DEPTH} deep")
    above = (*above, id(value))
    if type(value) is dict:
        return {_key(key, what): _copy(each, what, refs, above) for key, each in value.items()}
    if type(value) in (set, frozenset):
        value = sorted(value, key=repr)  # type: ignore[call-overload]  # mypy does not narrow by `in`
    if type(value) in (list, tuple):
        return [_copy(each, what, refs, above) for each in value]  # type: ignore[attr-defined]  # as above
    raise _refusal(what, f"is or holds a {type(value).__name__}", "None, bool, int, float, str, list, dict")


def _text(value: str, what: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refusal(what, "has half a surrogate pair", "text that can be written as UTF-8") from None
    return value


def _key(key: object, what: str) -> str:
    if type(key) is not str:
        raise _refusal(what, f"has a key that is a {type(key).__name__}", "keys that are str")
    if key == MARK:
        raise _refusal(what, f"has the key {MARK!r}", "any other key")
    return _text(key, what)


def _number(value: int | float, what: str) -> int | float:
    if type(value) is float and not math.isfinite(value):
        raise _refusal(what, f"holds {value}", "finite numbers")
    if type(value) is int and value.bit_length() > INTEGER_BITS:
        raise _refusal(what, f"holds an integer of {value.bit_length():,} bits", f"at most {INTEGER_BITS:,} bits")
    return value


def _refusal(what: str, why: str, wanted: str) -> MethodFailed:
    return MethodFailed(f"{what} {why}: only plain data crosses ({wanted})")


def encode(value: Value, what: str, limit: int) -> str:
    """Encode plain data with marks as strict JSON of at most `limit` characters.

    Raises: MethodFailed: the value is not plain data, or too long.
    """
    return check_length(_JSON.encode(_mark(plain(value, what, refs=True))), what, limit)


def check_length(text: str, what: str, limit: int) -> str:
    """Return the text unchanged. Raises: MethodFailed: the text has more than `limit` characters."""
    if len(text) > limit:
        raise MethodFailed(f"{what} has {len(text):,} characters as JSON, at most {limit:,} may cross")
    return text


def _mark(value: Value) -> Any:
    if type(value) is Ref:
        return {MARK: value.number}
    if type(value) is list:
        return [_mark(each) for each in value]
    if type(value) is dict:
        return {key: _mark(each) for key, each in value.items()}
    return value


def decode(text: object, what: str, limit: int) -> Any:
    """Decode strict JSON that came from a cell, with Refs for marks.

    Nothing is trusted: type, length, depth, numbers, keys and surrogates are checked here.

    Raises: MethodFailed: the text is anything else.
    """
    if type(text) is not str:
        raise MethodFailed(f"{what} is not text: the cell answered out of turn")
    check_length(text, what, limit)
    try:
        found = json.loads(text, object_hook=_mark_read, parse_constant=_constant(what))
    except (ValueError, RecursionError) as error:
        raise MethodFailed(f"{what} is not JSON: {str(error)[:100]}") from None
    return plain(found, what, refs=True)


def _constant(what: str) -> Callable[[str], NoReturn]:
    def refuse(name: str) -> NoReturn:
        raise _refusal(what, f"holds {name}", "finite numbers")

    return refuse


def _mark_read(found: Mapping[str, object]) -> Any:
    number = found.get(MARK)
    return Ref(number) if len(found) == 1 and type(number) is int else found


def has_refs(value: object) -> bool:
    """Test if plain data holds a mark of another object anywhere."""
    if type(value) is list:
        return any(has_refs(each) for each in value)
    if type(value) is dict:
        return any(has_refs(each) for each in value.values())
    return type(value) is Ref


def same(one: object, other: object) -> bool:
    """Test if two values are equal in value and type: 1 is not True and not 1.0. The order of keys does not matter."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other


def differences(before: Mapping[str, Value], after: Mapping[str, Value]) -> dict[str, Value]:
    """Return the items of `after` that are new or differ from `before`."""
    return {name: value for name, value in after.items() if name not in before or not same(before[name], value)}


@dataclass(frozen=True, slots=True)
class Writes:
    """The changes that a method has made to its receiver so far, compared with the view that the method was given."""

    values: Mapping[str, Value] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    is_marked: bool = False  # whether `self._p_changed` is True

    def __bool__(self) -> bool:
        return bool(self.values or self.deleted)


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error that the method may catch: a Python exception by name (`KeyError`; an unknown one is a RuntimeError)."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """The answer to a message: a value or an error, and a new view if the receiver may have changed."""

    value: Value = None
    slots: Mapping[str, Value] | None = None  # every slot of the view that exists now; None: nothing changed
    raised: RaisedError | None = None


class Host(Protocol):
    """The kernel's side of one run. Its methods are awaited on the event loop, and may wait as long as they like:
    no worker is held. An exception that they raise ends the run and is raised by it; what the method may catch is
    `Sent.raised`.
    """

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Send a message to another object, or to the receiver (None), whose unwritten changes are `pending`.

        Arguments are plain data. A Ref that is not in the host's table is refused by the host.
        """

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Read a slot of another object: plain data or a Ref; a missing one is an AttributeError in `raised`."""


@dataclass(frozen=True, slots=True)
class CellLimits:
    """Bounds of one run. Time is that of the method itself: what it waits for (a message, inference) is not counted."""

    memory: int = 64 << 20  # bytes of the interpreter's heap ("memory")
    seconds: float = 5.0  # of execution, over all turns ("time")
    turn_seconds: float = 2.0  # of execution between two messages ("time")
    wall_seconds: float = 4.0  # until a worker that does not answer is killed ("hang")
    recursion: int = 200  # calls deep ("recursion")
    messages: int = 500  # to self and others, reads of others' slots too ("messages")
    nested_messages: int = 1000  # of a run and all runs that its messages brought about ("messages")
    nesting: int = 64  # runs within runs ("nesting")
    bytes: int = 1 << 20  # of the arguments, the view, a message, its answer, or the result, as JSON ("bytes")
    output: int = 64 << 10  # characters printed ("output")
