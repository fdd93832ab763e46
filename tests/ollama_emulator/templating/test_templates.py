"""What the daemon makes of a template: messages or rounds, what it says of a model, and which one a format gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.recordings import CHATML, header

from ollama_emulator.go.lex import Malformed
from ollama_emulator.templating import chatformats, templates
from ollama_emulator.templating.templates import Values

_TALK = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "d",
            "parameters": {
                "type": "object",
                "required": ["at"],
                "properties": {"to": {"type": ["string", "null"]}, "at": {"type": "integer", "enum": [1, 2]}},
            },
        },
    }
]


def render(text: str, *messages: dict[str, Any], **more: Any) -> str:
    return templates.parse(text).render(Values(list(messages), **more))


def test_a_template_over_messages_gets_them_as_they_are() -> None:
    """The autodetected one of the recordings writes each message and opens the answer."""
    wanted = (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n"
        "<|im_start|>user\nthree<|im_end|>\n<|im_start|>assistant\n"
    )
    assert render(CHATML, *_TALK) == wanted


def test_neighbours_of_one_role_are_one_message_but_for_tools() -> None:
    """And all system texts together are `.System`."""
    text = "{{ .System }}|{{ range .Messages }}{{ .Role }}={{ .Content }}{{ .ToolName }};{{ end }}"
    messages = [
        {"role": "system", "content": "A"},
        {"role": "system", "content": "B"},
        {"role": "tool", "content": "x", "tool_name": "f"},
        {"role": "tool", "content": "y", "tool_name": "g"},
    ]
    assert render(text, *messages) == "A\n\nB|system=A\n\nB;tool=xf;tool=yg;"


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("{{ .System }}U:{{ .Prompt }} A:", "SU:one A:twoU:three A:"),
        ("{{ .System }}U:{{ .Prompt }} A:{{ .Response }}</s>", "SU:one A:two</s>U:three A:"),
        ("{{ if .System }}[{{ .System }}]{{ end }}{{ .Prompt }}", "[S]onetwothree"),
        ("{{ .Prompt }}{{ if .Response }}={{ .Response }}!{{ end }}.", "one=two!.three"),
    ],
)
def test_an_older_template_is_written_round_by_round(text: str, out: str) -> None:
    """The last round ends where the answer is to stand; a template without `.Response` has it at its end."""
    assert render(text, *_TALK) == out


def test_the_last_round_of_an_older_template_knows_none_of_the_daemons_functions() -> None:
    """It is another template, made of what stands before the response: a quirk that users meet as a 500."""
    with pytest.raises(Malformed, match='"json" is not a defined function'):
        render("{{ json .Prompt }}", {"role": "user", "content": "x"})
    assert render("{{ range .Messages }}{{ json .Content }}{{ end }}", {"role": "user", "content": "x"}) == '"x"'


def test_a_suffix_is_written_with_the_prompt_and_nothing_else() -> None:
    """Insertion: no messages, no system."""
    text = "{{ if .Suffix }}<PRE>{{ .Prompt }}<SUF>{{ .Suffix }}<MID>{{ else }}{{ .Prompt }}{{ end }}"
    assert templates.parse(text).render(Values(prompt="a", suffix="b")) == "<PRE>a<SUF>b<MID>"
    assert render(text, {"role": "user", "content": "c"}) == "c"


def test_tools_print_as_json_with_the_daemons_fields_in_its_order() -> None:
    """Properties by their names, empty parts left out; without tools it prints null."""
    text = "{{ .Tools }}{{ range .Messages }}{{ end }}"
    assert render(text, tools=_TOOLS) == (
        '[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object",'
        '"required":["at"],"properties":{"at":{"type":"integer","enum":[1,2]},"to":{"type":["string","null"]}}}}}]'
    )
    assert render(text) == "null"
    assert render(text, tools=[]) == "[]"


def test_a_templates_loop_over_tools_sees_their_parts() -> None:
    """Names, types and TypeScript types of properties in the order of their names."""
    text = (
        "{{ range .Messages }}{{ end }}{{ range .Tools }}{{ .Function.Name }}("
        "{{ range $n, $p := .Function.Parameters.Properties }}"
        "{{ $n }}: {{ toTypeScriptType $p }} {{ $p.Type }};{{ end }}"
        "){{ len .Function.Parameters.Required }}{{ end }}"
    )
    assert render(text, tools=_TOOLS) == "look(at: number integer;to: string | null [string null];)1"


def test_a_call_of_a_tool_is_seen_by_the_template() -> None:
    """Its arguments print as JSON with their keys sorted."""
    call = {"id": "c1", "function": {"name": "look", "arguments": {"b": 1, "a": "x"}}}
    inner = "{{ range .ToolCalls }}{{ .ID }} {{ .Function.Name }} {{ .Function.Arguments }}{{ end }}"
    text = "{{ range .Messages }}" + inner + "{{ end }}"
    assert render(text, {"role": "assistant", "tool_calls": [call]}) == 'c1 look {"a":"x","b":1}'


def test_thinking_is_told_in_three_names() -> None:
    """Whether, how much, and whether anybody said so."""
    text = "{{ .Think }} {{ .ThinkLevel }} {{ .IsThinkSet }}{{ range .Messages }}{{ end }}"
    assert render(text, think=True, level="high", think_set=True) == "true high true"
    assert render(text) == "false  false"


def test_a_call_of_a_template_without_a_value_is_refused() -> None:
    """The daemon looks for names in it and finds none."""
    assert templates.fault('{{ define "a" }}{{ end }}{{ template "a" }}') == "undefined template specified"
    assert templates.fault("{{ .Nope") == "template: :1: unclosed action"
    assert templates.fault("{{ .Prompt }}") == templates.fault("") == ""


def test_a_templates_names_tell_what_a_model_can() -> None:
    """Tools, insertion, and thinking where its tags stand around `.Thinking` in the loop over messages."""
    thinks = "{{ range .Messages }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ end }}"
    assert templates.parse(thinks).tags == ("<think>", "</think>")
    assert templates.capabilities(thinks) == ["thinking"]
    assert templates.capabilities("{{ .Suffix }}{{ .Tools }}") == ["tools", "insert"]
    assert templates.capabilities("{{ .Tool") == []
    assert templates.chat_capabilities("{{ tools }}{{ '<think>' }}{{ '</think>' }}") == ["tools", "thinking"]
    assert templates.chat_capabilities("{{ messages }}") == []


@pytest.mark.parametrize(
    ("own", "chat", "rendered"),
    [
        ("", "{{ messages }}", False),
        (CHATML, "", True),
        (CHATML, "{{ messages }}", True),
        (CHATML, "{{ tools }}{{ messages }}", False),
        ("{{ .Tools }}{{ .Messages }}", "{{ tools }}", True),
        ("{{ .Tools }}{{ .Messages }}", "{{ tools }}{{ m.tool_calls }} tool_response", False),
        (
            '{{ .Tools }}{{ range .Messages }}{{ .ToolCalls }}{{ if eq .Role "tool" }}{{ end }}{{ end }}',
            "{{ tools }}",
            True,
        ),
    ],
)
def test_the_weights_own_template_is_preferred_where_it_can_more(own: str, chat: str, rendered: bool) -> None:
    """Then the runner writes the prompt, though the model has a TEMPLATE."""
    assert templates.renders(own, chat) is rendered


def test_a_chat_template_near_to_a_known_one_gets_its_go_template() -> None:
    """The recorded bases: a short one is taken for chatml with its stops, a long one of its own for nothing."""
    found = templates.detect(header("tiny-a")["tokenizer.chat_template"])
    assert found == ("chatml", CHATML, {"stop": ["<|im_start|>", "<|im_end|>"]})
    assert templates.detect(header("tiny-b")["tokenizer.chat_template"]) is None
    assert templates.detect("") is None


@pytest.mark.parametrize("known", chatformats.FORMATS, ids=lambda known: known.name)
def test_every_known_format_is_itself_and_its_template_is_good(known: chatformats.Format) -> None:
    """Its own texts are taken for it, with a typo too; its Go template writes a conversation."""
    for text in known.texts:
        assert chatformats.nearest(text) is known
        assert chatformats.nearest(text.replace("messages", "mesages", 1)) is known
    written = render(known.template, *_TALK)
    assert [written.find(text) > -1 for text in ("S", "one", "two", "three")] == [True] * 4


@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_the_distance_is_levenshteins(one: str, two: str) -> None:
    """Against the plain recursion, within the limit and at it."""

    def edits(left: str, right: str) -> int:
        row = [*range(len(right) + 1)]
        for at, letter in enumerate(left, 1):
            new = [at]
            for column, other in enumerate(right, 1):
                new.append(min(row[column - 1] + (letter != other), row[column] + 1, new[-1] + 1))
            row = new
        return int(row[-1])

    assert chatformats.distance(one, two, 100) == edits(one, two)
    assert chatformats.distance(one, two, 3) == min(3, edits(one, two))
