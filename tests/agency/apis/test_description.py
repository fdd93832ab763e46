"""Descriptions of APIs are read by rule: operations, parameters, examples, and the header of a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batos.agency.apis.api_operations import Operation, Parameter
from batos.agency.apis.description import read_description
from batos.agency.apis.method_sources import describe
from batos.records.tools import READING, REQUEST

APIS = Path(__file__).parents[3] / "bench" / "agency_apis"


def operation(text: str, name: str) -> Operation:
    """Return the operation of that name in a description."""
    found = read_description(text).find(name)
    assert found is not None, [each.name for each in read_description(text).operations]
    return found


def parameter(found: Operation, name: str) -> Parameter:
    """Return the parameter of that name."""
    return next(each for each in found.parameters if each.name == name)


MARKDOWN = """
# Weather
Base URL: https://api.weather.example/v1 . Send your key in the `X-Api-Key` header.

## Forecast
`GET /forecast?city=Brest` gives the days to come.

| name | required | meaning |
|---|---|---|
| city | yes | the city |
| days | no | how many days, a whole number |
| units | no | one of `metric`, `imperial` |

Response:
```json
{"city": "Brest", "days": [{"date": "2026-12-01", "max": 12.5}, ...]}
```
An unknown city has status 404: `{"error": "no such city"}`.

## Delete
`DELETE /cache` clears it.
"""


def test_a_description_in_markdown() -> None:
    """A description in markdown."""
    found = operation(MARKDOWN, "forecast_")
    assert found.path == "/v1/forecast"
    assert found.required_names == ["city"]
    assert parameter(found, "days").kind == "integer"
    assert parameter(found, "units").choices == ("metric", "imperial")
    assert found.replies == ({"city": "Brest", "days": [{"date": "2026-12-01", "max": 12.5}]},)
    assert found.errors == ({"error": "no such city"},)
    assert read_description(MARKDOWN).secret_header == "X-Api-Key"


def test_what_changes_something_is_no_operation() -> None:
    """What changes something is no operation."""
    assert [each.name for each in read_description(MARKDOWN).operations] == ["forecast_"]


def test_a_description_in_prose() -> None:
    """A description in prose."""
    text = (
        "Ask it at http://ferries.example/v1. /fares/{island} gives the price of a crossing. "
        "/departures gives the next departures; pass the port as `from` (required), and `to` narrows it."
    )
    found = operation(text, "departures_")
    assert (found.path, found.required_names) == ("/v1/departures", ["from"])
    assert parameter(operation(text, "fares_"), "island").place == "path"


def test_types_in_the_place_of_values() -> None:
    """Types in the place of values."""
    text = "### Quote\n#### Request\n```\nhttps://q.example/quotes/:id\n```\n"
    text += "#### Response\n```ts\n{\n  _id: string, // x\n"
    found = operation(f"{text}  tags: [string],\n  length: number\n  by: {{name: string}}[]\n}}\n```", "quotes_")
    assert found.path == "/quotes/{id}"
    assert found.replies == ({"_id": "text", "tags": ["text"], "length": 1, "by": [{"name": "text"}]},)


def test_calls_with_values_are_examples_of_their_template() -> None:
    """Calls with values are examples of their template."""
    text = "GET /stops/{id}\n\nFor example `curl https://t.example/stops/9001`\n\nGET /stops/all lists all."
    assert [each.path for each in read_description(text).operations] == ["/stops/{id}", "/stops/all"]


def test_a_key_in_the_query_is_no_argument() -> None:
    """A key in the query is no argument."""
    found = operation("GET /find?q=boats&api_key=YOUR_KEY", "find_")
    assert [each.name for each in found.parameters] == ["q"]


@pytest.mark.parametrize("folder", sorted(APIS.iterdir()), ids=lambda each: each.name)
def test_an_operation_is_read_again_from_what_describes_it(folder: Path) -> None:
    """An operation is read again from what describes it."""
    for each in read_description((folder / "description.md").read_text()).operations:
        for selector in (REQUEST + each.name, READING + each.name):
            again = read_description(describe(each, selector)).operations[0]
            assert again.path == each.path
            assert [(one.name, one.kind, one.is_required) for one in again.parameters] == [
                (one.name, one.kind, one.is_required) for one in each.parameters
            ]
            if selector.startswith(READING):
                assert again.replies == each.replies


@settings(max_examples=200)
@given(st.text(max_size=300) | st.from_regex(r"(?:#|- |\| |GET |/a\{|`|\{\"|\[|https?://|\n|a){0,40}"))
def test_nothing_that_is_written_breaks_the_reader(text: str) -> None:
    """Nothing that is written breaks the reader."""
    read_description(text)
