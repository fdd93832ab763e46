"""Shapes of JSON replies: key sets and types, without any value, by which replies are read and a change is seen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from batos.agency.apis.api_operations import Json

#: A shape: the name of a type, a list with the shape of its items, or keys with shapes (`key?` may be missing; `*` is
#: every key of a map whose keys are data).
Shape: TypeAlias = "str | list[Shape] | dict[str, Shape]"

#: Fit everything: the example has null there or nothing at all; the examples have values of several types there.
ANY, MIXED = "any", "mixed"
EVERY: Final = "*"
#: Keys that are data: codes, dates, numbers.
_DATA_KEY: Final = re.compile(r"[A-Z]{2,5}|[A-Z]{2}-\w+|\d[\d:.T+Z-]*")
#: A key that may be told to a coder; others could hold sentences.
_PLAIN_KEY: Final = re.compile(r"[\w.$@:/ -]{1,60}")
_DEEPEST: Final = 12


def shape_of(value: Json, depth: int = 0) -> Shape:
    """Return the shape of a value; what is nested too deep is `any`.

    >>> shape_of({"city": "Brest", "days": [{"max": 12.5}, {"max": 9, "wind": None}]})
    {'city': 'string', 'days': [{'max': 'number', 'wind?': 'any'}]}
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if value is None or depth >= _DEEPEST:
        return ANY
    if isinstance(value, list):
        return [merge(shape_of(each, depth + 1) for each in value)]
    inner = {name: shape_of(each, depth + 1) for name, each in value.items()}
    if inner and all(map(_DATA_KEY.fullmatch, inner)) and isinstance(joined := merge(inner.values()), str | dict):
        return {EVERY: joined} if joined not in (ANY, MIXED) else inner
    return inner


def digest_of(shape: Shape) -> str:
    """Return the SHA-256 of a shape, by which equal ones are known."""
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def merge(shapes: Iterable[Shape]) -> Shape:
    """Return the shape that all of these have: a key that only some have may be missing."""
    found: Shape | None = None
    for shape in shapes:
        found = shape if found is None else _join(found, shape)
    return ANY if found is None else found


def _join(one: Shape, other: Shape) -> Shape:
    if other in (one, ANY) or one == MIXED:
        return one
    if one == ANY:
        return other
    if isinstance(one, list) and isinstance(other, list):
        return [_join(one[0], other[0])]
    if isinstance(one, dict) and isinstance(other, dict):
        return dict(_join_keys(one, other))
    return MIXED


def _join_keys(one: Mapping[str, Shape], other: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
    first, second = ({name.removesuffix("?"): name for name in each} for each in (one, other))
    for key in (*first, *(each for each in second if each not in first)):
        if key in first and key in second:
            optional = "?" if first[key] != key or second[key] != key else ""
            yield key + optional, _join(one[first[key]], other[second[key]])
        else:
            yield f"{key}?", one[first[key]] if key in first else other[second[key]]


def differences(shape: Shape, value: Json, place: str = "") -> list[str]:
    """Return where a value differs from a shape: keys that are missing or of another type, then keys that are new.

    A value within it that is null is no difference.

    >>> differences({"max": "number", "wind?": "string"}, {"max": "12", "rain": 1})
    ['max is string, not number', 'rain is new']
    """
    if shape in (ANY, MIXED) or (value is None and place):
        return []
    if isinstance(shape, list) and isinstance(value, list):
        return [*dict.fromkeys(told for each in value[:50] for told in differences(shape[0], each, f"{place}[]"))]
    if not isinstance(shape, dict) or not isinstance(value, dict):
        kinds = [each if isinstance(each, str) else type(each).__name__ for each in (shape_of(value), shape)]
        return [] if kinds[0] == kinds[1] else [f"{place or 'the reply'} is {kinds[0]}, not {kinds[1]}"]
    return [*_key_differences(shape, value, f"{place}." if place else "")]


def _key_differences(shape: Mapping[str, Shape], value: Mapping[str, Json], place: str) -> Iterator[str]:
    """Yield the differences of a dict's keys and what is under them, the new keys last."""
    if EVERY in shape:
        for each in [*value.values()][:50]:
            yield from differences(shape[EVERY], each, f"{place}*")
        return
    known = {name.removesuffix("?"): name for name in shape}
    for key, name in known.items():
        if key in value:
            yield from differences(shape[name], value[key], place + key)
        elif key == name:
            yield f"{place}{key} is missing"
    yield from (f"{place}{key} is new" for key in value if key not in known)


def breaks(told: Iterable[str]) -> list[str]:
    """Return those differences by which a reading is wrong: a new key alone changes nothing that is read."""
    return [each for each in told if not each.endswith(" is new")]


def examples_of(shape: Shape) -> list[Json]:
    """Return values of this shape that hold nothing of any reply: one with every key, one without what may be missing.

    Raises: ValueError: a key is no plain word, so that it could hold an order.
    """
    whole, bare = _example(shape, is_whole=True), _example(shape, is_whole=False)
    return [whole] if whole == bare else [whole, bare]


def _example(shape: Shape, *, is_whole: bool) -> Json:
    if isinstance(shape, list):
        return [_example(shape[0], is_whole=is_whole)]
    if isinstance(shape, dict):
        odd = [name for name in shape if name != EVERY and not _PLAIN_KEY.fullmatch(name.removesuffix("?"))]
        if odd:
            raise ValueError(f"the key {odd[0][:60]!r} is no plain word")
        kept = [name for name in shape if is_whole or not name.endswith("?")]
        return {_key(name): _example(shape[name], is_whole=is_whole) for name in kept}
    plain: dict[str, Json] = {"string": "text", "number": 1.5, "boolean": True}
    return plain.get(shape)


def _key(name: str) -> str:
    return "AAA" if name == EVERY else name.removesuffix("?")


def words_of(value: object) -> Iterator[str]:
    """Yield the keys of a value and of what it holds, as words.

    >>> list(words_of([{"wait_min": 7, "at": {"place": "x"}}]))
    ['wait min', 'at', 'place']
    """
    if isinstance(value, dict):
        for name, each in value.items():
            yield name.replace("_", " ")
            yield from words_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from words_of(each)
