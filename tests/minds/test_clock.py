"""The clock: told where a question speaks of the present moment, in any of ten languages, and nowhere else."""

from __future__ import annotations

import pytest

from batos.minds.clock import asks_time, describe

ASKS = (
    "What time is it?",
    "What's the date?",
    "What is the time now?",
    "which day is it today",
    "Is the museum open now?",
    "What happened yesterday in parliament?",
    "Plan my meals for this week.",
    "How long ago did the war end?",
    "How many days until Christmas?",
    "What is the current year?",
    "Wie spät ist es?",
    "Welcher Tag ist heute?",
    "Was mache ich morgen?",
    "Welches Datum haben wir?",
    "Was steht diese Woche an?",
    "Quelle heure est-il ?",
    "Qu'est-ce qui se passe aujourd'hui ?",
    "Que faire la semaine prochaine ?",
    "¿Qué hora es?",
    "¿Qué puedo cocinar mañana?",
    "¿Qué pasa esta semana?",
    "Che ore sono?",
    "Cosa faccio oggi?",
    "Que horas são?",
    "O que aconteceu ontem?",
    "Hoe laat is het?",
    "Wat doe ik morgen?",
    "Который час?",
    "Какая погода сегодня?",
    "现在几点？",
    "我今天应该做什么？",
    "今何時ですか。",
    "来週の予定を立てて。",
)
KEEPS_QUIET = (
    "When was the lighthouse built?",
    "How much time does it take to boil an egg?",
    "What date was the treaty signed?",
    "In which year did the war end, and what time of day?",
    "Who wrote the time machine?",
    "Now and then the lamp goes out: what do I check?",
    "What time complexity has this sort?",
    "Convert a date to a week number in SQL.",
    "How long does the train take?",
    "Nachts um drei: wann wurde der Turm gebaut?",
    "Warum singen Vögel am Morgen?",
    "Guten Morgen, wer baute den Turm?",
    "Quand a été construit le pont ?",
    "Combien de temps faut-il ?",
    "¿Cuándo se construyó el puente?",
    "¿Por qué cantan los pájaros por la mañana?",
    "Quando è stato costruito il ponte?",
    "Quanto tempo demora?",
    "Wanneer werd de toren gebouwd?",
    "Waarom zingen vogels in de morgen?",
    "Когда построили маяк?",
    "灯塔是什么时候建成的？",
    "何時間かかりますか。",
    "灯台はいつ建てられましたか。",
    "",
)


@pytest.mark.parametrize("text", ASKS)
def test_a_question_about_the_present_moment_asks_the_time(text: str) -> None:
    """Its words speak of today, of now or of a time counted from it."""
    assert asks_time(text)
    assert asks_time(text.upper())


@pytest.mark.parametrize("text", KEEPS_QUIET)
def test_a_question_about_another_time_does_not(text: str) -> None:
    """A time of the past, a duration, a greeting or a word with another meaning needs no clock."""
    assert not asks_time(text)


def test_the_moment_is_told_with_its_weekday() -> None:
    """A model cannot compute the weekday, and no zone but UTC is known."""
    assert describe("2026-11-23T09:35:49.120Z") == "Today is Monday, 2026-11-23, and the time is 09:35 UTC."
