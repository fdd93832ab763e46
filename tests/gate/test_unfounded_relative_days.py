"""Days that are counted from the day of a text are not repeated from an older one as if it was said today."""

from __future__ import annotations

import pytest

from batos.gate.ground import Draft, Ground
from batos.gate.unfounded import find_repeated, names_relative_day
from batos.memory.evidence import Evidence, Passage, Turn

TODAY, THEN = "2026-11-21", "2024-06-01"
#: A text, and an answer that repeats its day; by language.
REPEATED = {
    "English": ("The sweep comes the day after tomorrow.", "He comes the day after tomorrow."),
    "German": ("Der Kaminkehrer kommt übermorgen um neun.", "Er kommt übermorgen um neun."),
    "French": ("Le ramoneur passe la semaine prochaine.", "Il passe la semaine prochaine."),
    "Spanish": ("El técnico viene mañana a las nueve.", "Viene mañana a las nueve."),
    "Italian": ("Lo spazzacamino viene domani alle nove.", "Viene domani alle nove."),
    "Portuguese": ("O técnico vem amanhã às nove.", "Ele vem amanhã às nove."),
    "Dutch": ("De schoorsteenveger komt overmorgen om negen uur.", "Hij komt overmorgen om negen uur."),
    "Russian": ("Трубочист придёт завтра в девять.", "Он придёт завтра в девять."),
    "Chinese": ("烟囱工下周来。", "他下周来。"),
    "Japanese": ("煙突掃除は来週来ます。", "来週来ます。"),
}
#: The same with spans of time that somebody said, forward and back.
SPANS = {
    "English": ("The lease ends in two years.", "It was signed three weeks ago."),
    "German": ("Der Vertrag endet in zwei Jahren.", "Er wurde vor drei Wochen unterschrieben."),
    "French": ("Le bail finit dans deux ans.", "Il a été signé il y a trois semaines."),
    "Spanish": ("El contrato acaba dentro de dos años.", "Se firmó hace tres semanas."),
    "Italian": ("Il contratto finisce tra due anni.", "È stato firmato tre settimane fa."),
    "Portuguese": ("O contrato acaba daqui a dois anos.", "Foi assinado há três semanas."),
    "Dutch": ("Het contract eindigt over twee jaar.", "Het is drie weken geleden getekend."),
    "Russian": ("Договор кончается через два года.", "Он подписан 3 недели назад."),
    "Chinese": ("合同两年后到期。", "三周前签的。"),
    "Japanese": ("契約は2年後に切れます。", "3週間前に結びました。"),
}


def found(
    answer: str, text: str, *, day: str = THEN, question: str = "When is it?", speaker: str = "Anna"
) -> list[str]:
    """Return the words that are found in an answer from a text of a day."""
    passage = Passage(1, "a", "0" * 64, 0, text, day=day, speaker=speaker)
    spots = find_repeated(Draft(answer, Ground(question, Evidence((passage,)), today=TODAY)))
    return [f"{each.said} {dict(each.values)['day']}" for each in spots or ()]


@pytest.mark.parametrize("language", REPEATED)
def test_a_day_of_an_older_text_is_not_repeated(language: str) -> None:
    """In ten languages; a text of today, and an answer that names the date, are right."""
    text, answer = REPEATED[language]
    assert [each.endswith(THEN) for each in found(answer, text)] == [True]
    assert found(answer, text, day=TODAY) == []
    assert found(f"{answer[:-1]}, 2024-06-02.", text) == []


@pytest.mark.parametrize("language", SPANS)
def test_a_span_from_now_is_not_repeated(language: str) -> None:
    """What somebody said is counted from then; a document may count from the matter itself, but for what is past."""
    ahead, ago = SPANS[language]
    for text in (ahead, ago):
        assert len(found(text, text)) == 1
        assert found(text, text, day=TODAY) == []
    assert found(ahead, ahead, speaker="") == []
    assert len(found(ago, ago, speaker="")) == 1


def test_a_question_that_names_the_day_means_its_own() -> None:
    """Then only what the answer adds from the older text is repeated from it."""
    text, asked = "The chimney sweep comes tomorrow at 9.", "Does the chimney sweep come tomorrow?"
    assert found("Yes, the chimney sweep comes tomorrow at 9.", text, question=asked) == [f"tomorrow {THEN}"]
    assert found("No, he does not come tomorrow.", text, question=asked) == []


def test_an_earlier_turn_has_a_day_too() -> None:
    """One of today may be repeated, one of a week ago may not."""
    for day, several in ((THEN, 1), (TODAY, 0), ("", 0)):
        turn = Turn("m-1", "The sweep comes tomorrow.", "Noted.", "external", 1, day)
        ground = Ground("When does the sweep come?", Evidence(turns=(turn,)), today=TODAY)
        assert len(find_repeated(Draft("He comes tomorrow.", ground)) or ()) == several


@pytest.mark.parametrize(
    "text",
    ["Hier steht der Turm.", "Abre a las 9 de la mañana.", "Guten Morgen!", "Am Morgen singt er.", "the last of them"],
)
def test_words_that_mean_something_else_are_none(text: str) -> None:
    """The German for here, mornings, and other things that are last."""
    assert not names_relative_day(text, spoken=True)
