"""The schema of an answer: checked at the door by its own rules, and the answer by it, within any bounds of time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.briefs import json_values

from batos.protocol import brief_checks
from batos.protocol.brief import FIELDS, MissionBrief, parse
from batos.protocol.errors import BriefError

KEEPER: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "lamps": {"type": "array", "items": {"$ref": "#/$defs/Lamp"}}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"Lamp": {"enum": ["front", "rear"]}},
}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "it is empty"),
        ([], "must be an object"),
        ("name, age int", "must be an object"),
        ({"type": "strin"}, r"\$\.type"),
        ({"properties": {"a": {"minimum": "low"}}}, r"\$\.properties\.a\.minimum"),
        ({"$ref": "https://example.org/schema.json"}, "nothing is fetched"),
        ({"$ref": "https://example.org/schema.json", "": {"type": "string"}}, "nothing is fetched"),
        ({"$ref": "#/$defs/Lamp"}, "names nothing in the schema"),
        ({"properties": {"a": {"$ref": "#/$defs/Lamp"}}}, "names nothing in the schema"),
        ({"patternProperties": {"^a": {}}}, "keys by a pattern"),
        ({"properties": {"a": {"type": "string", "pattern": "(?<=x"}}}, "is not a 'regex'"),
        ({"properties": {"a": {"type": "string", "pattern": "(?!x)a"}}}, "cannot be compiled"),
        ({"properties": {"a": {"$id": "https://example.org/a", "type": "string"}}}, "an .id of its own"),
        ({"description": "x" * 70_000}, "bytes of JSON"),
        ({"enum": [float("nan")]}, "not JSON"),
    ],
)
def test_a_schema_that_is_of_no_use_is_refused_at_the_door(schema: Any, why: str) -> None:
    """Before anything runs, with the place."""
    with pytest.raises(BriefError, match=why) as caught:
        parse({"text": "Who keeps the lamp?", "user": "ada", "schema": schema})
    assert caught.value.field == "schema"


@pytest.mark.parametrize(
    "beside",
    [{"effort": "cycle"}, {"effort": "council"}, {"policy": {"only_memory": True}},
     {"message": {"receiver": "a", "selector": "b"}}],
)  # fmt: skip
def test_what_cannot_have_a_schema_is_refused(beside: dict[str, Any]) -> None:
    """Several calls, a message, and an answer that may say that there is none."""
    with pytest.raises(BriefError) as caught:
        parse({"text": "Who keeps the lamp?", "user": "ada", "schema": KEEPER, **beside})
    assert caught.value.field == "schema"


@pytest.mark.parametrize("effort", [None, "auto", "reflex"])
def test_a_question_with_a_schema_is_one_call(effort: str | None) -> None:
    """Whatever the router would choose; its document has the schema under the name that was given."""
    brief = parse({"text": "Who keeps the lamp?", "user": "ada", "schema": KEEPER, "effort": effort})
    assert brief.effort == "reflex"
    assert brief.as_document()["schema"] == KEEPER
    assert MissionBrief.from_document(json.loads(json.dumps(brief.as_document()))) == brief
    assert "schema" in FIELDS


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"name": "Ida", "lamps": ["rear"]}, []),
        ({"name": "Ida"}, []),
        ({"lamps": []}, ["$: 'name' is a required property"]),
        ({"name": 7}, ["$.name: 7 is not of type 'string'"]),
        ({"name": "Ida", "lamps": ["front", "side"]}, ["$.lamps[1]: 'side' is not one of ['front', 'rear']"]),
        ("Ida", ["$: 'Ida' is not of type 'object'"]),
    ],
)
def test_the_faults_of_an_answer_are_named_with_their_places(value: object, faults: list[str]) -> None:
    """By the schema's own words."""
    assert brief_checks.find_faults(KEEPER, value) == faults


def test_no_more_faults_are_named_than_one_reads() -> None:
    """A list of a thousand wrong values has a few."""
    found = brief_checks.find_faults({"type": "array", "items": {"type": "string"}}, list(range(1_000)))
    assert len(found) == brief_checks.MOST_FAULTS


def test_a_pattern_takes_time_by_the_length_of_the_text_alone() -> None:
    """One that doubles the steps of a backtracking engine with each letter is as quick as another."""
    text = "a" * 5_000 + "!"
    hostile, plain = ({"type": "string", "pattern": pattern} for pattern in ("^(a+)+$", "^a*$"))
    brief_checks.find_faults(plain, "a")
    brief_checks.find_faults(hostile, "a")
    began = time.process_time()
    assert brief_checks.find_faults(hostile, text)
    # A backtracking engine would not end while the universe stands.
    assert time.process_time() - began < 60  # at any pace: of 2^5000 steps no machine does a share


def twice_each(depth: int) -> dict[str, Any]:
    """A schema in which each part refers twice to the next."""
    parts = {f"p{each}": {"anyOf": [{"$ref": f"#/$defs/p{each + 1}"}] * 2} for each in range(depth)}
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{depth}": {"type": "string"}}}


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, twice_each(40)])
def test_references_without_end_are_refused(schema: dict[str, Any]) -> None:
    """One that refers to itself, and forty that refer twice to each other: nobody waits for them."""
    with pytest.raises(BriefError, match="lead on and on"):
        parse({"text": "Why?", "user": "ada", "schema": schema})


def test_a_schema_may_refer_to_itself_below_a_key() -> None:
    """A tree is as deep as its value, and many values follow many references."""
    tree = {"type": "object", "properties": {"inner": {"$ref": "#"}, "name": {"type": "string"}}, "required": ["name"]}
    parse({"text": "Why?", "user": "ada", "schema": tree})
    assert brief_checks.find_faults(tree, {"name": "a", "inner": {"name": 7}}) == [
        "$.inner.name: 7 is not of type 'string'"
    ]


@given(schema=st.dictionaries(st.sampled_from(["type", "items", "properties", "$ref", "enum", "anyOf", "pattern",
                                               "required", "minimum", "not"]), json_values, min_size=1),
       value=json_values)  # fmt: skip
def test_any_json_is_a_schema_or_refused_by_name(schema: dict[str, Any], value: object) -> None:
    """A schema that was taken finds faults or none of any value, and raises nothing."""
    try:
        parse({"text": "Why?", "user": "ada", "schema": schema})
    except BriefError as refused:
        assert refused.field == "schema"
        assert refused.remedy
        return
    assert isinstance(brief_checks.find_faults(schema, value), list)
