"""The clock: told where a question speaks of the present moment, in any of ten languages, and nowhere else."""

from __future__ import annotations

import pytest

from batos.memory.evidence import Passage
from batos.minds.clock import asks_time, describe, line_beside, line_for

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
    "Who repairs the heating, and within what time?",
    "Whose wall can be seen in places even today?",
    "At what time is it served?",
    "By what time must the keys be back?",
    "Um wie viel Uhr beginnt die Messe?",
    "Welcher Tag ist der Termin?",
    "Innerhalb welcher Zeit wird das repariert?",
    "À quelle heure est-il parti ?",
    "Quel jour est la fête ?",
    "¿A qué hora es la cena?",
    "¿Qué día es la boda?",
    "A che ora è la cena?",
    "In che giorno è la festa?",
    "A que horas são as aulas?",
    "Que dia é a festa?",
    "Om hoe laat is het diner?",
    "Hoe laat is het feest?",
    "За сколько времени это починят?",
    "В котором часу ужин?",
    "На какое число назначена встреча?",
    "会议几点开始？",
    "会议在星期几？",
    "会議は何時に始まりますか。",
    "会議は何曜日ですか。",
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


@pytest.mark.parametrize(
    "text", ["What time is it?", "Wie spät ist es?", "Который час?", "现在几点？", "Is it open now?"]
)
def test_the_time_is_told_only_where_it_is_asked_for(text: str) -> None:
    """Else the day alone, which is the same words all day."""
    assert "09:35" in line_for(text, "2026-11-23T09:35:49.120Z")
    assert line_for("Which shops are open today?", "2026-11-23T09:35:49.120Z") == "Today is Monday, 2026-11-23."
    assert line_for("When was it built?", "2026-11-23T09:35:49.120Z") == ""


@pytest.mark.parametrize(
    ("text", "speaker", "told"),
    [
        ("The sweep comes tomorrow at 9.", "", True),
        ("Der Kaminkehrer kommt morgen um neun.", "Anna", True),
        ("The lease ends in two years.", "Anna", True),
        ("The tower was built in two years.", "", False),
        ("The sweep came on 2 June.", "Anna", False),
    ],
)
def test_the_day_is_line_beside_an_older_text_that_counts_from_its_own(text: str, speaker: str, told: bool) -> None:
    """A text of today needs none, neither does one whose day is not known."""
    passage = Passage(1, "a", "0" * 64, 0, text, day="2024-06-01", speaker=speaker)
    assert line_beside([passage], "2026-11-23T09:35:49.120Z") == ("Today is Monday, 2026-11-23." if told else "")
    assert line_beside([passage], "2024-06-01T09:35:49.120Z") == ""
    assert line_beside([Passage(1, "a", "0" * 64, 0, text)], "2026-11-23T09:35:49.120Z") == ""
