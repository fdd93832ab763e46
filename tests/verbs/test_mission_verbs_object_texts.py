"""What is looked at, in words: the root, objects, slots with texts, wishes and methods, what is declared alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batos.verbs.mission_verbs import inspected_text

INTENT = {
    "text": "Answer with what happens when.",
    "signature": "tide_table_facet_(self, query)",
    "examples": ["In what order?"],
    "name": "The Tide Table",
    "inspiration": "a harbour master's tide table",
    "kind": "facet",
}
METHOD = {"intent": "Be literal.", "source": "def say_(self):\n    return 1\n"}


def slot(value: Any, **changes: Any) -> str:
    """What is shown of a slot."""
    found: Any = {"object": "brick_prototype_obj", "slot": "s", "holder": "brick_prototype_obj", "value": value}
    return inspected_text(found | changes)


def test_the_root() -> None:
    """Objects with references, what is declared alone, and how many records there are; before genesis, a remedy."""
    told = inspected_text(
        {"objects": {"tools_obj": "oid:0x14"}, "declared": {"text_agent": None}, "records": {"missions": 2, "asked": 0}}
    ).splitlines()
    assert told[1:] == ["tools_obj   oid:0x14", "text_agent  declared, not made yet", "", "records  2 missions"]
    assert "batos genesis" in inspected_text({"objects": {}, "declared": {}, "records": {}})


def test_an_object_has_a_line_for_each_slot() -> None:
    """With the kind of its value and its beginning, however long it is."""
    slots = {
        "b": {"intent": INTENT},
        "a": {"method": METHOD},
        "c": "x" * 300,
        "d": ["one", 2],
        "e": {"calls": 1},
        "f": None,
    }
    told = inspected_text({"object": "o", "oid": "oid:0x1", "parents": ["traits_obj"], "slots": slots}).splitlines()
    assert told[:2] == ["object   o (oid:0x1)", "parents  traits_obj"]
    assert [line.split()[:2] for line in told[4:10]] == [
        ["a", "method"], ["b", "facet"], ["c", "text"], ["d", "list"], ["e", "map"], ["f", "value"],
    ]  # fmt: skip
    assert "The Tide Table: Answer with what happens when." in told[5]
    assert told[6].endswith("xxx...")
    assert "batos inspect o.SLOT" in told[-1]


def test_a_slot_is_its_text() -> None:
    """A wish is its words with its examples, a method its source, a text itself, anything else what JSON it is."""
    told = slot({"intent": INTENT}, holder="pLLM_obj")
    assert told.startswith(
        "slot     brick_prototype_obj.s, from pLLM_obj\nintent   The Tide Table\ncalled   tide_table"
    )
    assert "\n  Answer with what happens when.\n\n  - In what order?" in told
    method = slot({"method": METHOD})
    assert "\ndef say_(self):\n    return 1\n" in method
    assert "batos method show brick_prototype_obj.s" in method
    assert slot("BRICK", holder="oid:0x3") == "slot     brick_prototype_obj.s\n\nBRICK"
    assert slot({"calls": 1}).endswith('{\n  "calls": 1\n}')


def test_what_is_declared_alone_shows_its_messages() -> None:
    """The text of its API, and that the first message makes it."""
    told = inspected_text(
        {"object": "text_agent", "state": "declared, absent", "api": "words_(text) counts.", "methods": []}
    )
    assert told == "object   text_agent, declared: the first message makes it\n\n  words_(text) counts."


KEYS = st.sampled_from(["method", "intent", "text", "source"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)


@given(value=VALUES)
def test_any_value_can_be_shown(value: Any) -> None:
    """Whatever a slot holds, also a map with the keys of an intent."""
    assert slot(value).startswith("slot ")
    assert inspected_text({"object": "o", "oid": "oid:0x1", "parents": [], "slots": {"s": value}})
