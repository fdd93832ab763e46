"""Schemas and their instances: always valid, always the same, always drawn from the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.ollama_emulator.clients import CHAT_MODEL, Client

from ollama_emulator.schemas import compiled_schema
from ollama_emulator.schemas.instances import Drawing
from ollama_emulator.speech.sources import gather

HARBOUR = (
    '<document id="3" name="harbour.txt" digest="ab12">\n'
    "The harbour of Lindow was built in 1874 by Ada Thorne. Its breakwater is 320 metres long.\n"
    "The lamp was replaced in 1931, after the storm.\n"
    "</document ab12>\n"
)
ORCHARD = (
    '<document id="7" name="orchard.txt" digest="cd34">\nThe orchard grows quince and medlar. Nobody prunes it.\n'
    "</document cd34>\n"
)


def draw(wanted: Any, *texts: str, sorted_keys: bool = False) -> Any:
    messages = [{"role": "user", "content": text} for text in texts or ("What is water?",)]
    root = wanted if isinstance(wanted, dict) else {}
    return Drawing(root, gather(messages, ("model", json.dumps(wanted))), sorted_keys).draw(wanted)


def valid(value: Any, wanted: Any) -> bool:
    """An opinion on validity that shares nothing with the emulator's."""
    if "const" in wanted or "enum" in wanted:
        allowed = wanted.get("enum", [wanted.get("const")])
        return any(value == item and type(value) is type(item) for item in allowed)
    if "anyOf" in wanted:
        return any(valid(value, part) for part in wanted["anyOf"])
    if "oneOf" in wanted:
        return sum(valid(value, part) for part in wanted["oneOf"]) == 1
    return _VALID[wanted["type"]](value, wanted)


def _valid_object(value: Any, wanted: Any) -> bool:
    if not isinstance(value, dict) or any(name not in value for name in wanted["required"]):
        return False
    return all(valid(item, wanted["properties"][name]) for name, item in value.items())


def _valid_array(value: Any, wanted: Any) -> bool:
    sized = isinstance(value, list) and wanted.get("minItems", 0) <= len(value) <= wanted.get("maxItems", len(value))
    return sized and all(valid(one, wanted["items"]) for one in value)


def _valid_string(value: Any, wanted: Any) -> bool:
    if not isinstance(value, str):
        return False
    sized = wanted.get("minLength", 0) <= len(value) <= wanted.get("maxLength", len(value))
    return sized and bool(re.search(wanted.get("pattern", ""), value))


def _valid_number(value: Any, wanted: Any) -> bool:
    right = type(value) is int or (wanted["type"] == "number" and type(value) is float)
    return right and bool(wanted.get("minimum", value) <= value <= wanted.get("maximum", value))


_VALID: dict[str, Callable[[Any, Any], bool]] = {
    "object": _valid_object,
    "array": _valid_array,
    "string": _valid_string,
    "integer": _valid_number,
    "number": _valid_number,
    "boolean": lambda value, wanted: isinstance(value, bool),
    "null": lambda value, wanted: value is None,
}


_NAMES = st.sampled_from(
    "a_answer b_quote c_document query text unanswered score b_source is_stale name z_query items d_partial".split()
)
_PATTERNS = st.sampled_from(
    [
        r"^[a-z]{2,5}$",
        r"^\d{4}-\d{2}$",
        r"^(yes|no)$",
        r"^[A-Z][a-z]+$",
        r"^#[0-9a-f]{6}$",
        r"^\w+_facet_$",
        r"^a?b*c+$",
    ]
)


@st.composite
def _strings(draws: st.DrawFn) -> dict[str, Any]:
    low = draws(st.integers(0, 40))
    made: dict[str, Any] = {"type": "string"}
    if draws(st.booleans()):
        made["minLength"] = low
    if draws(st.booleans()):
        made["maxLength"] = low + draws(st.integers(0, 200))
    return made


@st.composite
def _numbers(draws: st.DrawFn) -> dict[str, Any]:
    low = draws(st.integers(-1000, 1000))
    made: dict[str, Any] = {"type": draws(st.sampled_from(["integer", "number"]))}
    if draws(st.booleans()):
        made["minimum"] = low
    if draws(st.booleans()):
        made["maximum"] = low + draws(st.integers(0, 50))
    return made


def _larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def arrays(draws: st.DrawFn) -> dict[str, Any]:
        low = draws(st.integers(0, 4))
        made: dict[str, Any] = {"type": "array", "items": draws(inner), "minItems": low}
        if draws(st.booleans()):
            made["maxItems"] = low + draws(st.integers(0, 3))
        return made

    @st.composite
    def objects(draws: st.DrawFn) -> dict[str, Any]:
        properties = draws(st.dictionaries(_NAMES, inner, max_size=5))
        required = [name for name in properties if draws(st.booleans())]
        return {"type": "object", "properties": properties, "required": required}

    choices = st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    tagged = st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True).map(
        lambda tags: {"oneOf": [{"const": tag} for tag in tags]}
    )
    return st.one_of(arrays(), objects(), choices, tagged)


_LEAVES = st.one_of(
    _strings(),
    _numbers(),
    _PATTERNS.map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"const": 4}, {"enum": ["a", "b", 3, None, True]}]),
)
SCHEMAS = st.recursive(_LEAVES, _larger, max_leaves=12)


@given(SCHEMAS, st.text(max_size=300), st.booleans())
def test_an_instance_is_valid(wanted: dict[str, Any], text: str, evidence: bool) -> None:
    """Whatever the schema of supported keywords and the prompt, the instance is valid, also in the emulator's eye."""
    drawn = draw(wanted, *((HARBOUR, text) if evidence else (text,)))
    assert valid(drawn, wanted), drawn
    assert compiled_schema.fits(drawn, wanted, wanted)


@given(SCHEMAS)
def test_the_same_question_gives_the_same_instance(wanted: dict[str, Any]) -> None:
    """Nothing but model, messages, schema and seed decides."""
    assert draw(wanted, HARBOUR, "How long?") == draw(wanted, HARBOUR, "How long?")


CITED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a_quote": {"type": "string", "maxLength": 60},
        "b_document": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["a_quote", "b_document"],
}


def test_a_quote_is_a_verbatim_span_of_the_block_that_is_named_beside_it() -> None:
    """The nearest sentence to the question, from the right one of two documents, on one line."""
    drawn = draw(CITED, HARBOUR + ORCHARD, "Who prunes the orchard, and what grows there?")
    assert drawn["b_document"] == 7
    assert drawn["a_quote"] in ORCHARD
    assert "\n" not in drawn["a_quote"]


@given(st.integers(1, 80))
def test_a_quote_is_cut_to_its_length_and_stays_verbatim(longest: int) -> None:
    """A bound on the quote never makes it anything else than a span."""
    wanted = {**CITED, "properties": {**CITED["properties"], "a_quote": {"type": "string", "maxLength": longest}}}
    drawn = draw(wanted, HARBOUR, "How long is the breakwater?")
    assert len(drawn["a_quote"]) <= longest
    assert drawn["a_quote"] in HARBOUR


def test_quotes_of_one_list_differ() -> None:
    """A list of citations cites different sentences."""
    wanted = {"type": "array", "items": CITED, "minItems": 3, "maxItems": 3}
    drawn = draw(wanted, HARBOUR, "When was the harbour built?")
    assert len({item["a_quote"] for item in drawn}) == 3


def test_nothing_is_cited_where_there_is_no_evidence() -> None:
    """A list of citations is empty when the schema lets it be."""
    assert draw({"type": "array", "items": CITED, "maxItems": 3}, "When was it built?") == []


def test_an_answer_uses_only_words_of_the_prompt_and_says_what_it_is() -> None:
    """Numbers and names of an answer occur in the evidence; the notice comes first."""
    drawn = draw({"type": "object", "properties": {"a_answer": {"type": "string"}}, "required": ["a_answer"]}, HARBOUR)
    notice, _, said = drawn["a_answer"].partition("] ")
    assert notice == "[emulator, not a model"
    assert set(re.findall(r"\w+", said)) <= set(re.findall(r"\w+", HARBOUR))


def test_lists_of_what_is_missing_are_empty() -> None:
    """Nothing is reported as unanswered that the schema does not ask for."""
    assert draw({"type": "object", "properties": {"unanswered": {"type": "array", "items": {"type": "string"}}},
                 "required": ["unanswered"]}) == {"unanswered": []}  # fmt: skip


def test_items_of_a_list_take_the_values_of_an_enum_in_turn() -> None:
    """A list of one object a pillar names each pillar once."""
    wanted = {"type": "array", "minItems": 3, "maxItems": 3, "items": {"enum": ["sage", "still", "spark"]}}
    assert sorted(draw(wanted)) == ["sage", "spark", "still"]


def test_keys_are_sorted_only_where_a_map_carried_the_schema() -> None:
    """A native model gets its schema alphabetically, a rendered one as it was sent."""
    wanted = {
        "type": "object",
        "properties": {"z": {"type": "boolean"}, "a": {"type": "boolean"}},
        "required": ["z", "a"],
    }
    assert list(draw(wanted)) == ["z", "a"]
    assert list(draw(wanted, sorted_keys=True)) == ["a", "z"]


def test_an_optional_property_is_left_out() -> None:
    """As with the recorded daemon, which never emitted one."""
    assert draw({"type": "object", "properties": {"opt": {"type": "string"}}, "required": []}) == {}


def test_references_are_followed_and_recursion_ends() -> None:
    """A tree that may nest for ever is drawn to its end."""
    tree = {
        "$defs": {"node": {"type": "object", "properties": {"text": {"type": "string"}, "kids": {"type": "array",
                  "items": {"$ref": "#/$defs/node"}}}, "required": ["text", "kids"]}},
        "$ref": "#/$defs/node",
    }  # fmt: skip
    assert compiled_schema.fits(draw(tree), tree, tree)


_DOUBLED: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(24)}
_DEEP: dict[str, Any] = {"type": "string"}
for _ in range(300):
    _DEEP = {"type": "array", "items": _DEEP, "minItems": 1}


@pytest.mark.parametrize(
    "form",
    [
        {"type": "string", "minLength": 10**9},
        {"type": "array", "minItems": 10**7, "items": {"type": "integer"}},
        {"type": "array", "minItems": 500, "items": {"type": "array", "minItems": 500, "items": {"type": "integer"}}},
        {"type": "array", "minItems": 500, "items": {"type": "string", "minLength": 5000}},
        {"type": "object", "properties": {key: {"$ref": "#"} for key in "abc"}, "required": list("abc")},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#/$defs/d0", "$defs": {**_DOUBLED, "d24": {"type": "string"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"type": "string", "pattern": "^(((a{999}){999}){999})$"},
        {"type": "object", "properties": 5, "required": 5},
        {"type": "string", "minLength": "many"},
        _DEEP,
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_schemas_without_bounds_are_refused(client: Client, form: dict[str, Any], stream: bool) -> None:
    """A schema whose instances are too large, too deep or none is a 400 with a text, and the loop is not held."""
    body = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": stream, "format": form}
    reply = await client.http.post("/api/chat", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert (await client.http.get("/")).status_code == 200


def test_numbers_near_the_end_of_all_numbers_are_numbers() -> None:
    """Infinity is no JSON."""
    wanted = {"type": "number", "minimum": 1e308, "maximum": 1.7e308}
    assert valid(draw(wanted), wanted)
    assert draw({"type": "number", "minimum": -1.7e308, "maximum": 1.7e308}) == -1.7e308


def test_a_pattern_of_megabytes_is_any_string() -> None:
    """It is not read: that would take longer than anybody waits."""
    assert isinstance(draw({"type": "string", "pattern": "a" * 5_000_000}), str)
