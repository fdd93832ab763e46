"""What the runner's maker of grammars refuses in a schema, and what it takes without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.schemas import grammars

_OBJECT = {"type": "object"}


def refusal(form: dict[str, Any], *, native: bool = False) -> dict[str, Any]:
    """The runner's own error for a schema, which has to be refused."""
    with pytest.raises(ApiError) as caught:
        grammars.check(form, native=native)
    assert caught.value.status == 400
    found: dict[str, Any] = json.loads(caught.value.text)["error"]
    return found


@pytest.mark.parametrize(
    ("form", "where", "what"),
    [
        ({"type": "nonsense"}, "#", "unrecognized type nonsense"),
        ({"type": []}, "#", "type must not be empty"),
        ({"type": 5}, "#", "type must be a string or an array of strings"),
        ({"type": ["string", "odd"]}, "#/type/1", "unrecognized type odd"),
        ({"$ref": 5}, "#", "$ref must be a string"),
        (
            {"$ref": "https://a.b/c"},
            "#",
            "unsupported $ref https://a.b/c, only references into the same document are supported",
        ),
        ({"$ref": "#"}, "#", "unsupported $ref #, only references into the same document are supported"),
        ({"$ref": "#/a/b", "a": {}}, "#", "cannot resolve $ref #/a/b, b not found"),
        ({"anyOf": [{"$ref": "#/anyOf/7"}]}, "#/anyOf/0", "cannot resolve $ref #/anyOf/7, 7 is out of range"),
        ({"anyOf": {}}, "#/anyOf", "must be an array of schemas"),
        ({"oneOf": []}, "#/oneOf", "must not be empty"),
        ({"allOf": []}, "#/allOf", "must not be empty"),
        ({"enum": []}, "#", "enum must be a non-empty array"),
        ({"enum": "x"}, "#", "enum must be a non-empty array"),
        ({**_OBJECT, "properties": []}, "#", "properties must be an object"),
        ({**_OBJECT, "properties": {"a": True}}, "#/properties/a", "schema must be an object"),
        ({**_OBJECT, "properties": {"a": {"type": "odd"}}}, "#/properties/a", "unrecognized type odd"),
        ({**_OBJECT, "additionalProperties": "x"}, "#", "additionalProperties must be a boolean or a schema"),
        ({"type": "array", "items": False}, "#/items", "schema must be an object"),
        ({"type": "array", "prefixItems": [{}, 1]}, "#/prefixItems/1", "schema must be an object"),
        ({"type": "array", "minItems": -1}, "#", "minItems must be a non-negative integer"),
        ({"type": "array", "maxItems": 1.5}, "#", "maxItems must be a non-negative integer"),
        ({"type": "string", "maxLength": "many"}, "#", "maxLength must be a non-negative integer"),
        ({"type": "string", "pattern": 5}, "#", "pattern must be a string"),
        ({"type": "string", "format": 5}, "#", "format must be a string"),
        ({"type": "integer", "minimum": "a"}, "#", "minimum must be a number"),
        ({"type": "integer", "exclusiveMaximum": True}, "#", "exclusiveMaximum must be a number"),
    ],
)
def test_what_is_read_and_cannot_be_is_refused_with_its_place(form: dict[str, Any], where: str, what: str) -> None:
    """Two texts: one for a schema of a completion, one where the runner's own chat was given it."""
    prefix = "Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n"
    told = {"code": 400, "message": f"{prefix}JSON schema error at {where}: {what}", "type": "invalid_request_error"}
    assert refusal(form) == told
    prefix = "Unable to generate parser for this template. Automatic parser generation failed: "
    assert refusal(form, native=True)["message"] == f"{prefix}JSON schema error at {where}: {what}"


def test_a_go_map_makes_whole_numbers_of_floats_and_sorts_the_keys() -> None:
    """So the runner's own chat takes 1.0 for a count, and finds what is wrong in another order."""
    whole = {"type": "array", "maxItems": 1.0}
    assert "maxItems must be" in refusal(whole)["message"]
    grammars.check(whole, native=True)
    twice = {"type": "object", "properties": {"z": {"type": "odd"}, "a": {"type": "odd"}}}
    assert "#/properties/z:" in refusal(twice)["message"]
    assert "#/properties/a:" in refusal(twice, native=True)["message"]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^($", "unbalanced parentheses"),
        ("^a)$", "unbalanced parentheses"),
        ("^[ab$", "unterminated character class"),
        ("^*$", "nothing to repeat"),
        ("^(+)$", "nothing to repeat"),
        ("^{2}$", "nothing to repeat"),
        ("^ab\\$", "trailing backslash"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, fault: str) -> None:
    """The runner finds out itself, and says so on either path after the same words."""
    told = f"JSON schema conversion failed:\nInvalid pattern {pattern}: {fault}"
    assert refusal({"type": "string", "pattern": pattern})["message"].endswith(told)
    assert refusal({"type": "string", "pattern": pattern}, native=True)["message"].endswith(f"failed: {told}")


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"const": {}, "type": "odd"},
        {"not": 5, "if": 5, "minimum": "a", "type": "number"},
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "^(?=a)($"},
        {"type": "string", "pattern": "^\\d+($"},
        {"type": "string", "pattern": "^a{x}($"},
        {"type": "string", "pattern": "^[A-Z]{2,3}(-[0-9]+)?$"},
        {"type": "array", "maxItems": 10**6, "minItems": 2001},
        {"type": "string", "minLength": 2000},
        {"$ref": "#/anyOf/0", "anyOf": [{"type": "string"}]},
        {"$defs": {"a": {"type": "odd"}}, "type": "string"},
        {"type": "object", "required": 5, "properties": {"a": {"type": None}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a/items", "items": {}}}},
    ],
)
def test_what_is_not_read_is_not_refused(form: dict[str, Any]) -> None:
    """Keywords beside a constant, of another type or of no kind that it knows, and patterns that it takes for any."""
    grammars.check(form)


@pytest.mark.parametrize(
    "form",
    [
        {"type": "array", "minItems": 2002},
        {"type": "string", "minLength": 2001},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_grammar_that_repeats_too_often_is_none(form: dict[str, Any]) -> None:
    """More than two thousand times, or itself without anything between."""
    assert refusal(form)["message"] == "Failed to initialize samplers: failed to parse grammar"
