"""Chat templates in Jinja, which come from strangers: what they give, and that they neither hang nor fill memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.recordings import header

from ollama_emulator.templating.bounding import LONGEST, NotRendered
from ollama_emulator.templating.chattemplate import CHATML, render, strip_marks

_TALK = [{"role": "system", "content": "S"}, {"role": "user", "content": "<x>"}]


def test_the_recorded_base_writes_its_own_prompt() -> None:
    """The template of base-b, which is like no known one."""
    assert render(header("tiny-b")["tokenizer.chat_template"], _TALK, {}) == "[system] S | [user] <x> | [assistant] "


def test_weights_without_a_template_are_written_as_chatml() -> None:
    """As the runner does by default."""
    assert render(CHATML, _TALK[1:], {}) == "<|im_start|>user\n<x><|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("{{ bos_token }}{{ messages[-1]['content'] | trim }}", "<s><x>"),
        ("{%- for m in messages -%}\n  {{ loop.index0 }}{{ m.role.upper() }}\n{%- endfor %}", "0SYSTEM1USER"),
        (
            "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% break %}{% endfor %}",
            "user",
        ),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        ("{{ messages | map(attribute='role') | join('-') }}{{ 'a,b'.split(',')[1] }}", "system-userb"),
        ("{{ messages[1] | tojson }}{{ [1] | tojson(indent=2) }}", '{"role": "user", "content": "<x>"}[\n  1\n]'),
        ("{{ 'a' ~ 1 ~ 'b' }}{{ 'ab' * 2 }}{{ 7 % 4 }}{{ 'é'.replace('é', 'e') }}", "a1babab3e"),
        ("  {% if true %}\nx\n  {% endif %}\n{{ enable_thinking }}", "x\nTrue"),
        ("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(1) }}{{ f(2) | indent(2, true) }}", "[1]  [2]"),
    ],
)
def test_templates_are_rendered_as_the_runner_does(text: str, out: str) -> None:
    """Blocks take their line with them; tools of the trade are there."""
    assert render(text, _TALK, {"bos_token": "<s>", "enable_thinking": True}) == out


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 100000000000 }}",
        "{{ 10 ** 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ 'a' | indent(1000000000, true) | length > 1000 or raise_exception('held') }}",
        "{{ ('a' * 1000000).replace('a', 'b' * 1000) }}",
        "{{ (('a' * 1000000) | replace('', 'b' * 1000)) }}",
        "{{ ['a' * 1000000] * 1000000000 }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(9999999999) %}{% endfor %}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{% set ns = namespace(s='aaaa') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s='aaaa') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaa' }}{% endfor %}",
        "{% set x = ['a' * 1000000] * 1000 %}{{ x | join }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__()() }}",
        "{{ raise_exception('only users may speak') }}",
        "{{ nobody.knows.this }}",
        "{% if",
        "{{ 1 / 0 }}",
        "{% include 'x' %}",
        "{% set ns = namespace(x=99999) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "{% set ns = namespace(x='\"') %}{% for i in range(60) %}{% set ns.x = ns.x | tojson %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = {1: ns.x, 2: ns.x} %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}{% endfor %}",
        "{% set n = namespace(x=(1,)) %}{% for i in range(18) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ {}[n.x] }}",
        "{% set x %}{% for i in range(99999) %}{{ 'a' * 10000 }}{% endfor %}{% endset %}",
        "{% set x %}{% for i in range(99999) %}" + "y" * 200_000 + "{% endfor %}{% endset %}",
        "{% filter upper %}{% for i in range(99999) %}{{ 'a' * 10000 }}{% endfor %}{% endfilter %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% for x in range(99999) recursive %}{{ loop(range(99999)) if loop.depth < 3 }}{% endfor %}",
        "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% if b | upper == b %}{% endif %}{% endfor %}",
        "{% set b = 'a,' * 500000 %}{% for i in range(99999) %}{% set x = b.split(',') %}{% endfor %}",
        "{{ ('a' * 1000000).rfind('b' + 'a' * 500000) }}",
        "{{ ('b' * 1000000).strip('a' * 900000 + 'b') }}",
        "{{ ('{:>1000000000}' | attr('format'))(1) }}",
        "{{ 5 | round(-1000000000) }}",
        "{{ ('<' * 500000) | striptags }}",
        "{{ cycler() }}",
        "{% set a = namespace(x='a') %}{{ [a] }}",
        "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
        "{% if 1 %}" * 5000 + "{% endif %}" * 5000,
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ 1" + " + 1" * 60_000 + " }}",
        "{{ 1e999 | int }}",
        "a" * 300_000,
    ],
)
def test_what_is_too_much_or_forbidden_is_refused(text: str) -> None:
    """With the words of whoever found out, and in no time: nothing is made before its size is known."""
    with pytest.raises(NotRendered):
        render(text, _TALK, {})


def test_what_a_template_refuses_is_told_in_its_words() -> None:
    """`raise_exception` is how templates say that roles must alternate."""
    with pytest.raises(NotRendered, match=r"^only users may speak$"):
        render("{{ raise_exception('only users may speak') }}", _TALK, {})


def test_the_bounds_are_out_of_a_templates_reach() -> None:
    """No name that a template may write is one of theirs, and setting such a name changes nothing."""
    own = "{% set _budget = 1 %}{% set bound_each = 2 %}{% for i in range(3) %}{{ i }}{% endfor %}"
    assert render(own, _TALK, {}) == "012"
    with pytest.raises(NotRendered, match="undefined"):
        render("{{ _budget.step(-9) }}", _TALK, {})


def test_a_long_talk_is_within_the_bounds() -> None:
    """A thousand messages that a template gathers piece by piece and looks at from all sides."""
    text = (
        "{% set ns = namespace(all='', last=[]) %}{% for m in messages %}{% set ns.all = ns.all + m.content | trim %}"
        "{% if m.role == 'user' and loop.index0 == messages | length - 1 %}{% set ns.last = [m] + ns.last %}{% endif %}"
        "{% endfor %}{{ ns.all | length }} {{ ns.last[0]['content'] }}"
    )
    assert render(text, [{"role": "user", "content": "abc " * 25}] * 1000, {}) == f"99000 {'abc ' * 25}"


@given(
    st.text(max_size=50)
    | st.lists(st.sampled_from("{{ }} {% %} for m in messages endfor if x else endif |".split())).map(" ".join)
)
def test_any_text_is_a_prompt_or_refused(text: str) -> None:
    """Nothing else is raised, whatever a file holds."""
    try:
        out = render(text, _TALK, {})
    except NotRendered:
        return
    assert len(out) <= LONGEST


def test_what_the_tokenizer_adds_itself_is_taken_away() -> None:
    """Or a prompt would begin with it twice."""
    assert strip_marks("<s>hi</s>", (True, True), "<s>", "</s>") == "hi"
    assert strip_marks("<s>hi</s>", (False, False), "<s>", "</s>") == "<s>hi</s>"
    assert strip_marks("hi", (True, True), "", "") == "hi"
