"""Checks the values of a codex file by pydantic: each kind of value refuses what it is not, and a fault has its key."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from batos.genesis.codex.key_lines import KeyPath
from batos.genesis.codex.reader import TomlSource, nearest_word
from batos.inference import model_names

T = TypeVar("T")

#: A table of a codex has no other keys than the fields of its class.
CLOSED: Final = ConfigDict(extra="forbid")

#: Characters that steer a terminal or end a text for programs: none belongs in a prompt.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NO_CONTROL: Final = r"\A[^\x00-\x08\x0b-\x1f\x7f-\x9f]*\z"
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "a whole number"),
    (float, "a number with a point"),
    (list, "a list"),
    (dict, "a table"),
)
#: The words for the type that pydantic wanted, by the code of its error; all else is a table.
_WANTED: Mapping[str, str] = {
    "string_type": "a text",
    "string_too_short": "a text",
    "bool_type": "true or false",
    "tuple_type": "a list of texts",
    "too_short": "a list of texts",
}
_HELP: Final = "see `batos help codex`."
_MISSING: Final = "`{key}` is missing"


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A fault of a value. `{key}` in its texts is the key, `path` leads to a value in it, `within` is a part of a text.

    Where `known` names what may stand there, the key itself is unknown, and `what` is the kind of word that is wanted.
    """

    what: str
    remedy: str = ""
    path: KeyPath = ()
    within: str | None = None
    known: tuple[str, ...] = ()


def refusal(*faults: ValueFault) -> PydanticCustomError:
    """Return the error with which a check tells pydantic of faults."""
    return PydanticCustomError("codex", "a value of a codex is refused", {"faults": faults})


def missing(*path: str | int) -> ValueFault:
    """Return the fault of a key that is not there."""
    return ValueFault(_MISSING, f"Write `{{key}}`; {_HELP}", path)


def _check_model(name: str) -> str:
    problem = model_names.fault(name)
    if problem is not None:
        raise refusal(ValueFault(*problem))
    return name


OptionalText: TypeAlias = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, pattern=_NO_CONTROL)]
Text: TypeAlias = Annotated[OptionalText, Field(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Field(min_length=1)]
OptionalTexts: TypeAlias = tuple[Text, ...]
ModelName: TypeAlias = Annotated[Text, AfterValidator(_check_model)]
Flag: TypeAlias = StrictBool


@cache
def _adapter(shape: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def read_as(shape: type[T], source: TomlSource, values: Mapping[str, object]) -> T | None:
    """Return a file's values as an object of a class; None if they have faults, which are added to the file.

    A key that is there, but misspelt, is not said to be missing too.
    """
    try:
        found: T = _adapter(cast("Any", shape)).validate_python(dict(values))
    except ValidationError as error:
        faults = [each for told in error.errors() for each in _faults(shape, told)]
    else:
        return found
    meant = {(*each.path[:-1], nearest_word(str(each.path[-1]), each.known)) for each in faults if each.known}
    for each in faults:
        key = next((part for part in reversed(each.path) if isinstance(part, str)), "")
        if each.known:
            source.refuse_unknown(each.path, each.what, each.known)
        elif each.what != _MISSING or each.path not in meant:
            what, remedy = each.what.replace("{key}", key), each.remedy.replace("{key}", key)
            source.fault(each.path, what, remedy, each.within)
    return None


def _faults(shape: type, told: Mapping[str, Any]) -> Iterator[ValueFault]:
    """Yield the faults that an error of pydantic tells of."""
    kind, loc, value = told["type"], told["loc"], told["input"]
    if kind == "codex":
        for each in told["ctx"]["faults"]:
            yield ValueFault(each.what, each.remedy, (*loc, *each.path), each.within, each.known)
    elif kind == "missing":
        yield missing(*loc)
    elif kind == "unexpected_keyword_argument":
        known = tuple(each.name for each in fields(_class_at(shape, loc[:-1])))
        yield ValueFault("key", path=loc, known=known)
    elif kind == "literal_error":
        yield ValueFault(f"`{{key}}` is {str(value)[:40]!r}", f"Write one of: {told['ctx']['expected']}.", loc)
    elif kind == "string_pattern_mismatch":
        what = f"`{{key}}` holds the control character U+{ord(_CONTROL.findall(value)[0]):04X}"
        yield ValueFault(what, "Remove it: a text may hold line breaks and tabs, no other control character.", loc)
    elif kind != "too_short" or not value:  # those of its elements that are wrong are faults already
        yield _wrong_type(shape, kind, loc, value)


def _wrong_type(shape: type, kind: str, loc: KeyPath, value: object) -> ValueFault:
    """Return the fault of a value of another type than is wanted, or of an empty one."""
    wanted, is_empty = _WANTED.get(kind, "a table"), kind.endswith("too_short") or value in ("", [])
    if isinstance(loc[-1], int) and wanted == "a text":
        what = f"`{{key}}` must be a list of texts, none of them blank: one is {'blank' if is_empty else _kind(value)}"
        return ValueFault(what, "Write a text there, or remove it.", loc)
    if kind == "tuple_type" and _class_at(shape, loc) is not shape:
        wanted = "an array of tables (each begins with [[{key}]])"
    if is_empty:
        return ValueFault(f"`{{key}}` is empty: it must be {wanted}", f"Write what `{{key}}` is; {_HELP}", loc)
    what = f"`{{key}}` must be {wanted}, and is {_kind(value)}"
    return ValueFault(what, f"Write `{{key}}` as {wanted}; {_HELP}", loc)


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "a date or time")


def _class_at(shape: type, loc: KeyPath) -> type:
    """Return the class that a table within is read as."""
    for part in loc:
        hint = get_type_hints(shape).get(str(part))
        shape = next((each for each in get_args(hint) if isinstance(each, type) and is_dataclass(each)), shape)
    return shape


def digest_of(value: object) -> str:
    """Return the sha256 (hex) of a plain value's canonical JSON."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
