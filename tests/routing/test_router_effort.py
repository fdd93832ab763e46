"""Effort by words: a council is only for a text that asks for several points of view."""

from __future__ import annotations

import pytest

from batos.genesis.codex.codex import Codex
from batos.routing import router
from batos.routing.lexical import lessons_of

COUNCIL = [
    "What do all four of you think about my plan?",
    "I want to hear each of your personas on this.",
    "What does each of you think about the harbour?",
    "I would like different perspectives on tides.",
    "I want several points of view: should we build the dam?",
    "Convene the council: should we sell the house?",
    "Consider the move from every angle.",
    "Give me several perspectives on early retirement.",
    "Beleuchte das aus verschiedenen Blickwinkeln.",
    "Was meint ihr alle vier dazu?",
    "Examine cette décision sous tous les angles.",
    "Je voudrais l'avis de chacun d'entre vous.",
    "Analiza el asunto desde varios puntos de vista.",
    "¿Qué opináis vosotros cuatro?",
    "Che ne pensate voi quattro?",
    "Analise isto de vários pontos de vista.",
    "请从多个角度分析这个决定。",
    "あらゆる角度から検討してください。",
    "इसे हर दृष्टिकोण से देखो।",
]
ONE = [
    "The town council raised the rent.",
    "What is the council tax in Leeds?",
    "All four tyres are flat.",
    "What does each of the levers do?",
    "The different views on the map need a legend.",
    "Alle vier Wochen fällt der Server aus.",
    "Die vier Reifen sind platt.",
    "I photographed the church from three angles.",
    "Los cuatro jinetes, ¿quién los pintó?",
    "四季的名称是什么？",
    "She hit me. He cried. They left. I stayed. It rained.",
]


@pytest.mark.parametrize("text", COUNCIL)
def test_who_asks_for_everybody_is_understood(text: str) -> None:
    """All of them or several views are asked for in many languages; the words that say so are named."""
    said = router.asks_for_everybody(text)
    assert said is not None
    assert said in text


@pytest.mark.parametrize("text", ONE)
def test_what_only_looks_like_it_is_no_council(text: str) -> None:
    """A council costs some twenty calls: fours, angles and town halls alone do not call it."""
    assert router.asks_for_everybody(text) is None


async def test_a_long_question_takes_a_cycle_where_the_mind_says_so(codex: Codex) -> None:
    """From so many words on; the asker's effort wins, and so does a text that asks for everybody."""
    text = "When did the old harbour open, and who had it built?"
    size, own = int(router.size_of(text)), router.Router(lessons_of(codex.personas.values()))
    state = router.RoutingState(cycle_from=size)
    assert (await own.route(text)).effort == "reflex"
    found = await own.route(text, state=state)
    assert (found.effort, f"it has {size} words or more" in found.reason) == ("cycle", True)
    assert (await own.route(text, state=router.RoutingState(cycle_from=size + 1))).effort == "reflex"
    assert (await own.route(text, effort="reflex", state=state)).effort == "reflex"
    assert (await own.route("What do all four of you think about my plan?", state=state)).effort == "council"
