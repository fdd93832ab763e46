"""The time of asking, which a prompt has only if the question needs it.

A clock in every prompt is copied by small models, and it makes each prompt another one. The test knows words and
phrases of some languages that speak of the present moment, and none that mostly mean something else.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Final

from batos.memory.terms import line_of

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Phrases as whole words, by language. A mark in brackets stands for words that may not come before.
_PHRASES: Final = {
    "en": r"today|todays|tonight|tomorrow|yesterday|right now|just now|by now|nowadays|at the moment|at this moment"
    r"|(?:what|which) (?:time|day|date|month|year|weekday|day of the week) is (?:it|this|today|now)"
    r"|(?:what|what s|whats) (?:is )?(?:the )?(?:time|date|current \w+)(?= $| now| today| please)"
    r"|current (?:date|time|day|week|month|year|weekday)|the time now|now(?= $| please)"
    r"|this (?:week|weekend|month|year|morning|afternoon|evening|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday)|(?:next|last|past|coming) (?:week|weekend|month|year|night|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday)|how long ago|how (?:many|much) \w+ ago|(?:days|weeks|months|time) (?:left )?until",
    "de": r"heute|heutige\w?|gestern|gestrige\w?|vorgestern|übermorgen|jetzt|derzeit|gerade eben|im moment"
    r"|(?<!am )(?<!der )(?<!den )(?<!dem )(?<!des )(?<!guten )(?<!jeden )(?<!jedem )(?<!diesen )"
    # The word is Dutch too, and means the morning behind these.
    r"(?<!goede )(?<!de )(?<!elke )(?<!iedere )(?<!deze )(?<!s )morgen"
    r"|wie viel uhr|wieviel uhr|wie spät|welche[rs]? (?:tag|datum|jahr|monat|uhrzeit|wochentag) (?:ist|haben)"
    r"|welchen (?:tag|monat|wochentag) haben|(?:aktuelle|heutige)[nrs]? (?:datum|uhrzeit|zeit|tag|jahr|monat)"
    r"|diese (?:woche|nacht)|diese[rsn]? (?:woche|monats?|jahre?s?|abend|morgen|wochenende)"
    r"|(?:nächste|letzte|vergangene|kommende)[rsnm]? (?:woche|monats?|jahre?s?|nacht|wochenende)"
    r"|wie lange (?:noch )?bis",
    "fr": r"aujourd hui|hier|avant hier|demain|après demain|maintenant|en ce moment|actuellement|ce soir|ce matin"
    r"|cet après midi|cette (?:semaine|année|nuit)|ce (?:mois|week end)|quelle heure est il|quelle heure il est"
    r"|quel jour (?:est|sommes|on est)|quelle date (?:est|sommes)|la date (?:actuelle|du jour)|l heure actuelle"
    r"|(?:semaine|année|mois|nuit) (?:prochaine?|dernière|dernier|passée?)|(?:mois|an) (?:prochain|dernier|passé)",
    "es": r"hoy|ayer|anteayer|(?<!la )(?<!de )(?<!por )(?<!cada )(?<!una )mañana|pasado mañana|ahora|ahora mismo|anoche"
    r"|esta (?:semana|noche|mañana|tarde)|este (?:mes|año|fin de semana)|qué hora es|qué horas son"
    r"|qué día (?:es|estamos)"
    r"|qué fecha (?:es|estamos)|a qué fecha estamos|(?:fecha|hora) actual|actualmente|en este momento"
    r"|(?:semana|mes|año) (?:próxim[oa]|pasad[oa]|que viene)|(?:próxim[oa]|pasad[oa]) (?:semana|mes|año)",
    "it": r"oggi|ieri|l altro ieri|domani|dopodomani|adesso|in questo momento|attualmente|stasera|stamattina|stanotte"
    r"|questa (?:settimana|sera|mattina|notte)|questo (?:mese|weekend|fine settimana)|quest anno|che ore sono|che ora è"
    r"|che giorno è|che data è|(?:data|ora) (?:attuale|di oggi)|(?:settimana|mese|anno) (?:prossim[oa]|scors[oa])"
    r"|(?:prossim[oa]|scors[oa]) (?:settimana|mese|anno)",
    "pt": r"hoje|ontem|anteontem|amanhã|agora|neste momento|atualmente|esta (?:semana|noite|manhã|tarde)"
    r"|este (?:mês|ano)"
    r"|que horas são|que dia é|que data é|em que dia estamos|(?:data|hora) (?:atual|de hoje)"
    r"|(?:semana|mês|ano) (?:próxim[oa]|passad[oa]|que vem)|(?:próxim[oa]|passad[oa]) (?:semana|mês|ano)",
    "nl": r"vandaag|gisteren|eergisteren|overmorgen|vanavond|vanochtend|vanmiddag|vannacht|op dit moment|momenteel"
    r"|hoe laat is het|welke (?:dag|datum"
    r"|maand) is het"
    r"|huidige (?:datum|tijd|dag|week|maand|jaar)|deze (?:week|maand|ochtend|middag|avond)|dit (?:jaar|weekend)"
    r"|(?:volgende|vorige|afgelopen|komende) (?:week|maand|jaar|weekend)|nu(?= $)",
    "ru": r"сегодня|сегодняшн\w+|вчера|вчерашн\w+|позавчера|завтра|завтрашн\w+|послезавтра|сейчас|теперь"
    r"|который час|сколько времени(?= $| сейчас)|какое (?:сегодня )?число|какой (?:сейчас|сегодня) (?:день|год|месяц)"
    r"|на этой неделе|в этом (?:году|месяце)|(?:на )?(?:прошлой|следующей|будущей) неделе"
    r"|в (?:прошлом|следующем|будущем) (?:году|месяце)|текущ\w+ (?:дата|время|год|месяц|день)",
}
#: The same for scripts without blanks between words.
_UNSPACED: Final = (
    r"今天|昨天|前天|明天|后天|後天|现在|現在|目前|此刻|今晚|今早|几点|幾點|几号|幾號|星期几|星期幾|今年|去年|明年|"
    r"这周|這週|本周|本週|上周|上週|下周|下週|这个月|這個月|本月|上个月|上個月|下个月|下個月|"
    r"今日|昨日|明日|明後日|何時(?!間)|何曜日|何日ですか|今週|先週|来週|今月|先月|来月|来年|今夜|今晩|今朝|昨夜|今すぐ|今は|今、"
)
_SPOKEN = re.compile(f" (?:{'|'.join(_PHRASES.values())}) ")
_WRITTEN = re.compile(_UNSPACED)


def asks_time(text: str) -> bool:
    """Test if a question speaks of the present moment: `today`, `this week`, `What time is it?`.

    >>> asks_time("Which shops are open today?"), asks_time("When was the lighthouse built?")
    (True, False)
    """
    # Each word has a blank of its own on both sides, so that phrases that follow each other are all found.
    return bool(_SPOKEN.search(line_of(text)) or _WRITTEN.search(unicodedata.normalize("NFKC", text)))


def describe(asked_at: str) -> str:
    """Return the moment of asking as a sentence for a prompt.

    >>> describe("2026-11-23T09:35:49.120Z")
    'Today is Monday, 2026-11-23, and the time is 09:35 UTC.'
    """
    moment = datetime.fromisoformat(asked_at)
    return f"Today is {_DAYS[moment.weekday()]}, {moment:%Y-%m-%d}, and the time is {moment:%H:%M} UTC."
