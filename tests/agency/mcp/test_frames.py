"""Messages on the wire: whatever comes is a message or none, however it is cut into pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.agency.mcp import frames
from batos.agency.mcp.frames import EventReader, RpcFailed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_message_or_none(data: bytes) -> None:
    """Nothing is raised."""
    found = frames.decode(data)
    assert found is None or found["jsonrpc"] == "2.0"


@given(JSON)
def test_any_json_is_a_message_or_none(value: object) -> None:
    """A list, a text, or an object of another protocol is none."""
    found = frames.decode(json.dumps(value).encode())
    assert found is None or (isinstance(value, dict) and value.get("jsonrpc") == "2.0")


@given(JSON)
def test_an_error_of_any_form_is_told_in_a_line(value: object) -> None:
    """Whatever a server gives in its place."""
    assert "\n" not in RpcFailed(value).message
    assert len(RpcFailed(value).message) < 300


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 5_000, b'{"jsonrpc": "2.0", "id": NaN}', b"1" * 9_999])
def test_depth_and_numbers_are_bounded(data: bytes) -> None:
    """Of such a line nothing is taken."""
    assert frames.decode(data) is None


@given(JSON, st.integers())
def test_what_is_encoded_is_read_again(value: object, number: int) -> None:
    """In one line."""
    frame = {"jsonrpc": "2.0", "id": number, "result": {"value": value}}
    line = frames.encode(frame) if "\\ud" not in json.dumps(value) else b""
    assert b"\n" not in line
    assert not line or frames.is_response(frames.decode(line) or {}, number)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]), st.integers(1, 9),
)  # fmt: skip
def test_a_stream_has_the_same_events_however_it_is_cut(texts: list[str], end: str, size: int) -> None:
    """With each of the three ends of a line, also between its two characters, beside comments and other fields."""
    said = "".join(f": hello{end}event: message{end}data: {text}{end}{end}" for text in texts) + f":{end}"
    data, reader = said.encode(), EventReader()
    found = [each for at in range(0, len(data), size) for each in reader.feed(data[at : at + size])]
    assert found == [each.encode() for each in texts]


def test_lines_of_one_event_are_joined() -> None:
    """By a line break."""
    assert EventReader().feed(b"data: a\ndata:b\n\ndata: c\n") == [b"a\nb"]


@given(JSON, st.text())
def test_responses_and_requests_are_told_apart(number: object, method: str) -> None:
    """A request of the server is never a response, whatever id it has."""
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "result": {}}
    assert not frames.is_response(frame, number)
    assert frames.is_request(frame) == (number is not None)
