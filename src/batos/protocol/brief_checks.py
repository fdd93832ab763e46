"""Checks of the values of a brief: texts, moments, plain JSON, and the schema of an answer."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from batos.protocol import answer_schemas

#: Bytes of a value as JSON text, and how deep it may be nested.
MOST_BYTES: Final = 64 * 1024
MOST_DEPTH: Final = 32


def says_something(value: str) -> str:
    """Return a text. Raises: ValueError: it has only blanks, or a NUL."""
    if not value.strip():
        raise ValueError("it has only blanks")
    if "\0" in value:
        raise ValueError("it contains a NUL character")
    return value


def one_line(value: str) -> str:
    """Return a line. Raises: ValueError: it has a control character."""
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in value):
        raise ValueError("it contains a control character")
    return value


def utc_moment(value: str) -> str:
    """Return a moment in UTC, to the millisecond. Raises: ValueError: it is none, or names no time zone."""
    try:
        given = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("it is not a time like 2026-11-21T09:30:00Z") from None
    if given.tzinfo is None:
        raise ValueError("it names no time zone; end it with Z for UTC")
    try:
        return given.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        raise ValueError("it is not a date of the calendar") from None


def json_schema(value: object) -> object:
    """Check that a value is a JSON schema; another type than an object is refused after this."""
    if isinstance(value, dict):
        plain_json(value)
        answer_schemas.check(value)
    return value


def plain_json(value: object, most: int = MOST_BYTES) -> object:
    """Return a value that can be written, stored and shown, in `most` bytes.

    Raises: ValueError: it is too large, too deep, or no JSON.
    """
    level: list[object] = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            break
        if len(level) > most:  # each is a byte at least; an object of Python's may hold another many times
            raise ValueError(_too_much(len(level), most))
    else:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH}")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except UnicodeEncodeError:
        raise ValueError("a text in it is not valid Unicode") from None
    except (TypeError, ValueError):
        raise ValueError(
            "it is not JSON: objects with names, lists, texts, finite numbers, true, false, null"
        ) from None
    if size > most:
        raise ValueError(_too_much(size, most))
    return value


def _too_much(size: int, most: int) -> str:
    return f"it has {size:,} bytes of JSON, at most {most:,} are taken"


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("an object in it has a key that is not text")
        return (*value.keys(), *value.values())
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a text in it contains a NUL character")
    return value if isinstance(value, list | tuple) else ()
