"""The sizes of prompts: the shipped codex stays within the bounds of both forms, and each prompt is weighed."""

from __future__ import annotations

import pytest

from batos.cli.render import prompt_tokens
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.value_checks import FIRST_RATIO


@pytest.fixture(scope="module")
def shipped() -> Codex:
    """The codex that ships."""
    return codices.parse(codices.read_shipped()).sound()


def test_the_shipped_prompts_are_within_their_bounds(shipped: Codex) -> None:
    """By the estimate, which takes more than a model does: 700 tokens in full form, 60 in lean form.

    The examples of a division in lean form come beside these.
    """
    for each in prompt_tokens.list_sizes(shipped):
        for form in prompt_tokens.MOST:
            most = prompt_tokens.most_tokens(each.prompt, form)
            assert each.sizes[form] * FIRST_RATIO <= most, (each.persona, each.prompt, form)


def test_every_prompt_of_every_persona_is_weighed(shipped: Codex) -> None:
    """The calls of a cycle of one and of two, and one for each facet and each protocol."""
    found = prompt_tokens.list_sizes(shipped)
    for persona in shipped.personas.values():
        slots = {intent.slot for intent in (*persona.pillars, *persona.protocols)}
        mine = {each.prompt for each in found if each.persona == persona.name}
        assert mine == slots | {"reflex", "decompose", "weave", "two_voices", "select", "revise"}


def test_facets_differ_in_lean_form_too(shipped: Codex) -> None:
    """Each facet has a line of its own, which is another than its persona's."""
    for persona in shipped.personas.values():
        lines = [persona.line, *(facet.line for facet in persona.pillars)]
        assert all(lines)
        assert len(set(lines)) == len(lines)
