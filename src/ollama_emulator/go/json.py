"""Write, read and refuse JSON, durations and times as the daemon's Go code does."""

from __future__ import annotations

import json
import math
import re
from array import array
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ollama_emulator.emulator_errors import ApiError

_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_TO_ESCAPE = re.compile("[<>&\u2028\u2029]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_UNLIKE = re.compile(r"[0-9]e[-+]|\.0(?:[,\]}]|\Z)")  # a number that Python may write otherwise than Go
_NAMED = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_MAX_NS = 2**63 - 1
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TERM = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)")


def encode(value: Any) -> str:
    """Return the compact JSON of a value as Go writes it: `<`, `>` and `&` escaped, 1.0 written as 1."""
    return _go_text(_ENCODER.encode(value), value)


def layer_text(value: Any) -> bytes:
    """Return the bytes of a model's JSON layer: the JSON of `value` with sorted keys and a newline at the end."""
    value = _sort_keys(value) if isinstance(value, dict) else value
    return (encode(value) + "\n").encode()


def _sort_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


def _go_text(text: str, value: Any) -> str:
    """Convert JSON written by Python's encoder to Go's; `value` is encoded again if a number may differ."""
    if _UNLIKE.search(text):
        text = _encode_exactly(value)
    if _TO_ESCAPE.search(text):
        text = _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text)
    return text


def reals(values: list[float]) -> str:
    """Return the JSON array of a list of floats as Go writes it. Faster than `encode`, for embeddings."""
    return _reals(array("d", values).tobytes())


@lru_cache(maxsize=2048)
def _reals(packed: bytes) -> str:
    """Return the same of packed floats: the same vectors are asked for again and again."""
    text = _ENCODER.encode(array("d", packed).tolist())
    return _digits(text) if _UNLIKE.search(text) else text


def _digits(text: str) -> str:
    return f"[{','.join(map(_go_float, text[1:-1].split(',')))}]"


def _encode_exactly(value: Any) -> str:
    """Encode a value piece by piece, so that each of its floats is written as Go writes it."""
    if isinstance(value, float):
        return real(value)
    text = _ENCODER.encode(value)
    if not isinstance(value, dict | list | tuple) or not _UNLIKE.search(text):
        return text
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_ENCODER.encode(str(key))}:{_encode_exactly(item)}" for key, item in value.items()) + "}"
        )
    if set(map(type, value)) == {float}:
        return _digits(text)
    return "[" + ",".join(map(_encode_exactly, value)) + "]"


def real(value: float) -> str:
    """Return the text of a float64 as Go's JSON encoder writes it: 1, 0.00001, 1e-7, 1e+21."""
    return _go_float(repr(value))


def _go_float(text: str) -> str:
    """Convert the text that Python gives a float to the one that Go's JSON encoder gives it."""
    if "e" not in text:
        return text.removesuffix(".0")
    if text.endswith(("e-05", "e-06")):  # the common case in a vector
        sign = "-" if text[0] == "-" else ""
        return f"{sign}0.0000{'0' if text[-1] == '6' else ''}{text[len(sign) : -4].replace('.', '')}"
    if 1e-6 <= abs(float(text)) < 1e21:
        return format(Decimal(text), "f").removesuffix(".0")
    return text.replace("e-0", "e-")


def general(value: float) -> str:
    """Return the text of a float64 as Go's `%v` prints it: 512, 0.7, 1e-05, 1.048576e+06, +Inf."""
    sign, digits, exponent = Decimal(repr(float(value))).as_tuple()
    if not isinstance(exponent, int):
        return "NaN" if math.isnan(value) else f"{'-' if sign else '+'}Inf"
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + exponent - 1 if any(digits) else 0
    if -4 <= power < 6:
        return real(value)
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' * sign}{text[0]}{fraction}e{power:+03d}"


def interface(value: Any) -> str:
    """Return the name of the Go type of a JSON value that was decoded into an `any`, as `%T` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "float64"
    if isinstance(value, str):
        return "string"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def quote(text: str) -> str:
    """Return a string in quotes and with escapes, as Go's `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    """Escape a character as Go's %q does."""
    if character in _NAMED:
        return _NAMED[character]
    if character.isprintable():
        return character
    point = ord(character)
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def duration(text: str) -> int:
    """Return the nanoseconds of a Go duration such as `1h30m`, `-1s` or `0`, held to 63 bits.

    Raises: ValueError: the text is no duration; the message is Go's.
    """
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
    """Return the nanoseconds that a request's `keep_alive` asks for; a number means seconds.

    None stands for a request without one, 2**63 - 1 for ever. Raises: ApiError: 400, the value is no duration.
    """
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
        product = min(value, _MAX_NS) * 1e9
        # a number too large overflows to Go's least one: the runner ends as soon as it is idle
        asked = _MAX_NS if value < 0 else int(product) if product < 2**63 else 1
    return _MAX_NS if asked < 0 else asked


def stamp(ns: int) -> str:
    """Return a time, in nanoseconds since 1970, as RFC 3339 in UTC with no needless digits of fraction."""
    seconds, fraction = divmod(ns, 10**9)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{_second(seconds)}{digits}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def human_number(count: int) -> str:
    """Return a number of parameters as the daemon prints it: 109376 becomes 109K, 8030261248 becomes 8.0B."""
    if count >= 10**9:
        return f"{count / 10**9:.1f}B"
    if count >= 10**6:
        return f"{count / 10**6:.0f}M" if count % 10**6 == 0 else f"{count / 10**6:.2f}M"
    return f"{count / 1000:.0f}K" if count >= 1000 else str(count)
