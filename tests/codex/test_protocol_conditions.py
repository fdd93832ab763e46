"""A key protocol's conditions are computed, and all must hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.codex import protocol_conditions
from batos.codex.codex import Codex
from batos.codex.protocol_conditions import Situation

STUCK = Situation("I\u2019m STUCK in my job, both ways.", "cycle", 3, evidence=False)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, False),
        ({}, False),
        ({"words": ["stuck"]}, True),
        ({"words": ["i'm stuck in"]}, True),
        ({"words": ["tuck"]}, False),
        ({"words": ["stuck"], "without": ["job"]}, False),
        ({"words": ["stuck"], "without": ["jobs"]}, True),
        ({"efforts": ["council"]}, False),
        ({"efforts": ["cycle", "council"]}, True),
        ({"min_words": 7}, True),
        ({"min_words": 8}, False),
        ({"max_words": 6}, False),
        ({"min_parts": 3}, True),
        ({"min_parts": 4}, False),
        ({"evidence": False}, True),
        ({"evidence": True}, False),
    ],
)
def test_conditions(conditions: dict[str, Any] | None, expected: bool) -> None:
    """Each condition holds as documented; a protocol without conditions never offers itself."""
    assert protocol_conditions.holds(conditions, STUCK) is expected


def test_words_of_scripts_without_blanks() -> None:
    """In scripts that write no blanks a phrase is found inside a sentence."""
    assert protocol_conditions.mentions(protocol_conditions.fold("私はとても孤独です"), ["孤独"])


@given(st.text(max_size=80), st.text(min_size=1, max_size=10))
def test_any_words_are_text(query: str, phrase: str) -> None:
    """No query and no phrase is ever read as a pattern."""
    assert protocol_conditions.holds({"words": [phrase]}, Situation(query, "cycle", 1, evidence=False)) in {True, False}


def test_shipped_protocols_are_rare(codex: Codex) -> None:
    """Every shipped protocol has conditions, and none offers itself for a plain question."""
    plain = Situation("What does the charter of the library say about opening hours?", "cycle", 3, evidence=True)
    for persona in codex.personas.values():
        for protocol in persona.protocols:
            assert protocol.when
            assert not protocol_conditions.holds(protocol.when, plain)
    assert protocol_conditions.holds(codex.personas["ROBIN"].protocols[1].when, STUCK)


#: For each shipped protocol: questions that it is meant for, and others that have its words in another sense.
MEANT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "receptive_resonance_protocol_": (
        ("Am I wrong to keep quiet about it?", "Wie sieht das aus ihrer Perspektive aus?", "Help me see both sides."),
        ("Why does the sea calm me?", "How do I say no kindly?"),
    ),
    "sages_koan_protocol_": (
        ("I feel stuck between two jobs.", "I can\u2019t decide whether to move.", "Ich merke, dass ich feststecke."),
        (
            "My father died and I feel stuck.",
            "The door is stuck, and nobody helps me.",
            "A bird was trapped in my room.",
        ),
    ),
    "lantern_protocol_": (
        ("It all feels hopeless tonight.", "Ich kann nicht mehr.", "No puedo más con esto."),
        ("I hope that tomorrow is better.", "Why do I like rain?"),
    ),
    "absurd_synthesis_protocol_": (
        ("Brainstorm names for the boat.", "I need a novel approach to heating.", "Give me creative ideas for a shed."),
        ("How do I publish a novel?", "What is a Creative Commons licence?", "The pump makes an unusual noise."),
    ),
    "rogues_gallery_protocol_": (
        ("What are the risks of a flat roof?", "Plan the move: what could go wrong?", "Welche Risiken hat das?"),
        ("How do I insulate a flat roof?", "Sort these rows by date."),
    ),
    "gadget_generation_protocol_": (
        ("Build a tool that renames my scans.", "Every time I need an invoice I copy an old one."),
        ("Which gadget should I buy my nephew?", "Are reusable cups better?"),
    ),
    "digital_cartography_protocol_": (
        (
            "When was the Suez Canal opened? Surprise me.",
            "Tell me a fun fact about Oslo.",
            "Wusstest du, wo das liegt?",
        ),
        ("I am curious: when was the canal opened?", "Look up `unexpected end of file`."),
    ),
    "doubt_protocol_": (
        ("Are you sure that the index is the cause?", "How certain is this?", "Which assumption carries most of it?"),
        ("How do I reach a certain street?", "Who is on the premises at night?"),
    ),
    "system_integrity_audit_protocol_": (
        ("Run a system integrity audit.", "Mach eine Integritätsprüfung."),
        ("Is the system fast enough?", "What is integrity?"),
    ),
    "cognitive_efficiency_audit_protocol_": (
        ("Are we wasting compute on this?", "Was sagt die Effizienz dazu?", "Is the council too expensive?"),
        ("How many calls does a cycle make?", "What does a token mean?"),
    ),
}


def test_every_shipped_protocol_is_in_the_table(codex: Codex) -> None:
    """None is without questions that it is meant for, and others."""
    shipped = {protocol.slot for persona in codex.personas.values() for protocol in persona.protocols}
    assert shipped == MEANT.keys()
    assert all(meant and not_meant for meant, not_meant in MEANT.values())


@pytest.mark.parametrize("slot", MEANT)
@pytest.mark.parametrize("effort", ["cycle", "council"])
def test_a_protocol_offers_itself_where_it_is_meant_to(codex: Codex, slot: str, effort: str) -> None:
    """On each of its questions, in a cycle and in a council, and on none of the others; no question has two."""
    persona = next(each for each in codex.personas.values() if any(one.slot == slot for one in each.protocols))
    for expected, questions in zip((True, False), MEANT[slot], strict=True):
        for question in questions:
            situation = Situation(question, effort, 3, evidence=False)
            offered = [each.slot for each in persona.protocols if protocol_conditions.holds(each.when, situation)]
            assert offered == ([slot] if expected else []), question
