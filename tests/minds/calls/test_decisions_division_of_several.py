"""Questions that hold several things to ask: known by marks and small words, in the languages that have a list."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from batos.minds.calls.decisions import asks_several


@pytest.mark.parametrize(
    "text",
    [
        "Who wound the lamp and when was it lit?",
        "Who wound the lamp, and in which year was it lit?",
        "Who wound the lamp? And who lit it?",
        "Describe the lamp and name its keeper.",
        "The lamp went out at night. Who lit it?",
        "Wer hat die Lampe gebaut und wann wurde sie angezündet?",
        "Qui a peint le plafond et combien d'années ont duré les travaux?",
        "¿Quién pintó el techo y cuántos años duró la obra?",
        "Кто построил маяк и когда он был зажжён?",
        "谁建了灯塔？什么时候点亮？",
        "谁建了灯塔，它是什么时候点亮的？",
        "- the lamp\n- the bell",
    ],
)
def test_several_things(text: str) -> None:
    """A second thing is asked behind a word that joins, or behind a mark."""
    assert asks_several(text)


@pytest.mark.parametrize(
    "text",
    [
        "How does the keeper keep the lamp burning through the night?",
        "Who wound the lamp and the clock?",
        "What happened between 1887 and 1912 on the island?",
        "Describe the lamp.",
        "Name a luxury division of Toyota.",
        "Welche Lampen und Glocken gibt es auf der Insel?",
        "谁建了灯塔？",
        "",
    ],
)
def test_one_thing(text: str) -> None:
    """Nouns and numbers that are joined are no second thing, and an order of one thing is one."""
    assert not asks_several(text)


@given(st.text(max_size=60), st.sampled_from(["Who lit it?", "Когда?", "为什么？"]))
def test_a_question_behind_a_question_is_a_second_thing(first: str, then: str) -> None:
    """Whatever was asked first, what is asked behind its mark is another thing."""
    assert asks_several(f"Who came? {first} {then}")
    assert asks_several(f"{first}\n{then}\n{then}")
