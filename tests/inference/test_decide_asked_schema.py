"""The shape of an answer by its asker's schema: what a daemon is asked, and what of its reply is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.inference.decide import AskedSchema
from batos.protocol.errors import DecisionInvalid

#: A schema whose keys are not in the order of the alphabet.
VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasons": {"type": "array", "items": {"type": "string", "maxLength": 80}, "description": "what speaks for it"},
        "grade": {"$ref": "#/$defs/Grade"},
        "by": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["reasons", "grade"],
    "$defs": {"Grade": {"type": "integer", "minimum": 1, "maximum": 6}},
}


def test_keys_are_asked_for_in_the_order_that_was_given() -> None:
    """A daemon writes them by the alphabet: reasons are to come before the grade that follows from them."""
    shape = AskedSchema(VERDICT)
    assert list(shape.format["properties"]) == ["a_reasons", "b_grade", "c_by"]
    assert shape.format["required"] == ["a_reasons", "b_grade"]
    assert shape.format["$defs"] == VERDICT["$defs"]
    said = shape.parse('{"a_reasons": ["It is dry."], "b_grade": 2}').text
    assert json.loads(said) == {"reasons": ["It is dry."], "grade": 2}


def test_a_schema_whose_keys_are_in_order_is_asked_for_as_it_is() -> None:
    """So is one without keys."""
    for schema in (
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
        {"type": "array", "items": {"type": "integer"}},
    ):
        assert dict(AskedSchema(schema).format) == schema


def test_where_no_key_is_called_required_all_are_asked_for() -> None:
    """An answer without one is right all the same: a model that may leave out each leaves out all."""
    shape = AskedSchema({"type": "object", "properties": {"who": {"type": "string"}, "at": {"type": "integer"}}})
    assert shape.format["required"] == ["a_who", "b_at"]
    assert json.loads(shape.parse('{"b_at": 9}').text) == {"at": 9}


def test_the_prompt_says_in_words_what_each_key_is_to_hold() -> None:
    """A model does not see its grammar; an example in JSON makes small ones write blanks."""
    guide = AskedSchema(VERDICT).guide
    assert guide.splitlines() == [
        "`a_reasons`: what speaks for it (a list, each text)",
        "`b_grade`: a whole number",
        "`c_by`: text or null",
    ]
    assert AskedSchema({"type": "array", "items": {"enum": ["a", "b"]}}).guide == 'JSON: a list, each one of "a", "b"'


def test_a_schema_that_holds_itself_is_described_as_far_as_one_reads() -> None:
    """A tree of trees has an end in the prompt."""
    tree = {"type": "object", "properties": {"inner": {"$ref": "#"}}}
    assert "any value" in AskedSchema(tree).guide


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty"),
        ('{"a_reasons": [', "stops in the middle"),
        ('{"a_reasons": [], "b_grade": 9}', r"\$\.grade: 9 is greater than the maximum of 6"),
        ('{"a_reasons": []}', "'grade' is a required property"),
        ('{"a_reasons": [], "a_reasons": [], "b_grade": 1}', "given twice"),
        ('{"a_reasons": [], "b_grade": NaN}', "NaN"),
        ("[1]", "is not of type 'object'"),
    ],
)
def test_a_reply_without_the_schema_is_refused_with_its_faults(reply: str, why: str) -> None:
    """In the asker's own keys, and it is no answer even in part."""
    shape = AskedSchema(VERDICT)
    with pytest.raises(DecisionInvalid, match=why):
        shape.parse(reply)
    assert shape.salvage(reply, last=True) is None


_KEYS = st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8), unique=True, min_size=1)


@given(keys=_KEYS, value=st.text() | st.integers() | st.none())
def test_any_keys_come_back_as_they_were_given(keys: list[str], value: object) -> None:
    """Whatever letters they were asked for with, also where one key is what another one was asked as."""
    shape = AskedSchema({"type": "object", "properties": {key: {} for key in keys}, "required": keys})
    assert list(shape.format["properties"]) == sorted(shape.format["properties"])
    reply = json.dumps(dict.fromkeys(shape.format["properties"], value))
    assert json.loads(shape.parse(reply).text) == dict.fromkeys(keys, value)
