"""JSON, durations and times as the daemon's Go code writes, reads and refuses them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import isinf
from typing import Any

from batos.emulator.replies import ApiError

_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_TO_ESCAPE = re.compile("[<>&\u2028\u2029]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_BLANK = " \t\r\n"
_DIGITS = 308  # of the largest number that Go's float64 holds
_MAX_NS = 2**63 - 1
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TERM = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)")


def encode(value: Any) -> str:
    """The compact text of a value, with `<`, `>`, `&` and the two line separators escaped, all else raw."""
    text = _ENCODER.encode(value)
    if _TO_ESCAPE.search(text):
        text = _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text)
    return text


def layer_text(value: Any) -> bytes:
    """The bytes of a JSON layer: Go sorts the keys of a map, and its Encoder ends with a newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=isinstance(value, dict))
    return (_TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text) + "\n").encode()


def decode(body: bytes) -> Any:
    """The first JSON value of a request body; the daemon's 400 for an empty or broken one."""
    text = body.decode("utf-8", "replace").lstrip(_BLANK)
    if not text:
        raise ApiError(400, "missing request body")
    try:
        return _DECODER.raw_decode(text)[0]
    except RecursionError:
        raise ApiError(400, "exceeded max depth") from None
    except json.JSONDecodeError as fault:
        raise ApiError(400, _syntax(text, fault)) from None


def _no_constant(name: str) -> Any:
    raise ApiError(400, f"invalid character {name.lstrip('-')[0]!r} looking for beginning of value")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise _unreal(digits)
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise _unreal(digits)
    return value


def _unreal(digits: str) -> ApiError:
    return ApiError(400, f"json: cannot unmarshal number {digits[:_DIGITS]} into Go value of type float64")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer, parse_float=_real)


def _syntax(text: str, fault: json.JSONDecodeError) -> str:
    """Go's wording of a syntax error that Python's decoder found."""
    at = fault.pos
    if fault.msg.startswith("Unterminated string") or at >= len(text.rstrip(_BLANK)):
        return "unexpected EOF"
    shown = text[at]
    shown = "'\\''" if shown == "'" else f"'{shown}'"
    if fault.msg.startswith("Expecting property name"):
        return f"invalid character {shown} looking for beginning of object key string"
    if fault.msg.startswith("Expecting ':'"):
        return f"invalid character {shown} after object key"
    if fault.msg.startswith("Expecting ','"):
        return f"invalid character {shown} after {_container(text[:at])}"
    if fault.msg.startswith("Invalid control character"):
        return f"invalid character {_control(text[at])} in string literal"
    if "escape" in fault.msg:
        return f"invalid character '{text[at + 1 : at + 2]}' in string escape code"
    return f"invalid character {shown} looking for beginning of value"


def _control(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "'" + named.get(character, f"\\x{ord(character):02x}") + "'"


def _container(before: str) -> str:
    """Whether the innermost open container is an object or an array."""
    stack: list[str] = []
    quoted = False
    skip = False
    for character in before:
        if skip:
            skip = False
        elif quoted:
            skip = character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            stack.append(character)
        elif character in "}]" and stack:
            stack.pop()
    return "array element" if stack and stack[-1] == "[" else "object key:value pair"


def kind(value: Any) -> str:
    """What Go's decoder calls the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def interface(value: Any) -> str:
    """The Go type of a value decoded into an `any`, as `%T` prints it."""
    names = {"null": "<nil>", "bool": "bool", "string": "string", "number": "float64"}
    return names.get(kind(value)) or ("[]interface {}" if isinstance(value, list) else "map[string]interface {}")


def quote(text: str) -> str:
    """A string as `%q` prints it, for printable text."""
    return json.dumps(text, ensure_ascii=False)


def duration(text: str) -> int:
    """Nanoseconds of a Go duration (`1h30m`, `-1s`, `0`), held to 63 bits; Go's text as a ValueError otherwise."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in "+-" and text else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f"time: invalid duration {quote(text)}")
    total = 0
    while rest:
        found = _TERM.match(rest)
        whole, part, unit = found.groups() if found else ("", None, "")
        if not whole and not part:
            raise ValueError(f"time: invalid duration {quote(text)}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        total += int(whole or 0) * _UNITS[unit]
        total += int(part or 0) * _UNITS[unit] // 10 ** len(part or "")
        rest = rest[found.end() :] if found else ""
    if total > _MAX_NS:
        raise ValueError(f"time: invalid duration {quote(text)}")
    return sign * total


def keep_alive(value: Any) -> int | None:
    """Nanoseconds that a request's `keep_alive` asks for, None where it asks for nothing; for ever is 63 bits."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ApiError(400, f"Unsupported type: '{interface(value)}'")
    if isinstance(value, str):
        try:
            asked = duration(value)
        except ValueError as fault:
            raise ApiError(400, str(fault)) from None
    else:
        asked = _MAX_NS if value < 0 else min(int(value * 10**9), _MAX_NS)
    return _MAX_NS if asked < 0 else asked


def stamp(ns: int) -> str:
    """RFC 3339 in UTC with up to nine digits of fraction, trailing zeros trimmed; `ns` since 1970."""
    seconds, fraction = divmod(ns, 10**9)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{_second(seconds)}{digits}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def human_number(count: int) -> str:
    """A count of parameters as the daemon prints it: 109376 is 109K, 8030261248 is 8.0B."""
    if count >= 10**9:
        return f"{count / 10**9:.1f}B"
    if count >= 10**6:
        return f"{count / 10**6:.0f}M" if count % 10**6 == 0 else f"{count / 10**6:.2f}M"
    return f"{count / 1000:.0f}K" if count >= 1000 else str(count)


class Fields:
    """A request object read as Go reads it into a struct: names without case, types checked as they come.

    `shape` gives each field its Go type (`string`, `bool`, `[]api.Message`, ...); `any` accepts everything.
    """

    def __init__(self, struct: str, shape: Mapping[str, str], body: bytes) -> None:
        found = decode(body)
        if found is None:
            found = {}
        if not isinstance(found, dict):
            raise ApiError(400, f"json: cannot unmarshal {kind(found)} into Go value of type api.{struct}")
        self.given: dict[str, Any] = {}
        for key, value in found.items():
            name = key if key in shape else key.lower()
            if name in shape:
                _check(struct, name, shape[name], value)
                self.given[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """The field's value; the default when it is absent or null."""
        value = self.given.get(name)
        return default if value is None else value

    def has(self, name: str) -> bool:
        """Whether the field was given, be it as null."""
        return name in self.given


_ACCEPTS = {
    "string": ("string",),
    "bool": ("bool",),
    "int": ("number",),
    "float64": ("number",),
    "map[string]interface {}": ("object",),
    "map[string]string": ("object",),
    "[]string": ("array",),
    "[]int": ("array",),
    "[]api.Message": ("array",),
    "api.Tools": ("array",),
}
_MESSAGE = {"role": "string", "content": "string", "thinking": "string", "images": "any", "tool_calls": "any"}
_ELEMENTS = {"map[string]string": "string", "[]string": "string", "[]int": "int"}


def _check(struct: str, name: str, wanted: str, value: Any) -> None:
    accepted = _ACCEPTS.get(wanted)
    if accepted is None or value is None:
        return
    if kind(value) not in accepted:
        raise _mismatch(struct, name, wanted, value)
    if wanted == "int" and isinstance(value, float) and not value.is_integer():
        raise ApiError(400, f"json: cannot unmarshal number {value} into Go struct field {struct}.{name} of type int")
    element = _ELEMENTS.get(wanted)
    if element:
        for item in value.values() if isinstance(value, Mapping) else value:
            _check(struct, name, element, item)
    elif wanted == "[]api.Message":
        _check_messages(struct, name, value)


def _check_messages(struct: str, name: str, messages: Sequence[Any]) -> None:
    for message in messages:
        if not isinstance(message, dict):
            raise _mismatch(struct, name, "api.Message", message)
        for part, wanted in _MESSAGE.items():
            if part in message:
                _check(struct, f"{name}.{part}", wanted, message[part])


def _mismatch(struct: str, name: str, wanted: str, value: Any) -> ApiError:
    return ApiError(400, f"json: cannot unmarshal {kind(value)} into Go struct field {struct}.{name} of type {wanted}")
