"""Go's text/template: what its parser refuses, what execution gives, and that nothing else ever comes of a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollama_emulator.go import parse as goparse
from ollama_emulator.go import template_functions as gofuncs
from ollama_emulator.go.execute import STEPS, Failed, TemplateRun
from ollama_emulator.go.go_values import Items, JsonMap, OrderedMap, Rows, StructValue, Types, format_value, marshal
from ollama_emulator.go.lex import Lexer, Malformed, quote
from ollama_emulator.go.tree import TextNode

_PIECES = [
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{ .A }}",
    "{{ range .L }}",
    "{{ if .A }}",
    "{{ else }}",
    "{{ end }}",
    "{{ with .M }}",
]
_PIECES += [
    " ",
    "\n",
    "text",
    '"',
    "`",
    "'",
    "(",
    ")",
    "|",
    "$x",
    ":=",
    "=",
    ",",
    ".A",
    ".",
    "1.5",
    "nil",
    "/*",
    "*/",
    "é",
]
_PIECES += [
    "printf",
    "eq",
    "and",
    "define",
    "template",
    "block",
    "break",
    "continue",
    "len",
    "index",
    "slice",
    "@",
    "\x00",
]
_DATA: dict[str, Any] = {
    "A": "a",
    "N": 3,
    "F": 1.5,
    "B": True,
    "L": ["x", "y", "z"],
    "M": {"k": "v", "a": 1.0},
    "S": StructValue("*api.Thing", {"Name": "n", "Size": 2}, {}),
    "Empty": [],
}


def rendered(text: str, **more: Any) -> str:
    """What a template writes over the data."""
    tree = goparse.parse(text)
    return TemplateRun(tree, {**_DATA, **more}).text(tree.root)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{{ .Nope", ":1: unclosed action"),
        ("{{\n\n.A", ":3: unclosed action started at :1"),
        ("a\n{{ }}", ":2: missing value for command"),
        ("{{ if }}{{ end }}", ":1: missing value for if"),
        ("{{ if .A }}", ":1: unexpected EOF"),
        ("{{ end }}", ":1: unexpected {{end}}"),
        ("{{ else }}", ":1: unexpected {{else}}"),
        ("{{ if .A }}{{ else }}{{ else }}{{ end }}", ":1: expected end; found {{else}}"),
        ("{{ nope .A }}", ':1: function "nope" not defined'),
        ("{{ $x }}", ':1: undefined variable "$x"'),
        ("{{ .A | 3 }}", ":1: non executable command in pipeline stage 2"),
        ('{{ "a }}', ":1: unterminated quoted string"),
        ("{{ `a }}", ":1: unterminated raw quoted string"),
        ("{{ 'a }}", ":1: unterminated character constant"),
        ("{{ (.A }}", ":1: unclosed left paren"),
        ("{{ .A) }}", ":1: unexpected right paren"),
        ("{{/* a", ":1: unclosed comment"),
        ("{{/* a */ b }}", ":1: comment ends before closing delimiter"),
        ("{{ .A : 1 }}", ":1: expected :="),
        ("{{ .A@ }}", ":1: bad character U+0040 '@'"),
        ("{{ é\x01 }}", ":1: bad character U+0001"),
        ("{{ ‽ }}", ":1: unrecognized character in action: U+203D '‽'"),
        ("{{ 1a }}", ':1: bad number syntax: "1a"'),
        ("{{ 1.A }}", ':1: bad number syntax: "1.A"'),
        ('{{ "a".B }}', ':1: unexpected . after term "\\"a\\""'),
        ("{{ break }}", ":1: {{break}} outside {{range}}"),
        ("{{ range $a, $b, $c := .L }}{{ end }}", ":1: too many declarations in range"),
        ("{{ range $a, 3 := .L }}{{ end }}", ":1: range can only initialize variables"),
        ("{{ $a, $b := .L }}", ":1: too many declarations in command"),
        ('{{ define "a" }}', ":1: unexpected EOF"),
        ("{{ define a }}{{ end }}", ':1: unexpected "a" in define clause'),
        ('{{define "a"}}x{{end}}{{define "a"}}y{{end}}', ':1: template: multiple definition of template "a"'),
        ("{{ if .A }}{{ define }}{{ end }}", ":1: unexpected <define> in command"),
        ("{{ template .A }}", ':1: unexpected ".A" in template clause'),
        ("{{ .A ? }}", ':1: unexpected "?" in operand'),
        ("{{ end .A }}", ':1: unexpected ".A" in end'),
        ("{{ " + "(" * 200 + ".A", ":1: max expression depth exceeded"),
    ],
)
def test_a_malformed_template_is_refused_in_gos_words(text: str, wrong: str) -> None:
    """With the line of the token that was read last."""
    with pytest.raises(Malformed) as caught:
        goparse.parse(text)
    assert str(caught.value) == f"template: {wrong}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{{ .S.Nope }}", ':1:5: executing "" at <.S.Nope>: can\'t evaluate field Nope in type *api.Thing'),
        ("\n {{ .A.B }}", ':2:6: executing "" at <.A.B>: can\'t evaluate field B in type string'),
        ("{{ .No.B }}", ':1:6: executing "" at <.No.B>: nil pointer evaluating interface {}.B'),
        ("{{ range .N.X }}{{ end }}", ':1:11: executing "" at <.N.X>: can\'t evaluate field X in type int'),
        ("{{ range .A }}{{ end }}", ':1:3: executing "" at <{{range .A}}{{end}}>: range can\'t iterate over a'),
        ("{{ nil }}", ':1:3: executing "" at <nil>: nil is not a command'),
        ("{{ 3 4 }}", ':1:3: executing "" at <3>: can\'t give argument to non-function 3'),
        ("{{ .A 4 }}", ':1:3: executing "" at <.A>: A has arguments but cannot be invoked as function'),
        ("{{ len 3 }}", ':1:3: executing "" at <len 3>: error calling len: len of type int'),
        ("{{ not }}", ':1:3: executing "" at <not>: wrong number of args for not: want 1 got 0'),
        ("{{ eq }}", ':1:3: executing "" at <eq>: wrong number of args for eq: want at least 1 got 0'),
        ('{{ eq 1 "a" }}', ':1:3: executing "" at <eq 1 "a">: error calling eq: incompatible types for comparison'),
        ("{{ lt true false }}", ':1:3: executing "" at <lt true false>: error calling lt: invalid type for comparison'),
        ("{{ index .L 9 }}", ':1:3: executing "" at <index .L 9>: error calling index: index out of range: 9'),
        ("{{ printf 3 }}", ':1:3: executing "" at <printf>: wrong type for value; expected string; got int'),
        ('{{ template "x" . }}', ':1:12: executing "" at <{{template "x" .}}>: template "x" not defined'),
        ("{{ slice .A 2 1 }}", ':1:3: executing "" at <slice .A 2 1>: error calling slice: index out of range: 2'),
    ],
)
def test_what_fails_while_a_template_runs_is_told_in_gos_words(text: str, wrong: str) -> None:
    """With the line and the column in bytes, and the node as Go writes it."""
    with pytest.raises(Failed) as caught:
        rendered(text)
    assert str(caught.value) == f"template: {wrong}"


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("a{{/* no */}}b", "ab"),
        ("a {{- /* no */ -}} b", "ab"),
        ("a  {{- .A -}}  b", "aab"),
        ("{{ .A -}}\n\n b{{- .N }}", "ab3"),
        ("{{ .Missing }}", "<no value>"),
        ("{{ if .Missing }}x{{ else if .B }}y{{ else }}z{{ end }}", "y"),
        ("{{ if and .A .B }}x{{ end }}{{ or .Empty .A }}{{ and .Empty .A }}", "xa[]"),
        ("{{ with .M }}{{ .k }}{{ end }}{{ with .Empty }}x{{ else with .A }}{{ . }}{{ end }}", "va"),
        ("{{ range .L }}{{ . }},{{ end }}", "x,y,z,"),
        ("{{ range $i, $v := .L }}{{ $i }}{{ $v }}{{ end }}", "0x1y2z"),
        ("{{ range $k, $v := .M }}{{ $k }}={{ $v }} {{ end }}", "a=1 k=v "),
        ("{{ range .Empty }}x{{ else }}none{{ end }}", "none"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ range .L }}{{ if eq . `y` }}{{ continue }}{{ end }}{{ . }}{{ end }}", "xz"),
        ("{{ range .L }}{{ if eq . `y` }}{{ break }}{{ end }}{{ . }}{{ end }}", "x"),
        ("{{ $x := 1 }}{{ range .L }}{{ $x = . }}{{ end }}{{ $x }}", "z"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}{{ $.A }}", "1a"),
        ('{{ define "t" }}[{{ . }}]{{ end }}{{ template "t" .A }}{{ block "u" .N }}<{{ . }}>{{ end }}', "[a]<3>"),
        ("{{ .S.Name }}{{ (index .L 1) }}{{ (.M).k }}", "nyv"),
        ("{{ .A | printf `%s-%s` `b` }}{{ .L | len }}", "b-a3"),
        ("{{ eq .N 1 2 3 }} {{ ne 1 2 }} {{ lt 1 2 }} {{ le 2 2 }} {{ not .B }}", "true true true true false"),
        ("{{ gt .A `b` }} {{ ge 1.5 .F }}", "false true"),
        ("{{ slice .A 0 1 }}{{ slice .L 1 }}{{ len .A }}{{ index .M `none` }}", "a[y z]1<no value>"),
        ("{{ print .A .N 4 `b` }}|{{ println .A 1 }}", "a3 4b|a 1\n"),
        ("{{ printf `%05d|%-3s|%3s|%.2f|%q|%t` 7 `a` `b` 1.5 `c` true }}", '00007|a  |  b|1.50|"c"|true'),
        ("{{ printf `%v|%x|%%|%d` .M 255 }}", "map[a:1 k:v]|ff|%|%!d(MISSING)"),
        ("{{ printf `%d` `a` 2 }}", "%!d(string=a)%!(EXTRA int=2)"),
        ("{{ 1.5 }} {{ 1e21 }} {{ 1e20 }} {{ 1.0 }}", "1.5 1e+21 100000000000000000000 1"),
        ("{{ 0x10 }} {{ 017 }} {{ 0b11 }} {{ 1_000 }} {{ 'a' }}", "16 15 3 1000 97"),
        ('{{ "a\\t\\u00e9\\x41\\101" }}{{ `r\\n` }}', "a\té" + "AAr\\n"),
        ("{{ html `<a href='x'>` }}{{ urlquery `a b&c` }}{{ js `'<` }}", "&lt;a href=&#39;x&#39;&gt;a+b%26c\\'\\u003C"),
        ("{{ json .M }}{{ json .S }}{{ json `<` }}", '{"a":1,"k":"v"}{"Name":"n","Size":2}"\\u003c"'),
        ("{{ .S }}{{ .L }}", "&{n 2}[x y z]"),
        ("{{- if .A }}\n{{- if .B }}x\n{{ end }}\n{{- end }}", "x\n"),
    ],
)  # fmt: skip
def test_a_template_writes_what_go_writes(text: str, out: str) -> None:
    """Trim markers, comments, pipelines, variables, branches, loops, definitions and functions."""
    assert rendered(text) == out


def test_dates_are_this_machines() -> None:
    """As the daemon's own functions give them, whatever format they are asked for."""
    assert rendered("{{ currentDate }}|{{ currentDate `02 Jan` }}|{{ yesterdayDate }}") == "|".join(
        (gofuncs.day(), gofuncs.day(), gofuncs.day(1))
    )


def test_a_tools_property_has_a_typescript_type() -> None:
    """One of several, of several types, of an unknown one; anything else is `any`."""

    def typed(*kinds: str, of: list[StructValue] | None = None) -> StructValue:
        return StructValue("api.ToolProperty", {"AnyOf": of or [], "Type": Types(kinds)}, {})

    cases = {
        "number | null": typed("integer", "null"),
        "any[]": typed("array"),
        "Record<string, any> | any": typed(of=[typed("object"), typed("strange")]),
        "any": typed(),
    }
    for wanted, value in cases.items():
        assert rendered("{{ toTypeScriptType .P }}", P=value) == wanted
    assert rendered("{{ toTypeScriptType .A }}") == "any"


def test_values_of_named_types_print_as_go_prints_them() -> None:
    """Lists and maps of tools print as JSON, a nil one as null or as {}; structs as their fields."""
    assert format_value(Rows("template.templateTools", None)) == "null"
    assert format_value(Rows("template.templateTools", [StructValue("t", {"A": 1.0}, {"A": "a"})])) == '[{"a":1}]'
    assert format_value(JsonMap("template.templateArgs", None)) == "{}"
    assert format_value(JsonMap("template.templateArgs", {"b": 2.0, "a": True})) == '{"a":true,"b":2}'
    assert marshal(Items("[]int", None)) == "null"
    assert marshal(OrderedMap({"b": 1, "a": 2})) == '{"b":1,"a":2}'
    assert format_value(Types(["string", "null"])) == "[string null]"
    assert format_value(StructValue("t", {"Inner": StructValue("u", {"X": None}, {})}, {})) == "{{<nil>}}"


def test_a_string_is_quoted_as_go_quotes_it() -> None:
    """Signs that cannot be seen by their numbers."""
    assert quote('a"\\\n\x00\u2028é') == '"a\\"\\\\\\n\\x00\\u2028é"'


def test_a_template_that_goes_on_for_ever_is_stopped() -> None:
    """Loops within loops, templates that call themselves, and output without end are refused, not waited for."""
    many = "{{ range 1000 }}" * 3 + "{{ end }}" * 3
    for text in (
        many,
        '{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}',
        "{{ range 100000000 }}{{ end }}",
    ):
        with pytest.raises(Failed):
            rendered(text)
    with pytest.raises(Failed):
        rendered("{{ range 2000 }}{{ $.Long }}{{ end }}", Long="x" * 1000)
    grown = '{{ $x := "\\"aaaa" }}'
    for text in (
        "{{ printf `%2000000d` 1 }}",
        "{{ printf `" + "%900000d" * 9 + "`" + " 1" * 9 + " }}",
        grown + '{{ $x = printf "%s%s" $x $x }}' * 99,
        grown + '{{ $x = printf "%q" $x }}' * 99,
        grown + "{{ $x = js $x }}" * 99,
        grown + "{{ $x = print $x $x }}" * 99,
        "{{ $x := printf `%900000d` 1 }}" + "{{ if eq (html $x) $x }}{{ end }}" * 999,
        "".join(f"{{{{ $a{at} := 1 }}}}" for at in range(2000)),
    ):
        with pytest.raises(Failed):
            rendered(text)
    assert len(rendered("{{ range 1000 }}{{ . }}{{ end }}")) < STEPS


@given(st.text(max_size=60) | st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
def test_any_text_is_a_template_or_malformed(text: str) -> None:
    """The parser raises nothing else; what parses runs to an end or fails in Go's words."""
    try:
        tree = goparse.parse(text)
    except Malformed as wrong:
        assert str(wrong).startswith("template: :")
        return
    try:
        out = TemplateRun(tree, _DATA).text(tree.root)
    except Failed as wrong:
        assert str(wrong).startswith("template: ")
        return
    assert len(out) <= gofuncs.LONGEST


@given(st.text(max_size=60).filter(lambda text: "{{" not in text))
def test_text_without_actions_is_written_as_it_is(text: str) -> None:
    """One token of text, one node."""
    assert rendered(text) == text
    assert [token.kind for token in Lexer(text).run()] == (["text", "eof"] if text else ["eof"])
    assert all(isinstance(node, TextNode) for node in goparse.parse(text).root)
