"""Arguments are bound by rule from the words of a question, and checked by the tool's schema."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.tools.catalogue import ALL, FETCH, LAMP, MONEY, ORDERS, TODAY, TRAINS, WEATHER, WIKI

from batos.agency.toolbox import Tool
from batos.minds.tools.arguments import bind, faults_of, find_day, query_of, takes_journey
from batos.minds.tools.question_forms import list_required, properties_of


@pytest.mark.parametrize(
    ("question", "tool", "values"),
    [
        ("Will it rain in Bath tomorrow?", WEATHER, {"place": "Bath", "date": "2026-12-01"}),
        ("Regnet es am Mittwoch in Bad Homburg?", WEATHER, {"place": "Bad Homburg", "date": "2026-12-02"}),
        (
            "Trains from King's Lynn to Ely on 3 December?",
            TRAINS,
            {"origin": "King's Lynn", "destination": "Ely", "date": "2026-12-03"},
        ),
        ("Ein Zug von Kiel nach Ulm?", TRAINS, {"origin": "Kiel", "destination": "Ulm", "date": "2026-11-30"}),
        (
            "Quels trains partent de Nantes pour Tours ?",
            TRAINS,
            {"origin": "Nantes", "destination": "Tours", "date": "2026-11-30"},
        ),
        ("Where is order A-4471?", ORDERS, {"order": "A-4471"}),
        ("Read https://example.org/a?b=1.", FETCH, {"address": "https://example.org/a?b=1"}),
        (
            "How much are 1,250 dollars in CHF?",
            MONEY,
            {"amount": 1250, "currency": "USD", "into": "CHF"},
        ),
        ("Schalte das Licht im Flur aus.", LAMP, {"room": "Flur", "state": "off"}),
        ("Look up the zip fastener in Wikipedia, please.", WIKI, {"query": "zip fastener"}),
        ('Search for "plum cake".', WIKI, {"query": "plum cake"}),
    ],
)
def test_what_stands_in_a_question_is_bound(question: str, tool: Tool, values: dict[str, Any]) -> None:
    """Names, days, numbers, addresses and the words of an enum need no model."""
    bound = bind(question, tool, list_required(tool), TODAY)
    assert (dict(bound.values), bound.missing) == (values, ())


def test_what_does_not_stand_there_is_missing() -> None:
    """Nothing is made up: a place that is not named and a value of which two are named stay open."""
    assert bind("Will it rain tomorrow?", WEATHER, list_required(WEATHER), TODAY).missing == ("place",)
    assert bind("Switch the lamp on or off.", LAMP, list_required(LAMP), TODAY).missing == ("room", "state")


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("today", "2026-11-30"),
        ("übermorgen", "2026-12-02"),
        ("après-demain", "2026-12-02"),
        ("the day after tomorrow", "2026-12-02"),
        ("am Sonntag", "2026-12-06"),
        ("on Monday", "2026-12-07"),
        ("el 10 de diciembre", "2026-12-10"),
        ("on 4 January", "2027-01-04"),
        ("on 2027-02-01", "2027-02-01"),
        ("nothing of the kind", "2026-11-30"),
        ("between 3 December and 5 December", None),
    ],
)
def test_days(said: str, day: str | None) -> None:
    """Relative days count from the day of asking; one without a year is the next one."""
    assert find_day(said, TODAY) == day


@given(st.text(max_size=120), st.sampled_from(ALL), st.dates(date(2000, 1, 1), date(2099, 12, 31)))
def test_what_is_bound_is_valid(question: str, tool: Tool, today: date) -> None:
    """Of any text only values that the schema allows are taken, and what is missing is what was not found."""
    bound = bind(question, tool, list_required(tool), today)
    assert set(bound.missing) == set(list_required(tool)) - set(bound.values)
    if not bound.missing:
        assert [each for each in faults_of(tool, bound.values, question) if "is not valid" in each] == []


def test_faults_name_the_argument() -> None:
    """A value of a wrong kind, an unknown argument, an empty text and an address from elsewhere are faults."""
    assert faults_of(MONEY, {"amount": "ten", "currency": "EUR", "into": "USD"}, "")[0].startswith("$.amount")
    assert faults_of(WIKI, {"query": "a", "more": 1}, "")
    assert faults_of(WIKI, {"query": " "}, "") == ["$.query: it is empty"]
    assert "does not stand in the question" in faults_of(FETCH, {"address": "https://evil.example"}, "Fetch a page.")[0]


def test_a_query_is_the_content_words() -> None:
    """Words that only ask, order or name where to look are left out, and elided articles with them."""
    assert query_of("Cherche sur le web l'histoire du phare de Cordouan.") == "histoire phare Cordouan"
    assert query_of("What's the news about the ferry strike?") == "ferry strike"
    assert query_of("???") == "???"


def test_a_journey_has_two_ends() -> None:
    """Arguments with a start and a goal take a journey."""
    assert takes_journey(properties_of(TRAINS))
    assert not takes_journey(properties_of(WEATHER))


def _numbers(names: list[str], required: list[str]) -> Tool:
    properties = {name: {"type": "number"} for name in names}
    return Tool("at", "Tell it.", {"type": "object", "properties": properties, "required": required}, "look_up")


@given(
    st.lists(st.sampled_from(["lat", "lon", "days", "limit", "year"]), min_size=1, unique=True),
    st.lists(
        st.sampled_from(["What is at", "48", "days", "3", "the limit", "lat 48.4", "lon", "on Friday"]), max_size=5
    ),
    st.booleans(),
)
def test_no_two_arguments_have_one_number(names: list[str], parts: list[str], is_needed: bool) -> None:
    """What the words do not say stays open, and is asked for."""
    required = names if is_needed else []
    bound = bind(" ".join(parts), _numbers(names, required), tuple(required), TODAY)
    assert len(bound.values) <= 1
    assert {*bound.values, *bound.missing} >= {*required}


@pytest.mark.parametrize(
    ("question", "names", "values"),
    [
        ("What is the weather at 48?", ["lat", "lon"], {}),
        ("What is the weather at lat 48?", ["lat", "lon"], {"lat": 48}),
        ("What is the weather in the next 3 days?", ["lat", "lon", "days"], {"days": 3}),
        ("Convert 48 please.", ["amount"], {"amount": 48}),
    ],
)
def test_a_number_is_for_the_argument_that_is_named_beside_it(
    question: str, names: list[str], values: dict[str, Any]
) -> None:
    """A number alone is for the only argument that takes one."""
    assert bind(question, _numbers(names, names), tuple(names), TODAY).values == values


def test_one_day_is_not_the_first_and_the_last() -> None:
    """A day that is named is for one argument; where none is named both are today."""
    day = {"type": "string", "format": "date"}
    tool = Tool("room", "Book.", {"properties": {"start": day, "end": day}, "required": ["start", "end"]}, "look_up")
    assert bind("A room on Friday?", tool, ("start", "end"), TODAY) == ({"start": "2026-12-04"}, ("end",))
    assert bind("A room?", tool, ("start", "end"), TODAY).missing == ()
