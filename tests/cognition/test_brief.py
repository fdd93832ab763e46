"""The brief: what is wrong is named with a remedy, and nothing else is raised."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.cognition import brief as briefs
from batos.cognition.brief import ATTACHMENTS_LIMIT, TEXT_LIMIT, MissionBrief, as_file, parse, read_file
from batos.errors import BriefError
from batos.genesis.codex import PILLARS

RIGHT: dict[str, Any] = {
    "text": "How does the lamp burn?",
    "attachments": [{"name": "a.txt", "media_type": "text/plain", "sha256": "a" * 64}],
    "user": "tester",
    "conversation": "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "persona": "BRICK",
    "effort": "cycle",
    "budget": {"calls": 6, "tokens": 9_000, "seconds": 60},
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
        ("persona", "brick"),
        ("effort", "senate"),
        ("conversation", "c-1"),
        ("conversation", "m-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("conversation", "c-01ARZ3NDEKTSV4RRFFQ69G5FAV\n"),
        ("ancestor", "m-01arz3ndektsv4rrffq69g5fav"),
        ("ancestor", "m-01ARZ3NDEKTSV4RRFFQ69G5FAI"),
        ("budget", {"calls": 0}),
        ("budget", {"calls": True}),
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
        ("text", "\udcff", "text: the question is no Unicode text"),
        ("ancestor", "m-1", "ancestor: there is no such id as 'm-1'"),
        ("persona", "BOB", "persona: it must be 'ROBIN', 'BRICK', 'BABS' or 'ALFRED', not 'BOB'"),
        ("budget", {"calls": 0}, "budget.calls: it must be at least 1, not 0"),
        ("budget", {"calls": "3"}, "budget.calls: it must be a whole number, not '3'"),
        ("budget", {"seconds": float("inf")}, "budget.seconds: it must be a finite number"),
        ("budget", 3, "budget: it must be an object with fields, not 3"),
        ("attachments", 2**100, "attachments: it must be a list, not a long int"),
        ("attachments", [{}], "attachments.0.name: it is not there"),
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
def test_any_bytes_are_a_text_file_or_refused(name: str, data: bytes) -> None:
    """UTF-8 that says something is taken under a name a brief may have; all else is a BriefError of `attachments`."""
    try:
        file = as_file(name, data)
    except BriefError as error:
        assert error.field == "attachments"
        assert error.remedy
    else:
        assert file.ref.sha256 == hashlib.sha256(data).hexdigest()
        assert file.data == data
        text = data.decode("utf-8")
        assert "\0" not in text
        assert text.strip()
        parse({**RIGHT, "attachments": [file.ref.model_dump()]})


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "empty"), (b" \n\t", "empty"), (b"\xef\xbb\xbf", "empty"), (b"a\xffb", "byte 1"), (b"a\0b", "NUL")],
)
def test_what_is_no_text_file_says_why(data: bytes, why: str) -> None:
    """Empty, binary and wrongly encoded files are told apart."""
    with pytest.raises(BriefError, match=why):
        as_file("a.txt", data)


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


def test_a_name_that_is_no_text_is_made_one(tmp_path: Path) -> None:
    """Any bytes may be a file's name on a disk; what is no text in it is replaced."""
    path = os.fsencode(tmp_path) + b"/caf\xe9\n.md"
    Path(os.fsdecode(path)).write_text("Hello.", encoding="utf-8")
    file = read_file(Path(os.fsdecode(path)), 100)
    assert file.ref.name == "caf?_.md"
    assert file.ref.media_type in {"text/markdown", "text/plain"}


def test_the_names_of_personas_are_the_codexs() -> None:
    """A brief may name exactly the personas that there are."""
    assert set(get_args(briefs.PersonaName)) == set(PILLARS)
