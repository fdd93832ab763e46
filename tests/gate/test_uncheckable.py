"""Sentences that state nothing to check, by their form, in several languages."""

from __future__ import annotations

import pytest

from batos.gate.uncheckable import frame_length, manner


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Hello Anna!", "greeting"),
        ("I hope this helps.", "greeting"),
        ("Gerne!", "greeting"),
        ("Bonjour et merci.", "greeting"),
        ("お役に立てれば幸いです。", "greeting"),
        ("مرحبا بك", "greeting"),
        ("Sure.", "greeting"),
        ("Would you like to know more?", "question"),
        ("もっと知りたいですか？", "question"),
        ("هل تريد المزيد؟", "question"),
        ("You should trim the wick.", "advice"),
        ("Sie sollten den Docht kürzen.", "advice"),
        ("Vous devriez couper la mèche.", "advice"),
        ("芯を切ってください。", "advice"),
        ("يجب عليك قص الفتيل.", "advice"),
        ("The text does not say who lit it.", "nothing_found"),
        ("There is no information about the lamp.", "nothing_found"),
        ("Dazu wird nichts gefunden.", "nothing_found"),
        ("Le texte ne précise pas la date.", "nothing_found"),
        ("記載がありません。", "nothing_found"),
        ("لا يوجد جواب.", "nothing_found"),
        ("As an AI, I have no access to that.", "refusal"),
        ("I don't have access to your files.", "refusal"),
        ("Als KI habe ich keinen Zugriff darauf.", "refusal"),
        ("En tant qu'IA, je ne garde rien.", "refusal"),
        ("Here are the reasons:", "lead_in"),
        ("**Costs**", "heading"),
    ],
)
def test_the_form_of_a_sentence_that_states_nothing(sentence: str, expected: str) -> None:
    """Greetings, questions, advice, a statement that nothing was found, lead-ins and headings."""
    assert manner(sentence, sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Great Britain built the lamp.",
        "Sure enough, the lamp went out.",
        "Thanks to the storm the lamp went out.",
        "The keeper said that the lamp is not red.",
        "Certainly the oldest lamp is at Hook.",
        "The lamp was sold as an aid to pilots.",
        "The keeper has access to the tower.",
        "Die Lampe ist rot.",
        "灯台は油で燃えた。",
        "أضاء الحارس المصباح.",
    ],
)
def test_a_statement_is_checked(sentence: str) -> None:
    """A first word that greets in other sentences does not hide a statement."""
    assert manner(sentence, sentence) is None


@pytest.mark.parametrize(
    ("sentence", "rest"),
    [
        ("The answer to this question is: In 1961.", "In 1961."),
        ("According to the text, it burns oil.", "it burns oil."),
        ("The document states that it burns oil.", "it burns oil."),
        ("Die Antwort lautet: 1961.", "1961."),
        ("Selon le texte, la lampe est rouge.", "la lampe est rouge."),
        ("答えは1961年です。", "1961年です。"),
        ("الإجابة هي 1961", "1961"),
        ("The answer is", "The answer is"),
        ("The answering machine is red.", "The answering machine is red."),
    ],
)
def test_the_beginning_that_only_announces_an_answer_is_not_compared(sentence: str, rest: str) -> None:
    """A frame is left out, unless nothing follows."""
    assert sentence[frame_length(sentence) :] == rest
