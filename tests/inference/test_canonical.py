"""Canonical JSON: equal forms for equal values, and the same form however it was made."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from batos.inference.canonical import (
    EncodedMessages,
    EncodedSchema,
    canonical,
    form_of,
    form_of_list,
    form_of_object,
)


def shuffled(value: Any) -> Any:
    """The same value with every mapping in the other order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_equal_values_have_one_canonical_form(value: Any) -> None:
    """The order of a mapping does not count, and the form reads back as the value."""
    assert canonical(value) == canonical(shuffled(value))
    assert json.loads(canonical(value)) == value


@given(some.text(some.characters()))
def test_any_text_has_a_form(text: str) -> None:
    """Half a surrogate pair too, as a model may give it; different texts have different forms."""
    assert canonical(text) != canonical(text + "\ud83d")


texts = some.text(some.characters())
messages = some.lists(some.fixed_dictionaries({"role": some.sampled_from(["user", "system"]), "content": texts}))


@given(messages)
def test_messages_have_the_form_of_any_list(told: list[dict[str, str]]) -> None:
    """Controls, half surrogate pairs and all other characters are written alike by both encoders."""
    assert form_of(EncodedMessages(told)) == canonical(told)


@given(some.dictionaries(some.text(max_size=5), values))
def test_a_form_is_that_of_its_parts(fields: dict[str, Any]) -> None:
    """A list and a mapping, put together of forms that are there already, are encoded as if they were not."""
    assert form_of_object(fields) == canonical(fields)
    assert form_of_list(fields.values()) == canonical(list(fields.values()))
    assert form_of_object({"format": EncodedSchema(fields)}) == canonical({"format": fields})


def test_a_form_is_made_once() -> None:
    """Whoever writes the same messages or the same schema gets the same bytes."""
    for value in (EncodedMessages(({"role": "user", "content": "Why?"},)), EncodedSchema(type="object")):
        assert form_of(value) is form_of(value)
