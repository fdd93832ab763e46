"""Functions as tools: what they declare by signature and docstring, what cannot be one, and how one is run."""

from __future__ import annotations

import asyncio
import enum
import inspect
import json
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, Field

import batos
from batos.client.tool_functions import CallFailed, CallTimedOut, as_text, declare, is_marked
from batos.protocol.brief import parse
from batos.protocol.errors import BriefError
from batos.protocol.lent_tools import FAILURE_LIMIT, RESULT_BYTES


class Unit(enum.Enum):
    """A unit."""

    CELSIUS = "c"


@batos.read
def weather(
    city: Annotated[str, "The name of the city."],
    days: Annotated[int, Field(ge=1, le=7)] = 1,
    unit: Literal["c", "f"] = "c",
    tags: list[str] | None = None,
    day: date | None = None,
    schema: Optional[bool] = None,  # noqa: UP045  # people write it so too
) -> dict[str, object]:
    """Return the weather of a city. It asks nobody.

    More about it.
    """
    return {"city": city, "days": days, "unit": unit, "tags": tags, "day": day, "schema": schema}


async def run(function: Callable[..., Any], seconds: float = 30.0, **arguments: object) -> str:
    """What a function says to arguments."""
    return await declare(function).run(arguments, seconds)


def test_a_declaration_is_the_signature_and_the_first_sentence() -> None:
    """Types, choices, lists, defaults and notes are in it, and a brief takes it as it is."""
    told = declare(weather).declaration
    assert told.model_dump() == {
        "name": "weather",
        "purpose": "Return the weather of a city.",
        "reads": True,
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The name of the city."},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "unit": {"type": "string", "enum": ["c", "f"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "day": {"type": "string", "format": "date"},
                "schema": {"type": "boolean"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    }
    brief = parse({"text": "Why?", "user": "ada", "tools": [told.model_dump()], "caller": "0" * 32})
    assert brief.tools == (told,)
    assert type(brief).from_document(brief.as_document()) == brief


async def test_arguments_come_as_the_functions_own_types() -> None:
    """A date is a date, what is optional is None, and defaults are the function's."""
    told = json.loads(await run(weather, city="Rome", day="2026-12-01", tags=["a"]))
    assert told == {
        "city": "Rome", "days": 1, "unit": "c", "tags": ["a"], "day": "2026-12-01", "schema": None,
    }  # fmt: skip

    def needed(unit: Unit, day: date | None) -> str:
        """Say both."""
        return f"{unit.name} {day}"

    assert await run(needed, unit="c") == "CELSIUS None"


def untyped(city) -> None:  # type: ignore[no-untyped-def]
    """Do."""


def of_a_map(city: dict[str, str]) -> None:
    """Do."""


def of_two_kinds(city: int | str) -> None:
    """Do."""


def of_mixed_choice(city: Literal["a", 1]) -> None:
    """Do."""


def of_decimals(city: Decimal) -> None:
    """Do."""


def of_bytes(city: bytes) -> None:
    """Do."""


def of_lists_of_lists(city: list[list[int]]) -> None:
    """Do."""


def of_an_own_class(city: BaseModel) -> None:
    """Do."""


def of_anything(city: Any) -> None:
    """Do."""


def of_a_list_of_anything(city: list) -> None:  # type: ignore[type-arg]
    """Do."""


def of_an_absent_class(city: Absent) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Do."""


def of_many(*city: str) -> None:
    """Do."""


def without_a_docstring(city: str) -> None:
    pass


def with_far_too_many() -> None:
    """Do."""


with_far_too_many.__annotations__ = {f"number_{each}": int for each in range(17)}
with_far_too_many.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter(f"number_{each}", inspect.Parameter.KEYWORD_ONLY) for each in range(17)]
)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (untyped, "the parameter city has no type"),
        (of_a_map, "the parameter city: it must be a text"),
        (of_two_kinds, "the parameter city: it must be a text"),
        (of_mixed_choice, "the parameter city: it must be a text"),
        (of_decimals, "the parameter city: it must be a text"),
        (of_bytes, "the parameter city: it must be a text"),
        (of_lists_of_lists, "the parameter city: it must be a text"),
        (of_an_own_class, "the parameter city: it must be a text"),
        (of_anything, "the parameter city: it must be a text"),
        (of_a_list_of_anything, "the parameter city: it must be a text"),
        (of_an_absent_class, "name 'Absent' is not defined"),
        (of_many, "*city: 'str' cannot be given by name"),
        (without_a_docstring, "it has no docstring"),
        (with_far_too_many, "it has 17 properties, at most 16 are taken"),
        (lambda: None, "it has no docstring"),
        (print, "cannot be given by name"),
        (int, "its signature cannot be read"),
    ],
)
def test_what_cannot_be_a_tool_is_named_with_its_parameter(function: Callable[..., Any], why: str) -> None:
    """The error names the function and says what to do."""
    with pytest.raises(BriefError) as wrong:
        declare(function)
    assert why in wrong.value.message
    assert function.__name__ in wrong.value.message
    assert (wrong.value.field, bool(wrong.value.remedy)) == ("tools", True)


async def test_arguments_that_do_not_fit_never_reach_the_function() -> None:
    """Unknown, missing and wrong ones are refused before it runs."""
    for arguments, why in (
        ({}, "there is no value for city"),
        ({"city": "Rome", "town": "x"}, "there is no town"),
        ({"city": "Rome", "days": 9}, "days: "),
        ({"city": 3}, "city: "),
    ):
        with pytest.raises(CallFailed, match=why) as failed:
            await declare(weather).run(arguments, 30.0)
        assert not failed.value.ran


def raising() -> str:
    """Raise."""
    raise ValueError("no\nsuch " + "x" * 1_000)


def leaving() -> str:
    """Leave the program."""
    sys.exit("bye")


def stopping() -> str:
    """Stop an iteration that is not there."""
    raise StopIteration(3)


async def cancelling() -> str:
    """Cancel itself."""
    raise asyncio.CancelledError


def an_object() -> object:
    """Return what is no JSON."""
    return object()


def a_circle() -> object:
    """Return a list of itself."""
    found: list[object] = []
    found.append(found)
    return found


def too_much() -> str:
    """Return too much."""
    return "x" * (RESULT_BYTES + 1)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raising, "ValueError: no such x"),
        (leaving, "SystemExit: bye"),
        (stopping, "StopIteration: 3"),
        (cancelling, "cancelling was cancelled"),
        (an_object, "its result is no JSON"),
        (a_circle, "its result is no JSON"),
        (too_much, "its result has 262,147 bytes of JSON, at most 262,144 are taken"),
    ],
)
async def test_whatever_a_function_does_is_a_line_and_never_a_crash(function: Callable[..., Any], why: str) -> None:
    """A line of at most 300 characters; the function has run."""
    with pytest.raises(CallFailed, match=why) as failed:
        await run(function)
    assert failed.value.ran
    assert len(str(failed.value)) <= FAILURE_LIMIT
    assert "\n" not in str(failed.value)


async def test_a_function_that_does_not_end_is_not_waited_for() -> None:
    """Its time is over, and it may still be at work."""
    cancelled = asyncio.Event()

    async def waits() -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    with pytest.raises(CallTimedOut, match="waits did not end within"):
        await run(waits, seconds=0.01)
    await cancelled.wait()


def test_marks_say_what_a_file_offers() -> None:
    """`tool` marks what may change something; a plain function is none of a file's tools."""

    @batos.tool
    def switch(on: bool) -> str:
        """Switch the light."""
        return str(on)

    assert [is_marked(each) for each in (weather, switch, raising)] == [True, True, False]
    assert [declare(each).declaration.reads for each in (weather, switch, raising)] == [True, False, False]


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


@given(JSON)
def test_any_json_is_a_result(value: Any) -> None:
    """A text stays as it is, but for what is no Unicode; another value is JSON that says the same."""
    said = as_text(value)
    if isinstance(value, str):
        assert said == value.encode("utf-8", "replace").decode()
    elif "\\ud" not in repr(value):
        assert json.loads(said) == value
