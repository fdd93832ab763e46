"""Declared but absent objects: an API's text read as methods, and what a person may get wrong in one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.genesis.conftest import Edit

from batos.genesis.codex import codex as codices
from batos.genesis.codex.declarations import MOST, api_of

HEAD = '[[objects]]\nname = "text_agent"\napi = """\n'
WORDS = "words_(text) answers"


def test_the_shipped_object_has_its_methods() -> None:
    """The lines that begin with a call are its methods; what is said of both stands with each."""
    (absent,) = codices.parse(codices.read_shipped()).sound().objects
    assert [each.selector for each in absent.methods] == ["words_", "often_"]
    assert [each.signature for each in absent.methods] == ["words_(self, text)", "often_(self, text, part)"]
    assert absent.methods[0].text.startswith("answers how many words `text` has")
    assert all(each.text.endswith("where there is nothing to count.") for each in absent.methods)


def test_indented_lines_go_on() -> None:
    """They belong to the method above; after a line about all of them, to that."""
    text = "a_(self, x=1) adds one.\n  No more.\nb_() is:\n    nothing\nBoth are quick.\n  Very."
    methods, faults = api_of(text)
    assert faults == ()
    assert [(each.signature, each.text) for each in methods] == [
        ("a_(self, x=1)", "adds one.\nNo more.\nBoth are quick.\nVery."),
        ("b_(self)", "is:\nnothing\nBoth are quick.\nVery."),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("it answers something", "declares no method"),
        ("Search(query) x", "`Search`, which is no selector"),
        ("search(query) x", "`search`, which is no selector"),
        ("_search_(query) x", "no selector"),
        ("infer_(query) x", "which is the kernel's"),
        ("redefine_(query) x", "which is the kernel's"),
        ("ask_guardian_(query) x", "which is the kernel's"),
        ("search_(query x", "not how a method is called"),
        ("search_(1) x", "not how a method is called"),
        ("search_(a, a) x", "named arguments, each once"),
        (f"search_({'a' * 200}) x", "not how a method is called"),
        ("search_(*all) x", "named arguments, each once"),
        ("search_(**all) x", "named arguments, each once"),
        ("search_(a, /) x", "named arguments, each once"),
        ("search_(a, self) x", "named arguments, each once"),
        ("search_(a)", "does not say what `search_` answers"),
        ("search_(a) x\\nsearch_(b) y", "`search_` twice"),
        ("\\n".join(f"m{at}_(a) x" for at in range(MOST + 1)), f"at most {MOST}"),
    ],
)
def test_an_api_that_is_none(folder: Path, edit: Edit, line: str, why: str) -> None:
    """Each fault is told at the line of the api, with what to do."""
    text = codices.read_shipped()["mind.toml"]
    api = tomllib.loads(text)["objects"][0]["api"]
    escaped = json.dumps(api)[1:-1].replace("\\n", "\n")
    edit("mind.toml", escaped if escaped in text else api, f"{line}\n")
    found = [fault for fault in codices.read(folder).faults if why in fault.message]
    assert found, [fault.message for fault in codices.read(folder).faults]
    assert found[0].line == text[: text.index(HEAD) + len(HEAD) - len('api = """\n')].count("\n") + 1
    assert found[0].remedy


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Agent", "cannot be an object's name"),
        ("agent_", "cannot be an object's name"),
        ("a__b", "cannot be an object's name"),
        ("a" * 41, "cannot be an object's name"),
        ("traits_obj", "an object of the image"),
        ("tools", "an object of the image"),
        ("missions", "an object of the image"),
        ("my_guardian", "a protected name"),
    ],
)
def test_a_name_that_is_none(folder: Path, edit: Edit, name: str, why: str) -> None:
    """What an absent object is called is a plain name of its own."""
    edit("mind.toml", 'name = "text_agent"', f'name = "{name}"')
    assert [why in fault.message for fault in codices.read(folder).faults] == [True]


@given(st.text(max_size=300) | st.lists(st.sampled_from(["a_(", "b_(x)", ")", " c", "\n", "self, ", "*"])).map("".join))
def test_any_text_is_read(text: str) -> None:
    """Whatever stands in an api is read or refused; what is not refused can be a method."""
    methods, faults = api_of(text)
    assert faults or methods
    if not faults:
        assert all(each.signature.startswith(f"{each.selector}(self") and each.text for each in methods)


def test_what_a_protocol_makes(folder: Path, edit: Edit) -> None:
    """BRICK's gadget is a tool; nothing else can be made, and by no facet."""
    brick = codices.load(folder).personas["BRICK"]
    assert {each.slot for each in brick.protocols if each.makes} == {"gadget_generation_protocol_"}
    edit("brick.toml", 'makes = "tool"', 'makes = "war"')
    edit(
        "robin.toml", 'signature = "sage_facet_(self, query)"', 'signature = "sage_facet_(self, query)"\nmakes = "tool"'
    )
    told = [fault.message for fault in codices.read(folder).faults]
    assert ["a facet makes only its answer" in told[0], "`makes` is 'war'" in told[1]] == [True, True]


def test_what_a_protocol_is_given(folder: Path, edit: Edit) -> None:
    """The last audit or what the thought cost; nothing else, and no facet is given anything."""
    alfred = codices.load(folder).personas["ALFRED"]
    assert {each.slot: each.given for each in alfred.protocols if each.given} == {
        "system_integrity_audit_protocol_": "audit",
        "cognitive_efficiency_audit_protocol_": "cost",
    }
    edit("alfred.toml", 'given = "audit"', 'given = "weather"')
    signature = 'signature = "sage_facet_(self, query)"'
    edit("robin.toml", signature, f'{signature}\ngiven = "cost"')
    told = sorted(fault.message for fault in codices.read(folder).faults)
    assert ["`given` is 'weather'" in told[0], "is given only its sub-query" in told[1]] == [True, True], told
