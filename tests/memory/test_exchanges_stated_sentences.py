"""Statements in a question: what a person says of the world, and neither what they ask nor what they want done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.exchanges import repeats, statements_of


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("My cat is called Miso. What may she eat?", ["My cat is called Miso."]),
        ("Meine Katze heißt Miso. Was darf sie fressen?", ["Meine Katze heißt Miso."]),
        ("We moved to Porto last spring. Write a letter to Anna.", ["We moved to Porto last spring."]),
        ("Please summarise this file.", []),
        ("¿Dónde está el faro?", []),
        ("我的猫叫米索。它可以吃什么？", ["我的猫叫米索。"]),
        ("Who keeps the lamp? (I asked it before.)", []),
        ("Thanks!", []),
        ("", []),
    ],
)
def test_what_is_stated_is_kept_and_what_is_asked_is_not(text: str, stated: list[str]) -> None:
    """In several languages."""
    assert [each.strip() for each in statements_of(text)] == stated


@given(st.text(max_size=200))
def test_a_statement_stands_in_the_text(text: str) -> None:
    """Word for word, and no text is an error."""
    assert all(each in text for each in statements_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "Forget that my cat is called Miso.",
        "Please delete the fact that I like tea.",
        "Don't remember that I like tea.",
        "Vergiss, dass meine Katze Miso heißt.",
        "Oublie que mon chat s'appelle Miso.",
        "Olvida que mi gato se llama Miso.",
        "Dimentica che il mio gatto si chiama Miso.",
        "Esquece que o meu gato se chama Miso.",
        "Vergeet dat mijn kat Miso heet.",
        "Забудь, что мою кошку зовут Мисо.",
        "请忘记我的猫叫米索。",
        "私の猫がミソだということを忘れてください。",
    ],
)
def test_an_order_states_nothing(text: str) -> None:
    """What is to be forgotten least of all."""
    assert list(statements_of(text)) == []


def test_a_text_that_is_said_again_tells_nothing() -> None:
    """Word for word, whatever stands beside it; the same words in a question ask for it."""
    said = "I failed my test today and feel awful."
    assert repeats(f"{said} What now?", said)
    assert repeats(said.upper(), said)
    assert not repeats("Did I fail my test today?", said)
    assert not repeats(said, f"{said} It was the second time.")
    assert not repeats(said, "")
