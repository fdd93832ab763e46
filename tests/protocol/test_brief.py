"""The brief: what is wrong is named with a remedy, and nothing else is raised."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.genesis.codex.codex import PILLARS
from batos.protocol import brief as briefs
from batos.protocol.brief import (
    ARGUMENTS_LIMIT,
    ATTACHMENTS_LIMIT,
    TEXT_LIMIT,
    MissionBrief,
    as_file,
    parse,
    read_file,
)
from batos.protocol.brief_checks import MOST_BYTES, MOST_DEPTH
from batos.protocol.errors import BriefError

RIGHT: dict[str, Any] = {
    "text": "How does the lamp burn?",
    "attachments": [{"name": "a.txt", "media_type": "text/plain", "sha256": "a" * 64}],
    "user": "tester",
    "conversation": "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "persona": "BRICK",
    "effort": "cycle",
    "budget": {"calls": 6, "tokens": 9_000, "seconds": 60},
    "in_reply_to": "m-01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "deadline": "2026-11-21T09:30:00.000Z",
    "priority": 3,
    "policy": {"combine": "vote", "wait_ollama": True},
    "message": {"receiver": "genesis_obj", "selector": "audit_", "arguments": [1, {"a": [None, True]}]},
    "idempotency_key": "morning-1",
    "ancestor": "m-01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "origin": {"door": "cli", "client": "batos ask"},
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


def test_a_right_brief_is_kept_as_it_is() -> None:
    """Every field comes back as plain data that makes the same brief again."""
    shown = parse(RIGHT).model_dump(mode="json", exclude_none=True)
    assert shown == {**RIGHT, "budget": {"calls": 6, "tokens": 9_000, "seconds": 60.0}}
    assert parse(shown) == parse(RIGHT)


def test_a_text_and_a_user_are_enough() -> None:
    """All other fields have a default or are absent."""
    assert parse({"text": "Hi", "user": "me"}).model_dump(exclude_none=True) == {
        "text": "Hi",
        "user": "me",
        "attachments": (),
        "origin": {"door": "api", "client": "batos"},
    }


@given(name=st.sampled_from(sorted(MissionBrief.model_fields)), value=anything)
def test_any_value_of_any_field_is_taken_or_refused_by_name(name: str, value: Any) -> None:
    """Nothing but BriefError is raised, with the field and a remedy; what is taken can be written as text."""
    try:
        brief = parse({**RIGHT, name: value})
    except BriefError as error:
        assert error.field is not None
        assert error.field.split(".")[0] == name
        assert error.remedy
        assert error.exit_code == 2
    else:
        brief.text.encode()
        brief.user.encode()
        brief.model_dump_json()


@given(value=anything)
def test_anything_at_all_is_taken_or_refused(value: Any) -> None:
    """A brief that is no object, has other keys or keys that are no names is a BriefError."""
    with pytest.raises(BriefError) as raised:
        parse(value)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", ""),
        ("text", " \n\t"),
        ("text", "a\0b"),
        ("text", "x" * (TEXT_LIMIT + 1)),
        ("text", "\ud800"),
        ("user", ""),
        ("user", "a\nb"),
        ("user", "x" * 129),
        ("effort", "senate"),
        ("conversation", "c-1"),
        ("conversation", "m-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("conversation", "c-01ARZ3NDEKTSV4RRFFQ69G5FAV\n"),
        ("ancestor", "m-01arz3ndektsv4rrffq69g5fav"),
        ("ancestor", "m-01ARZ3NDEKTSV4RRFFQ69G5FAI"),
        ("in_reply_to", "c-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("deadline", "tomorrow"),
        ("deadline", "2026-11-21T09:30:00"),
        ("deadline", "0001-01-01T00:00:00+14:00"),
        ("deadline", 1_800_000_000),
        ("priority", 10),
        ("priority", -10),
        ("priority", 1.0),
        ("priority", True),
        ("policy", {"combine": "mix"}),
        ("policy", {"wait_ollama": 1}),
        ("policy", {"hurry": True}),
        ("message", {"receiver": "x"}),
        ("message", {"receiver": "", "selector": "x"}),
        ("message", {"receiver": "x", "selector": "a\nb"}),
        ("idempotency_key", ""),
        ("idempotency_key", "a\0b"),
        ("idempotency_key", "x" * 129),
        ("budget", {"calls": 0}),
        ("budget", {"calls": True}),
        ("budget", {"tokens": 10**5_000}),
        ("budget", {"seconds": float("inf")}),
        ("budget", {"seconds": float("nan")}),
        ("budget", {"minutes": 1}),
        ("attachments", [{"name": "a", "media_type": "text/plain", "sha256": "A" * 64}]),
        ("attachments", [RIGHT["attachments"][0]] * (ATTACHMENTS_LIMIT + 1)),
        ("origin", {"door": "x" * 65}),
        ("planet", "Mars"),
    ],
)
def test_what_is_wrong_is_named(field: str, value: object) -> None:
    """The first wrong field is named in the error and in its message."""
    with pytest.raises(BriefError) as raised:
        parse({**RIGHT, field: value})
    assert str(raised.value.field).startswith(field)
    assert raised.value.message.startswith(field)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("text", "", "text: the question is empty"),
        ("text", "x" * 20_431, "text: the question has 20,431 characters, at most 20,000 are taken"),
        ("text", 3, "text: the question must be text, not 3"),
        ("text", "\udcff", "text: the question is not valid Unicode text"),
        ("ancestor", "m-1", "ancestor: there is no such id as 'm-1'"),
        ("persona", "BOB", "persona: it must be 'ROBIN', 'BRICK', 'BABS' or 'ALFRED', not 'BOB'"),
        ("budget", {"calls": 0}, "budget.calls: it must be at least 1, not 0"),
        ("budget", {"calls": 2 * 10**9}, "budget.calls: it must be at most 1,000,000,000, not 2000000000"),
        ("budget", {"calls": "3"}, "budget.calls: it must be a whole number, not '3'"),
        ("budget", {"seconds": float("inf")}, "budget.seconds: it must be a finite number"),
        ("budget", 3, "budget: it must be an object with fields, not 3"),
        ("attachments", 2**100, "attachments: it must be a list, not a long int"),
        ("attachments", [{}], "attachments.0.name: it is missing"),
        ("user", "", "user: it is empty"),
    ],
)
def test_faults_are_told_in_plain_words(field: str, value: object, said: str) -> None:
    """What a person reads is what is wrong with which field, in no library's words."""
    with pytest.raises(BriefError) as raised:
        parse({**RIGHT, field: value})
    assert raised.value.message == said


def test_an_unknown_field_is_told_which_there_are() -> None:
    """A misspelt field is refused with the list of those that a brief has."""
    with pytest.raises(BriefError) as raised:
        parse({**RIGHT, "txet": "Hi"})
    assert "text, attachments, user" in raised.value.remedy


def test_a_text_of_the_greatest_length_is_taken() -> None:
    """The limit is a length that is still allowed."""
    assert len(parse({**RIGHT, "text": "x" * TEXT_LIMIT}).text) == TEXT_LIMIT


@given(
    name=st.text(max_size=300),
    data=st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "replace")),
)
def test_any_bytes_are_a_file_or_refused(name: str, data: bytes) -> None:
    """What has a byte that is no blank is taken under a name a brief may have; all else is a BriefError."""
    try:
        file = as_file(name, data)
    except BriefError as error:
        assert error.field == "attachments"
        assert error.remedy
    else:
        assert file.ref.sha256 == hashlib.sha256(data).hexdigest()
        assert file.data == data
        assert data.strip()
        if file.is_text:
            assert "\0" not in data.decode("utf-8")
        parse({**RIGHT, "attachments": [file.ref.model_dump()]})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"GIF89a", "a picture"),
        (b"\x7fELF", "program"),
    ],
)
def test_what_nobody_can_read_says_why(data: bytes, why: str) -> None:
    """Empty files and those of a kind without text are told apart."""
    with pytest.raises(BriefError, match=why):
        as_file("a.txt", data)


@pytest.mark.parametrize("data", [b"a\xffb", b"a\0b", b"%PDF-1.4"])
def test_a_file_that_is_no_text_is_for_a_server_to_read(data: bytes) -> None:
    """It is taken, and known to be none."""
    assert not as_file("a.txt", data).is_text
    assert as_file("a.txt", b"a").is_text


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """A file of the limit's size is taken, one byte more is refused, and no more than that is ever read."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    assert read_file(path, 100).ref.name == "a.txt"
    with pytest.raises(BriefError, match="more than 99 bytes") as raised:
        read_file(path, 99)
    assert "attachment_bytes" in raised.value.remedy
    with pytest.raises(BriefError, match="more than 10 bytes"):
        read_file(Path("/dev/zero"), 10)


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A folder, a file that is not there and a name that cannot be one are BriefErrors with a remedy."""
    for path in (tmp_path, tmp_path / "none.txt", tmp_path / "a\0b"):
        with pytest.raises(BriefError, match="cannot be read") as raised:
            read_file(path, 100)
        assert raised.value.field == "attachments"
        assert raised.value.remedy
    with pytest.raises(BriefError) as raised:
        read_file(tmp_path, 100)
    assert raised.value.remedy == "Name its files, each with --file."


def test_a_name_that_is_no_text_is_made_one(tmp_path: Path) -> None:
    """Any bytes may be a file's name on a disk; what is no text in it is replaced."""
    path = os.fsencode(tmp_path) + b"/caf\xe9\n.md"
    Path(os.fsdecode(path)).write_text("Hello.", encoding="utf-8")
    file = read_file(Path(os.fsdecode(path)), 100)
    assert file.ref.name == "caf?_.md"
    assert file.ref.media_type in {"text/markdown", "text/plain"}


def test_a_persona_is_named_in_any_case() -> None:
    """As on the command line."""
    assert parse({**RIGHT, "persona": "brick"}).persona == "BRICK"


def test_the_names_of_personas_are_the_codexs() -> None:
    """A brief may name exactly the personas that there are."""
    assert set(get_args(briefs.PersonaName)) == set(PILLARS)


MESSAGE: dict[str, Any] = {"receiver": "brick_prototype_obj", "selector": "guide_facet_", "arguments": ["Why?", 1]}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(arguments=st.lists(json_values, max_size=ARGUMENTS_LIMIT) | st.lists(anything, max_size=3))
def test_any_arguments_are_kept_as_they_are_or_refused(arguments: list[Any]) -> None:
    """A message's arguments come back as the same JSON, or the error names them; nothing else is raised."""
    try:
        brief = parse({"user": "me", "message": {**MESSAGE, "arguments": arguments}})
    except BriefError as error:
        assert error.field is not None
        assert error.field.startswith("message.arguments")
        assert error.remedy
    else:
        kept = brief.model_dump(mode="json")["message"]["arguments"]
        assert json.dumps(kept) == json.dumps(arguments)
        assert "\0" not in json.loads(json.dumps(kept, ensure_ascii=False).encode()).__repr__()
        assert 0 < len(brief.text) <= TEXT_LIMIT


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("Why?", "must be a list"),
        (["x"] * (ARGUMENTS_LIMIT + 1), "at most 8"),
        (["x" * MOST_BYTES], "bytes of JSON"),
        (nested(MOST_DEPTH + 1), "deeper than 32"),
        (nested(100_000), "deeper than 32"),
        (["a\0b"], "NUL"),
        ([{"a\0b": 1}], "NUL"),
        (["\ud800"], "not valid Unicode"),
        ([float("nan")], "not JSON"),
        ([float("inf")], "not JSON"),
        ([{1: 2}], "key that is not text"),
        ([b"x"], "not JSON"),
        ([10**5_000], "not JSON"),
    ],
)
def test_what_is_wrong_with_arguments_is_told(arguments: Any, why: str) -> None:
    """Too many, too long, too deep, and what is not JSON are told apart, of any size and depth."""
    with pytest.raises(BriefError, match=why) as raised:
        parse({"user": "me", "message": {**MESSAGE, "arguments": arguments}})
    assert raised.value.field == "message.arguments"


def test_arguments_that_hold_themselves_are_refused() -> None:
    """Lists of lists of one list are never unfolded, nor is one that holds itself."""
    twice: Any = 1
    for _ in range(31):
        twice = [twice, twice]
    endless: list[Any] = []
    endless.append(endless)
    for arguments in (twice, endless):
        with pytest.raises(BriefError):
            parse({"user": "me", "message": {**MESSAGE, "arguments": arguments}})


def test_arguments_of_the_greatest_depth_and_length_are_taken() -> None:
    """The limits are still allowed, and a backslash before `u0000` is no NUL."""
    for arguments in (nested(MOST_DEPTH), ["x" * (MOST_BYTES - 4)], ["a\\u0000"]):
        parse({"user": "me", "message": {**MESSAGE, "arguments": arguments}})


def test_a_message_without_a_text_is_said_in_words() -> None:
    """Receiver, selector and arguments stand where a mission shows its question; a text that is given stays."""
    assert parse({"user": "me", "message": MESSAGE}).text == 'brick_prototype_obj guide_facet_ "Why?" 1'
    assert parse({"user": "me", "message": MESSAGE, "text": "Ask the guide."}).text == "Ask the guide."
    long = parse({"user": "me", "message": {**MESSAGE, "arguments": ["x" * 30_000]}})
    assert len(long.text) == TEXT_LIMIT
    assert parse(long.model_dump(mode="json", exclude_none=True)) == long
    for wrong in ({"receiver": "x"}, {**MESSAGE, "receiver": "a\nb"}, 3):
        with pytest.raises(BriefError) as raised:
            parse({"user": "me", "message": wrong})
        assert str(raised.value.field).startswith("message")
    with pytest.raises(BriefError, match="the question is missing"):
        parse({"user": "me"})


@given(moment=st.datetimes(timezones=st.timezones() | st.just(UTC)) | st.datetimes() | st.text(max_size=30))
def test_a_deadline_is_a_moment_of_the_world(moment: Any) -> None:
    """Whatever its time zone it is kept in UTC, to the millisecond; what names no zone or no moment is refused."""
    given_as = moment if isinstance(moment, str) else moment.isoformat()
    try:
        kept = parse({**RIGHT, "deadline": given_as}).deadline
    except BriefError as error:
        assert error.field == "deadline"
        assert error.remedy
    else:
        assert kept is not None
        assert kept.endswith("Z")
        assert len(kept) == len("2026-11-21T09:30:00.000Z")
        assert abs(datetime.fromisoformat(kept) - datetime.fromisoformat(given_as)) < timedelta(milliseconds=1)
