"""Bodies decoded into the daemon's structs, and its words for what does not fit them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.requests import STRUCTS, Fields, read

_INTO = "json: cannot unmarshal"
_NAMES = sorted({name for struct in STRUCTS.values() for name in struct.fields})
_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*_NAMES, "function", "content", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def _refusal(struct: str, body: str) -> str:
    with pytest.raises(ApiError) as refused:
        read(struct, body.encode())
    assert refused.value.status == 400
    return refused.value.text


@pytest.mark.parametrize("struct", sorted(STRUCTS))
@pytest.mark.parametrize(("body", "value"), [("[]", "array"), ("5", "number"), ('"x"', "string"), ("true", "bool")])
def test_what_is_no_object_is_refused_with_the_structs_name(struct: str, body: str, value: str) -> None:
    """For every endpoint."""
    assert _refusal(struct, body) == f"{_INTO} {value} into Go value of type {struct}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"model":5}', f"{_INTO} number into Go struct field ChatRequest.model of type string"),
        ('{"messages":"no"}', f"{_INTO} string into Go struct field ChatRequest.messages of type []api.Message"),
        ('{"messages":["x"]}', f"{_INTO} string into Go struct field ChatRequest.messages of type api.Alias"),
        (
            '{"messages":[{"content":5}]}',
            f"{_INTO} number into Go struct field ChatRequest.messages.content of type string",
        ),
        (
            '{"messages":[{"tool_calls":[{"function":{"name":5}}]}]}',
            f"{_INTO} number into Go struct field ChatRequest.messages.tool_calls.function.name of type string",
        ),
        (
            '{"messages":[{"tool_calls":[{"function":{"arguments":"{}"}}]}]}',
            "Value looks like object, but can't find closing '}' symbol",
        ),
        ('{"messages":[{"images":["QQ==","!!"]}]}', "illegal base64 data at input byte 0"),
        (
            '{"tools":[{"function":{"name":5}}]}',
            f"{_INTO} number into Go struct field ToolFunction.tools.function.name of type string",
        ),
        ('{"tools":{}}', f"{_INTO} object into Go struct field ChatRequest.tools of type api.Tools"),
        (
            '{"options":[1]}',
            f"{_INTO} array into Go struct field ChatRequest.options of type map[string]interface {{}}",
        ),
        ('{"options":{"a":1e999}}', f"{_INTO} number 1e999 into Go struct field ChatRequest.options of type float64"),
        ('{"top_logprobs":1e3}', f"{_INTO} number 1e3 into Go struct field ChatRequest.top_logprobs of type int"),
        ('{"stream":"yes"}', f"{_INTO} string into Go struct field ChatRequest.stream of type bool"),
        ('{"keep_alive":true}', "Unsupported type: 'bool'"),
        ('{"keep_alive":"300"}', 'time: missing unit in duration "300"'),
        ('{"think":5}', 'think must be a boolean or string ("high", "medium", "low", "max", true, or false)'),
        ("", "missing request body"),
        (" ", "missing request body"),
    ],
)
def test_a_chat_request_that_does_not_fit(body: str, said: str) -> None:
    """Paths of fields are Go's, elements of lists have no number, a message reads itself under another name."""
    assert _refusal("ChatRequest", body) == said


def test_the_first_mismatch_is_told_but_one_that_reads_itself_ends_all() -> None:
    """Go goes on after a mismatch and tells the first; an error of a type's own is told at once."""
    assert "ChatRequest.model" in _refusal("ChatRequest", '{"model":5,"stream":6}')
    assert _refusal("ChatRequest", '{"model":5,"keep_alive":"x"}') == 'time: invalid duration "x"'


def test_syntax_comes_before_types() -> None:
    """A body that is cut is refused as such, whatever was wrong before the cut."""
    assert _refusal("ChatRequest", '{"model":5') == "unexpected EOF"


def test_names_go_without_case_and_unknown_fields_are_passed_over() -> None:
    """Even by the two letters that only Unicode takes for others; what follows the first value is not read."""
    body = '{"MODEL":"a","\u017ftream":false,"nobody":[1],"Messages":[{"ROLE":"USER","Content":"x","y":1}]} trailing'
    assert read("ChatRequest", body.encode()) == {
        "model": "a",
        "stream": False,
        "messages": [{"role": "user", "content": "x"}],
    }


def test_null_leaves_a_scalar_and_empties_the_rest() -> None:
    """As Go does: a string keeps what an earlier field of the name gave, a map or a pointer becomes nothing."""
    fields = Fields("ChatRequest", b'{"model":"a","model":null,"options":{"a":1},"options":null,"think":null}')
    assert fields.get("model") == "a"
    assert fields.has("options")
    assert fields.get("options") is None
    assert read("ChatRequest", b"null") == {}
    assert read("CreateRequest", b'{"files":{"a":null}}') == {"files": {"a": ""}}


def test_a_map_that_stands_twice_is_merged() -> None:
    """And a scalar that does is the last one."""
    assert read("ChatRequest", b'{"options":{"a":1},"options":{"b":2},"model":"a","model":"b"}') == {
        "model": "b",
        "options": {"a": 1, "b": 2},
    }


def test_a_value_of_any_type_is_as_deep_as_the_emulator_goes() -> None:
    """Deeper ones are refused where they would be kept, and passed over where they would not."""
    deep = "[" * 3000 + "]" * 3000
    assert read("ChatRequest", f'{{"nobody":{deep},"model":"x"}}'.encode()) == {"model": "x"}
    assert _refusal("ChatRequest", f'{{"options":{{"a":{deep}}}}}') == "exceeded max depth"


@given(st.sampled_from(sorted(STRUCTS)), st.dictionaries(st.sampled_from([*_NAMES, "x", "MODEL"]), _JUNK, max_size=5))
def test_any_object_is_taken_or_refused(struct: str, body: dict[str, Any]) -> None:
    """A field is in the result or the words of a refusal are; what was taken is taken again."""
    try:
        found = read(struct, json.dumps(body).encode())
    except ApiError as refused:
        assert refused.status == 400
        assert refused.text
        return
    assert set(found) <= set(STRUCTS[struct].fields)
    assert read(struct, json.dumps(found).encode()) == found


@given(st.text(max_size=12))
def test_base64_is_taken_or_its_broken_byte_is_told(text: str) -> None:
    """The byte lies within the text or just behind it."""
    body = json.dumps({"images": [text]}).encode()
    try:
        read("GenerateRequest", body)
    except ApiError as refused:
        place = refused.text.removeprefix("illegal base64 data at input byte ")
        assert 0 <= int(place) <= len(text.encode("utf-8", "surrogatepass"))
