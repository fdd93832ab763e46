"""Requests of methods are checked against the operations of a description before anything is sent."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.agency.apis.api_operations import ApiRequest, Operation, Parameter, check_request, matches

TIDES = Operation(
    "tides_", "/v2/harbours/{harbour}/tides",
    parameters=(Parameter("harbour", "path", is_required=True), Parameter("date", is_required=True), Parameter("unit")),
)  # fmt: skip


def _made(**changes: object) -> dict[str, object]:
    return {"method": "GET", "path": "/v2/harbours/brest/tides", "query": {"date": "x"}, "body": None, **changes}


def test_a_request_of_the_description_passes() -> None:
    """A request of the description passes."""
    request = check_request(TIDES, _made(path="/v2/harbours/st malo/tides", query={"date": "a&b", "unit": "ü"}))
    assert isinstance(request, ApiRequest)
    assert request.target == "/v2/harbours/st%20malo/tides?date=a%26b&unit=%C3%BC"


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "POST"}, {"method": "DELETE"}, {"body": {"a": 1}}, {"host": "example.org"},
        {"path": "http://example.org/v2/harbours/brest/tides"}, {"path": "//example.org/v2/harbours/b/tides"},
        {"path": "/v2/harbours/../tides"}, {"path": "/v2/harbours/a/b/tides"}, {"path": "/v2/harbours/a\r\nX: y/tides"},
        {"path": "/v2/harbours/brest/tides?x=1/tides"}, {"path": "/v2/harbours//tides"}, {"path": 7},
        {"query": {"date": "x", "debug": "1"}}, {"query": {"unit": "m"}}, {"query": {"date": "a\nb"}},
        {"query": {"date": 3}}, {"query": ["date"]},
    ],
)  # fmt: skip
def test_any_other_request_is_refused(changes: dict[str, object]) -> None:
    """Any other request is refused."""
    made = check_request(TIDES, _made(**changes))
    assert isinstance(made, str), made


@given(st.text(max_size=40), st.text(max_size=20))
def test_no_path_leads_beyond_its_template(path: str, value: str) -> None:
    """No path leads beyond its template."""
    for each in (path, f"/v2/harbours/{path}/tides"):
        made = check_request(TIDES, _made(path=each, query={"date": value}))
        if isinstance(made, ApiRequest):
            sent = urlsplit(f"http://host.example{made.target}")
            assert sent.netloc == "host.example"
            assert matches(TIDES.path, unquote(sent.path))
            assert sent.path.count("/") == TIDES.path.count("/")


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), st.lists, max_leaves=5))
def test_what_is_no_request_is_refused_in_words(made: object) -> None:
    """What is no request is refused in words."""
    assert isinstance(check_request(TIDES, made), str)
