"""Requests for code: which they are, and what their prompts say."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.speech.authoring.ordering import FORM, FORM_OF_MANY, GUIDE, asking

from ollama_emulator.speech.authoring import orders
from ollama_emulator.speech.authoring.orders import Order
from ollama_emulator.speech.authoring.wish_texts import MethodWish

API = """
search_(query, limit) answers a list of {title, url, excerpt}, best first, at most `limit` (1 to 10).
fetch_(url) answers {url, title, text} of one page.
  see_also(other) is no method: it stands within what is said of one.
Both only read.
"""


def _order(messages: list[dict[str, str]], form: Any = FORM) -> Order:
    shape = orders.shape_of(form)
    assert shape is not None
    return orders.read(shape, messages)


def test_code_is_asked_for_by_a_source_and_a_list_of_checks() -> None:
    """Whatever letters order the keys, and beside any other field."""
    lettered = {
        "type": "object",
        "properties": {
            "a_reasoning": {"type": "string"},
            "b_checks": {"type": "array"},
            "c_source": {"type": "string"},
        },
    }
    shape = orders.shape_of(lettered)
    assert shape is not None
    assert (shape.source, shape.checks, shape.methods) == ("c_source", "b_checks", "")


@pytest.mark.parametrize(
    "form",
    [
        None,
        "json",
        {},
        {"type": "object"},
        {"type": "object", "properties": {"source": {}}},
        {"type": "object", "properties": {"source": {}, "checks": {"type": "string"}}},
        {"type": "object", "properties": {"source": {}, "checks": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"methods": {"type": "array"}}},
        {"type": "object", "properties": {"methods": 3}},
        {"type": "object", "properties": ["source", "checks"]},
    ],
)
def test_what_asks_for_no_code_is_left_alone(form: Any) -> None:
    """Also a schema that is none."""
    assert orders.shape_of(form) is None
    assert orders.requested_selectors(form, []) == ()


def test_a_prompt_says_what_the_method_is_to_be() -> None:
    """Its sections, of the user's message alone; a heading that comes a second time is text."""
    messages = asking(
        "guide_facet_(self, query)",
        GUIDE + "\nSlots: none.\nMore.",
        ["charge: int", "seen: list"],
        "facet",
        "The Guide",
    )
    (wish,) = _order(messages).wishes
    assert (wish.selector, wish.parameters, wish.signature) == ("guide_facet_", ("query",), "self, query")
    assert (wish.kind, wish.title) == ("facet", "The Guide")
    assert wish.intent.startswith("Explain with the erudition")
    assert (wish.slot("list"), wish.slot("dict")) == ("seen", "")


def test_a_repair_is_about_the_same_method() -> None:
    """The last message tells faults; the wish stands in the first."""
    messages = asking("guide_facet_(self, query)", GUIDE, kind="facet")
    told = [
        {"role": "assistant", "content": "{}"},
        {"role": "user", "content": "The method is not accepted:\n- line 1: Name"},
    ]
    assert _order([*messages, *told]) == _order(messages)


@pytest.mark.parametrize(
    ("signature", "parameters", "written"),
    [
        ("tick_(self)", (), "self"),
        ("tick_()", (), "self"),
        ("fetch_(url)", ("url",), "self, url"),
        (
            "add_(self, a: int, b: dict[str, int] = {}, *more)",
            ("a", "b", "*more"),
            "self, a: int, b: dict[str, int] = {}, *more",
        ),
    ],
)
def test_a_signature_is_kept_as_it_is_written(signature: str, parameters: tuple[str, ...], written: str) -> None:
    """Beside the names of its parameters; one without `self` gets it."""
    (wish,) = _order(asking(signature, "Do it.")).wishes
    assert (wish.parameters, wish.signature) == (parameters, written)


def test_a_whole_prototype_is_a_wish_for_each_signature_of_its_api() -> None:
    """With what is said of it up to the next one."""
    messages = [{"role": "user", "content": f"Receiver: pages_agent\n\nApi:\n{API}\nTask: all of them."}]
    order = _order(messages, FORM_OF_MANY)
    assert [(wish.selector, wish.signature) for wish in order.wishes] == [
        ("search_", "self, query, limit"),
        ("fetch_", "self, url"),
    ]
    assert "best first" in order.wishes[0].intent
    assert "best first" not in order.wishes[1].intent
    assert orders.requested_selectors(FORM_OF_MANY, messages) == ("search_", "fetch_")


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": st.text(max_size=200)})))
def test_any_conversation_has_a_wish(messages: list[dict[str, str]]) -> None:
    """What asks for code with no word of it gets some method all the same."""
    for form in (FORM, FORM_OF_MANY):
        wishes = _order(copy.deepcopy(messages), form).wishes
        assert wishes
        assert all(isinstance(wish, MethodWish) for wish in wishes)
