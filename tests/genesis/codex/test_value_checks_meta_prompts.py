"""Templates are filled once, and what is filled in is text."""

from __future__ import annotations

import pytest

from batos.genesis.codex import value_checks
from batos.genesis.codex.codex import Codex


def test_what_is_filled_in_is_text() -> None:
    """A place in a question or an answer is no place: it comes out as it was written."""
    assert value_checks.fill("$query!", query="costs $parts and $$5") == "costs $parts and $$5!"


def test_missing_value_is_told() -> None:
    """A template whose place gets no value raises; nothing half filled reaches a model."""
    with pytest.raises(KeyError):
        value_checks.fill("$name and $query", query="x")


@pytest.mark.parametrize("kind", value_checks.SHAPES)
def test_shipped_templates_fill(codex: Codex, kind: str) -> None:
    """Every shipped template takes exactly the values of its kind, and shows each that it needs."""
    shape = value_checks.SHAPES[kind]
    for persona in codex.personas.values():
        filled = value_checks.fill(persona.prompts[kind], **{place: f"<{place}>" for place in shape.may})
        assert all(f"<{place}>" in filled for place in shape.must)
        assert "$" not in filled
