"""Finds days that an answer repeats from an older text as if they were said today: tomorrow, yesterday, next week."""

from __future__ import annotations

import re

from batos.gate import dates, languages
from batos.gate.ground import Draft, Ground, Spot
from batos.memory.sentences import sentence_spans

#: Words whose day is another on another day, by what they mean, so that a translation is found too.
_MEANT = {
    "tomorrow": r"tomorrow|(?-i:morgen)|(?<=\A)Morgen|demain|mañana|domani|amanhã|завтра|明天|明日",
    "yesterday": "yesterday|gestern|hier|ayer|ieri|ontem|gisteren|вчера|昨天|昨日",
    "today": "today|tonight|heute|aujourd['’]hui|hoy|oggi|stasera|hoje|vandaag|сегодня|今天|今日",
    "next": (
        "next (?:week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|nächste[nrs]? (?:woche"
        "|monat|jahr)"
        "|la semaine prochaine|le mois prochain|l['’]année prochaine|la próxima semana|la semana que viene"
        "|el mes que viene"
        "|la settimana prossima|la prossima settimana|il mese prossimo|na próxima semana|na semana que vem"
        "|volgende (?:week|maand)"
        "|на следующей неделе|в следующем месяце|下周|下星期|下个月|来週|来月"
    ),
    "last": (
        "last (?:week|month|year|night)|letzte[nrs]? (?:woche|monat|jahr)|la semaine dernière|le mois dernier"
        "|la semana pasada"
        "|el mes pasado|la settimana scorsa|il mese scorso|na semana passada|vorige (?:week|maand)"
        "|на прошлой неделе|上周|上个月|先週|先月"
    ),
}
_WORDS = {
    meaning: re.compile(rf"(?<![a-zà-ÿ])(?:{said})(?![a-zà-ÿ])", re.IGNORECASE) for meaning, said in _MEANT.items()
}


def find_repeated(draft: Draft) -> list[Spot] | None:
    """Check that no day which is another by now is repeated from a dated text; None if the answer names none."""
    ground, answer = draft.ground, languages.prose(draft.answer)
    found: list[Spot] = []
    made = False
    for start, end in sentence_spans(answer):
        sentence = answer[start:end]
        for meaning, pattern in _WORDS.items():
            word = pattern.search(sentence)
            if word is None or pattern.search(ground.question) or _is_here(word[0], sentence):
                continue
            written = _days_of(ground, meaning)
            made = made or bool(written)
            if written and ground.today not in written and not dates.find(sentence):
                found.append(Spot("today", word[0], (("day", max(written)),)))
    return found if made else None


def _is_here(word: str, sentence: str) -> bool:
    """Test if a word is the German for `here`, which is the French for `yesterday`."""
    return word.casefold() == "hier" and languages.guess(sentence) != "French"


def _days_of(ground: Ground, meaning: str) -> set[str]:
    """Return the days of the texts that have a word of this meaning; today's where the conversation has it."""
    written = {each.day[:10] for each in ground.passages if each.day and _WORDS[meaning].search(each.text)}
    return written | {ground.today} if _WORDS[meaning].search(ground.said) else written
