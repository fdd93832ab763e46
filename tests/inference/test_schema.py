"""Decisions: what is compiled for the daemon, what is refused, and how replies are read."""

from __future__ import annotations

import json
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model
from tests.inference.raw_server import exchanges

from batos.inference.schema import REPEAT_LIMIT, Decision, ordered_keys
from batos.protocol.errors import DecisionInvalid, SchemaError


class Mood(Enum):
    """Choices by class."""

    CALM = "calm"
    WILD = "wild"


class Source(BaseModel):
    """A nested part."""

    quote: Annotated[str, Field(max_length=40)]
    document: Annotated[int, Field(ge=1, le=99)]


class Verdict(BaseModel):
    """A decision with everything that is permitted."""

    why: Annotated[str, Field(max_length=100, description="The reason.")]
    answer: Annotated[str, Field(min_length=1, max_length=900)] | None
    sources: Annotated[list[Source], Field(min_length=1, max_length=3)]
    kind: Literal["x", "y"]
    mood: Mood = Mood.CALM
    score: Annotated[int, Field(gt=0, lt=10)] = 5
    weight: float
    sure: bool
    code: Annotated[str, Field(pattern=r"^[a-z]{2}-[0-9]{1,3}$")]
    at: datetime
    only: Literal["this"]


GOOD = {
    "a_why": "because",
    "b_answer": None,
    "c_sources": [{"a_quote": "q", "b_document": 3}],
    "d_kind": "x",
    "e_mood": "wild",
    "f_score": 7,
    "g_weight": 0.5,
    "h_sure": True,
    "i_code": "ab-12",
    "j_at": "2026-01-31T09:30:00Z",
    "k_only": "this",
}


def _field(annotation: Any) -> type[BaseModel]:
    made: type[BaseModel] = create_model("Made", field=(annotation, ...))
    return made


def test_the_whole_format() -> None:
    """Everything required, in declared order that is alphabetical, bounded, references inlined, prose left out."""
    compiled = Decision(Verdict).format
    properties = compiled["properties"]
    assert list(properties) == compiled["required"] == sorted(properties) == list(GOOD)
    assert properties["a_why"] == {"type": "string", "maxLength": 100}
    assert properties["b_answer"] == {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 900}, {"type": "null"}]}
    assert properties["c_sources"] == {
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "items": {
            "type": "object",
            "properties": {
                "a_quote": {"type": "string", "maxLength": 40},
                "b_document": {"type": "integer", "minimum": 1, "maximum": 99},
            },
            "required": ["a_quote", "b_document"],
        },
    }
    assert properties["d_kind"] == {"type": "string", "enum": ["x", "y"]}
    assert properties["f_score"] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert properties["i_code"] == {"type": "string", "pattern": "^[a-z]{2}-[0-9]{1,3}$"}
    assert properties["k_only"] == {"type": "string", "enum": ["this"]}
    assert "$" not in json.dumps(compiled).replace('$"', "")


def test_a_reply_comes_back_as_the_model() -> None:
    """The daemon's keys are mapped back, nested ones too."""
    verdict = Decision(Verdict).parse(json.dumps(GOOD))
    assert verdict.sources == [Source(quote="q", document=3)]
    assert (verdict.mood, verdict.score, verdict.answer, verdict.code) == (Mood.WILD, 7, None, "ab-12")


def test_keys_are_renamed_only_where_they_must_be() -> None:
    """Alphabetical order as declared keeps the names; the daemon sorts by code point, capitals first."""
    assert ordered_keys(["answer", "citations", "known"]) == {n: n for n in ("answer", "citations", "known")}
    assert ordered_keys(["why", "answer"]) == {"why": "a_why", "answer": "b_answer"}
    assert ordered_keys(["a", "B"])["a"] == "a_a"
    many = ordered_keys([f"f{n}" for n in range(40, 0, -1)])
    assert list(many.values()) == sorted(many.values())
    assert len(set(many.values())) == 40


@given(names=st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=60))
def test_keys_are_always_in_order(names: list[str]) -> None:
    """For any names the daemon's order is the declared one, and no two are the same."""
    keys = ordered_keys(names)
    assert list(keys) == names
    assert list(keys.values()) == sorted(set(keys.values()), key=lambda key: key.encode())


class _Recursive(BaseModel):
    inner: Annotated[list[_Recursive], Field(max_length=2)]


class _One(BaseModel):
    b: bool
    a: bool


class _Other(BaseModel):
    a_b: bool
    b_a: bool


REFUSED: dict[str, tuple[Any, str]] = {
    "text without a bound": (str, "max_length"),
    "a list without a bound": (list[bool], "max_length"),
    "a list of anything": (Annotated[list[Any], Field(max_length=2)], "anything at all"),
    "anything": (Any, "anything at all"),
    "a set": (Annotated[set[bool], Field(max_length=2)], "uniqueItems"),
    "a dict": (dict[str, int], "dict"),
    "a tuple": (tuple[int, int], "prefixItems"),
    "a step": (Annotated[int, Field(multiple_of=5)], "multipleOf"),
    "a bound on a number": (Annotated[float, Field(ge=0)], "minimum"),
    "an upper bound on a number": (Annotated[float, Field(lt=1)], "exclusiveMaximum"),
    "a pattern that is not anchored": (Annotated[str, Field(pattern="[a-z]")], "anchored"),
    "a pattern with a length": (Annotated[str, Field(pattern="^[a-z]{3}$", max_length=3)], "beside a pattern"),
    "a pattern without end": (Annotated[str, Field(pattern="^[a-z]+$")], "not enforced from"),
    "a pattern with a group": (Annotated[str, Field(pattern="^(ab){2}$")], "not enforced from"),
    "a pattern with a shorthand": (Annotated[str, Field(pattern=r"^\d{2}$")], "not enforced from"),
    "a pattern of everything": (Annotated[str, Field(pattern="^.{2}$")], "not enforced from"),
    "a pattern with quotation marks": (Annotated[str, Field(pattern="^[ -~]{2}$")], "quotation mark"),
    "a pattern that is too wide": (Annotated[str, Field(pattern="^[a-z]{2000}$")], "refused by the daemon"),
    "text that is too long": (Annotated[str, Field(max_length=REPEAT_LIMIT + 1)], "refused by the daemon"),
    "a list that is too long": (Annotated[list[bool], Field(max_length=REPEAT_LIMIT + 1)], "refused by the daemon"),
    "a length of time": (Annotated[str, Field(max_length=9, json_schema_extra={"format": "duration"})], "format"),
    "not": (Annotated[bool, Field(json_schema_extra={"not": {"const": True}})], "`not`"),
    "if": (Annotated[bool, Field(json_schema_extra={"if": {"const": True}})], "`if`"),
    "fewest keys": (Annotated[Source, Field(json_schema_extra={"minProperties": 1})], "minProperties"),
    "itself": (_Recursive, "contains itself"),
    "an empty object": (create_model("Empty"), "decides nothing"),
    "forms that look alike": (_One | _Other, "told apart"),
    "a fraction to choose": (Annotated[float, Field(json_schema_extra={"enum": [0.5]})], "choose from"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_decoration_is_refused(name: str) -> None:
    """What the daemon would accept and not enforce is refused when the model is compiled, naming field and reason."""
    annotation, reason = REFUSED[name]
    with pytest.raises(SchemaError) as refused:
        Decision(_field(annotation))
    assert reason in refused.value.message
    assert (refused.value.field or "").startswith("Made.field")


def test_a_closed_model_compiles_to_the_same() -> None:
    """extra="forbid" is what the grammar does anyway."""

    class ClosedModel(BaseModel):
        model_config = ConfigDict(extra="forbid")
        sure: bool

    assert Decision(ClosedModel).format == {
        "type": "object",
        "properties": {"sure": {"type": "boolean"}},
        "required": ["sure"],
    }


def test_forms_are_told_apart_by_their_keys() -> None:
    """A union of models is mapped back by the form whose keys came."""

    class Call(BaseModel):
        tool: Annotated[str, Field(max_length=9)]
        argument: Annotated[str, Field(max_length=9)]

    class Say(BaseModel):
        text: Annotated[str, Field(max_length=9)]

    decision = Decision(_field(Call | Say))
    parsed: Any = decision.parse('{"field": {"a_tool": "t", "b_argument": "x"}}')
    assert parsed.field == Call(tool="t", argument="x")
    parsed = decision.parse('{"field": {"text": "hello"}}')
    assert parsed.field == Say(text="hello")
    with pytest.raises(DecisionInvalid):
        decision.parse('{"field": {"a_tool": "t"}}')


def _changed(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


WRONG = [
    ("", "empty"),
    ("  \n", "empty"),
    ('{"a_why": "bec', "stops in the middle"),
    ('{"a_why"', "stops in the middle"),
    ("Sure! {}", "character 0"),
    ("```json\n{}\n```", "character 0"),
    (json.dumps(GOOD) + " and more", "Extra data"),
    ("[]", "an object is wanted"),
    ("null", "an object is wanted"),
    ('{"a_why": "x", "a_why": "y"}', "given twice"),
    (_changed(g_weight=float("nan")), "NaN"),
    (_changed(extra=1), "'extra' is not wanted"),
    (json.dumps({key: value for key, value in GOOD.items() if key != "d_kind"}), "'d_kind' is missing"),
    (_changed(c_sources=[{"a_quote": "q", "b_document": 300}]), "c_sources[0].b_document"),
    (_changed(c_sources=[{"a_quote": "q"}]), "c_sources[0]"),
    (_changed(c_sources={}), "a list is wanted"),
    (_changed(c_sources=[]), "c_sources"),
    (_changed(d_kind="z"), "d_kind"),
    (_changed(a_why="x" * 101), "a_why"),
    (_changed(b_answer=""), "String should have at least 1"),
    ("[" * 100_000, "no valid JSON"),
    ("1" * 5000, "no valid JSON"),
    ('{"a_why": "\\ud800"' + json.dumps(GOOD)[len('{"a_why": "because"') :], "a_why"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_said_in_the_daemons_words(text: str, said: str) -> None:
    """Nothing is stripped, guessed or overlooked; the message names the key as the model wrote it."""
    with pytest.raises(DecisionInvalid) as invalid:
        Decision(Verdict).parse(text)
    assert said in invalid.value.message
    assert invalid.value.message.startswith("The reply is not valid: ")


@given(
    text=st.text(max_size=80)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(GOOD)), inner, max_size=11),
    ).map(json.dumps)
)
def test_any_text_is_a_decision_or_invalid(text: str) -> None:
    """No text raises anything else."""
    try:
        Decision(Verdict).parse(text)
    except DecisionInvalid as invalid:
        assert invalid.retry is False


def test_reasoning_comes_first() -> None:
    """Mode reason_field puts a bounded text before everything, by order and by alphabet, and keeps it apart."""
    plain = Decision(Verdict)
    reasoned = plain.in_mode("reason_field")
    keys = list(reasoned.format["properties"])
    assert keys == sorted(keys)
    assert keys[:2] == ["a_reasoning", "b_why"]
    assert reasoned.format["properties"]["a_reasoning"]["maxLength"] == 600
    assert reasoned.num_predict > plain.num_predict
    assert reasoned.in_mode("reason_field") is reasoned
    assert plain.in_mode("two_phase").format == plain.format
    text = json.dumps({"a_reasoning": "so", **{f"{chr(ord(k[0]) + 1)}{k[1:]}": v for k, v in GOOD.items()}})
    assert reasoned.parse(text) == plain.parse(json.dumps(GOOD))
    assert reasoned.reasoning(text) == "so"
    assert plain.reasoning(json.dumps(GOOD)) == ""


def test_reasoning_may_stay_unprefixed() -> None:
    """Where `reasoning` sorts before the fields, nothing is renamed."""
    decision = Decision(create_model("Made", sure=(bool, ...)), mode="reason_field")
    assert list(decision.format["properties"]) == ["reasoning", "sure"]


def test_modes_that_are_none() -> None:
    """An unknown mode, and a field that mode reason_field needs for itself, are refused."""
    wrong: Any = "loud"
    with pytest.raises(SchemaError):
        Decision(Verdict, mode=wrong)
    with pytest.raises(SchemaError):
        Decision(create_model("Made", reasoning=(bool, ...)), mode="reason_field")


def test_the_bound_in_tokens() -> None:
    """num_predict is the documented sum: worked by hand for one text and one list."""
    one = Decision(_field(Annotated[str, Field(max_length=100)]))
    assert one.num_predict == 16 + 2 + (2 + 5) + (40 + 2)
    many = Decision(_field(Annotated[list[Annotated[int, Field(ge=1, le=9)]], Field(max_length=4)]))
    assert many.num_predict == 16 + 2 + (2 + 5) + 2 + 4 * (1 + 1 + 2)


def test_the_largest_reply_fits_its_bound() -> None:
    """Text as models write it, at every bound, stays within num_predict at three characters a token."""
    largest = {**GOOD, "a_why": "w " * 50, "b_answer": "answer. " * 112, "c_sources": [GOOD["c_sources"][0]] * 3}  # type: ignore[index]
    assert len(json.dumps(largest)) / 3 < Decision(Verdict).num_predict


def test_the_guide_says_in_prose_what_the_grammar_holds() -> None:
    """A line for each key of the daemon, with the field's description and its bound, and no JSON to imitate."""
    guide = Decision(Verdict).guide.splitlines()
    assert guide[0] == "`a_why`: The reason. (text, at most 100 characters)"
    assert len(guide) == len(GOOD)
    assert "{" not in "".join(line for line in guide if "i_code" not in line)
    assert Decision(Verdict).key("answer") == "b_answer"


def test_recorded_schemas_compile_back() -> None:
    """A schema that a real daemon enforced has the form that we compile to, and its reply is valid under it."""
    exchange = exchanges()[239]

    class VerdictModel(BaseModel):
        verdict: Literal["yes", "no"]
        score: Annotated[int, Field(ge=0, le=9)]

    ours = Decision(VerdictModel).format
    theirs = exchange["request"]["json"]["format"]
    assert list(ours["properties"].values()) == list(theirs["properties"].values())
    reply = json.loads(exchange["response"]["text"])["message"]["content"]
    renamed = reply.replace("verdict", "a_verdict").replace("score", "b_score")
    assert Decision(VerdictModel).parse(renamed) == VerdictModel(verdict="yes", score=5)
