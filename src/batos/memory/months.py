"""Names months in several languages, and finds the months and days that a text names in any notation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_NAMES: Final = (
    "january jan januar jänner janvier enero gennaio gen janeiro januari января",
    "february feb februar février fév febrero febbraio fevereiro februari февраля",
    "march mar märz mars marzo março maart марта",
    "april apr avril abril aprile апреля",
    "may mai mayo maggio maio mei мая",
    "june jun juni juin junio giugno junho июня",
    "july jul juli juillet julio luglio julho июля",
    "august aug août agosto augustus августа",
    "september sep sept septembre septiembre settembre setembro сентября",
    "october oct oktober okt octobre octubre ottobre outubro октября",
    "november nov novembre noviembre novembro ноября",
    "december dec dezember dez décembre déc diciembre dicembre dezembro декабря",
)
#: The number of each month by its names.
MONTH: Final = {word: number for number, said in enumerate(_NAMES, start=1) for word in said.split()}
#: A pattern of all names.
NAME: Final = "|".join(sorted(MONTH, key=len, reverse=True))
#: Names of months that are other words where they are not capitalised.
CAPITALISED: Final = frozenset({"may", "march", "mar", "sept", "dec", "set", "gen", "august"})

_FORMS: Final = re.compile(
    r"(?<![\d.-])\d{4}-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>\d\d))?(?![\d-])"
    r"|(?<!\d)\d{4}(?P<m2>0[1-9]|1[0-2])(?P<d2>[0-3]\d)(?=T\d|\b)"
    r"|(?<![\d.])(?P<d3>[0-3]?\d)\.\s?(?P<m3>0?[1-9]|1[0-2])\.(?:\s?\d{2,4})?(?!\d)"
    rf"|(?:(?<!\d)(?P<d4>\d{{1,2}})(?:st|nd|rd|th|er|º|ª|\.)?\s(?:of\s|de\s)?)?(?<!\w)(?P<name>{NAME})\b\.?"
    r"(?:\s(?P<d5>\d{1,2})(?:st|nd|rd|th)?(?![\d:]))?",
    re.IGNORECASE,
)
_GROUPS: Final = (("m", "d"), ("m2", "d2"), ("m3", "d3"))


def months_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield each month and each day of a month that a text names, in one notation, with the word for it.

    >>> list(months_in("Paid on 2 May; 2026-02.")), list(months_in("You may go."))
    ([('~05', 'May'), ('~05-2', '2'), ('~02', '02')], [])
    """
    for found in _FORMS.finditer(text):
        name = found["name"]
        if name is None:
            written, day = next((found[m], found[d]) for m, d in _GROUPS if found[m])
            month = int(written)
        elif name in CAPITALISED:
            continue
        else:
            month, written, day = MONTH[name.casefold()], name, found["d4"] or found["d5"]
        yield f"~{month:02}", written
        if day:
            yield f"~{month:02}-{int(day)}", day
