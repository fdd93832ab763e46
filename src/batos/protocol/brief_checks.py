"""Checks of the values of a brief: texts, moments, plain JSON, and the JSON schema of the answer."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from json import dumps, loads
from typing import Any, Final, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

#: A schema, or an object within one.
JsonSchema: TypeAlias = Mapping[str, Any]
#: The most faults of an answer that are named.
MOST_FAULTS: Final = 5
#: The most references that are followed to check an answer: a few that refer twice to each other are millions.
MOST_FOLLOWED: Final = 20_000
_REFERENCES: Final = ("$ref", "$dynamicRef")
_ENDLESS: Final = "$: its references lead on and on"


class _TooManySteps(Exception):
    """A schema refers to too much."""


def check(schema: JsonSchema) -> None:
    """Check that an answer can be asked for by a schema. Raises: ValueError: it is none, or names what is not in it."""
    if not schema:
        raise ValueError("it is empty: any JSON would do")
    if _ENDLESS in find_faults(schema, None):
        raise ValueError(_ENDLESS)


def find_faults(schema: JsonSchema, value: Any) -> list[str]:
    """List what of a value does not have its schema, a line each with the place; at most MOST_FAULTS."""
    validator, followed = _validator(dumps(schema, ensure_ascii=False, sort_keys=True))
    followed.clear()
    try:
        faults = sorted(validator.iter_errors(value), key=lambda each: [str(step) for step in each.absolute_path])
    except (RecursionError, _TooManySteps):
        return [_ENDLESS]
    return [f"{each.json_path}: {_clip(each.message)}" for each in faults[:MOST_FAULTS]]


def _clip(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:199]}…"


@lru_cache(maxsize=16)
def _validator(text: str) -> tuple[Any, list[str]]:
    """Return the validator of a schema, and the references that it follows meanwhile, of which there is a limit.

    jsonschema is loaded with the first schema: most questions have none.
    """
    followed: list[str] = []
    jsonschema, schema = import_module("jsonschema"), loads(text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as wrong:
        raise ValueError(f"{wrong.json_path}: {_clip(wrong.message)}") from None
    for place, node in _nodes(schema, "$"):
        _check_node(schema, place, node)

    def find_mismatch(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[Exception]:
        if isinstance(value, str) and not _compile(pattern).isinstance_python(value):
            yield jsonschema.ValidationError(f"{value!r} does not have the pattern {pattern!r}")

    def follow(validator: object, reference: str, value: object, inside: object) -> Iterator[Exception]:
        followed.append(reference)
        if len(followed) > MOST_FOLLOWED:
            raise _TooManySteps
        yield from jsonschema.Draft202012Validator.VALIDATORS["$ref"](validator, reference, value, inside) or ()

    own = {"pattern": find_mismatch, "$ref": follow}
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, own)(schema), followed


def _nodes(node: object, place: str) -> Iterator[tuple[str, JsonSchema]]:
    """Yield every object within a schema with its place."""
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    if isinstance(node, dict):
        yield place, node
    for name, each in inside:
        yield from _nodes(each, f"{place}.{name}" if isinstance(node, dict) else f"{place}[{name}]")


def _check_node(schema: JsonSchema, place: str, node: JsonSchema) -> None:
    """Check the references and the patterns of an object within a schema. Raises: ValueError: one is of no use."""
    for name in _REFERENCES:
        if isinstance(reference := node.get(name), str) and not isinstance(find_part(schema, reference), dict | bool):
            raise ValueError(f"{place}: {name} {reference!r} names nothing in the schema, and nothing is fetched")
    if place != "$" and isinstance(node.get("$id"), str):
        raise ValueError(f"{place}: a schema within has an $id of its own; refer to it by its place in the whole")
    if "patternProperties" in node:
        raise ValueError(f"{place}: keys by a pattern cannot be asked of a model; name them as properties")
    if isinstance(pattern := node.get("pattern"), str):
        try:
            _compile(pattern)
        except SchemaError:
            raise ValueError(f"{place}: the pattern {_clip(pattern)!r} cannot be compiled") from None


def find_part(schema: JsonSchema, reference: str) -> object:
    """Return the part of a schema that a reference within it means, by names alone (`#/$defs/Person`); None if none."""
    first, *steps = reference.split("/")
    node: object = schema if first == "#" else None
    for step in steps:
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node


@lru_cache(maxsize=64)
def _compile(pattern: str) -> SchemaValidator:
    """Compile a pattern by an engine whose time grows with the text alone: a stranger may have written it."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


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
        check(value)
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
