"""Reads texts as the checks of tasks do: folded, their numbers, words, sentences, bullets and language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

#: Small words by which a language is told.
STOPS: Mapping[str, frozenset[str]] = {
    "en": frozenset(
        "the and of is are to in that for with was it on as not by from be this at an has have were you your they"
        " which".split()
    ),
    "de": frozenset(
        "der die das und ist sind nicht ein eine mit fur von zu den dem auf es im wird auch sie ich wir oder bei aus"
        " nach des um kann weil dass du je pro bis ab am vom zum zur einen einer eines kein keine nur noch wenn wie was"
        " hat kostet mindestens in an ohne so er haben war".split()
    ),
    "fr": frozenset(
        "le la les des et est une un dans pour que qui pas sur avec au aux du par sont vous il elle ce cette en plus ne"
        " de".split()
    ),
    "es": frozenset(
        "el la los las y es una un en para que con por del al no se su son como lo mas pero de a hay esta".split()
    ),
}
_MARKS = str.maketrans(
    {"’": "'", "‘": "'", "`": "", "*": "", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "−": "-", "\u2011": "-"}
)
MARKER = re.compile(r"^\s*(?:[-*+•·–]|\d{1,2}[.)、]|[（(]?[a-zA-Z][.)]|[一二三四五六七八九十]、)\s*(?=\S)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_SHORT = re.compile(
    r"\b(a\.m|p\.m|Mr|Mrs|Ms|Dr|St|No|Nr|ca|bzw|usw|approx|e\.g|i\.e|z\.B|vs|etc|M|Mme|Sr|Sra|art|Abs)\.", re.IGNORECASE
)
_ORDINAL = re.compile(
    r"(?<=\d)\.(?=\s+(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Kalender|[a-zäöü]))"
)  # fmt: skip
_ENDS = re.compile(
    r"(?<=[.!?…])[\"'»”)\]]*\s+|(?<=[。！？])[」”]?|\n\s*\n|\n(?=\s*(?:[-*•]|\d))"
)  # fmt: skip
_FENCE = "```"


def plain(text: str) -> str:
    """Return a text without the marks over its letters."""
    found = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(each for each in found if not unicodedata.combining(each))


def fold(text: str) -> str:
    """Return a text without case, accents, marks of emphasis and repeated blanks.

    >>> fold("**Größe**:  5 m")
    'grosse: 5 m'
    """
    return re.sub(r"[ \t\u00a0\u202f]+", " ", plain(text.translate(_MARKS)).casefold()).strip()


def find(wanted: str, folded: str) -> int:
    """Return where a wanted string begins in a folded text, or -1; one behind "re:" is a regular expression.

    A string that begins with a letter or digit must begin a word, and one that ends with a digit must end a number.

    >>> find("64", "640 or 64.5"), find("64", "it is 64.")
    (-1, 6)
    """
    if wanted.startswith("re:"):
        found = re.search(plain(wanted[3:]), folded, re.IGNORECASE | re.DOTALL | re.MULTILINE)
        return found.start() if found else -1
    text = fold(wanted)
    before = r"(?<!\d)(?<!\d[.,])" if text[:1].isdigit() else r"(?<![a-z])" if re.match("[a-z]", text) else ""
    after = r"(?!\d)(?![.,]\d)" if text[-1:].isdigit() else ""
    found = re.search(before + re.escape(text).replace(r"\ ", r"\s+") + after, folded)
    return found.start() if found else -1


def numbers(text: str) -> list[float]:
    """Return the numbers of a text; 1,234.5, 1.234,5, 1 234,5 and 1'234.5 are read alike."""
    pattern = r"(?<![\w])-?\d+(?:[.,'\u00a0\u202f ]\d+)*|\d+(?:[.,]\d+)*"
    return [value for each in re.findall(pattern, text.replace("−", "-")) for value in readings(each)]


def readings(token: str) -> list[float]:
    """Return the values that the text of a number may mean."""
    joined = re.sub(r"(?<=\d)['\u00a0\u202f ](?=\d{3}(?!\d))", "", token)
    if re.search(r"[ '\u00a0\u202f]", joined):
        return [value for part in re.split(r"[ '\u00a0\u202f]", joined) for value in readings(part)]
    found = []
    for text in {joined.replace(",", ""), joined.replace(".", "").replace(",", "."), joined.replace(",", ".")}:
        try:
            found.append(float(text))
        except ValueError:  # a date or a version: its parts are read below
            continue
    return found or [float(part) for part in re.findall(r"\d+", joined)]


def count_words(text: str) -> int:
    """Return how many words a text has; each Chinese or Japanese character is one."""
    return len(_CJK.findall(text)) + len([each for each in _CJK.sub(" ", text).split() if re.search(r"\w", each)])


def lines(text: str) -> list[str]:
    """Return the lines that are not blank, without the marks of code fences."""
    return [each for each in text.splitlines() if each.strip() and not each.strip().startswith(_FENCE)]


def count_bullets(text: str) -> int:
    """Return how many lines begin with a bullet or a number."""
    return sum(bool(MARKER.match(each)) for each in lines(text))


def count_sentences(text: str) -> int:
    """Return how many sentences a text has."""
    found = _SHORT.sub(lambda short: short.group(0).replace(".", ""), text)
    found = re.sub(r"(?m)^\s*\d{1,2}[.)]\s+", "", found)
    return len([each for each in _ENDS.split(_ORDINAL.sub("", found).strip()) if re.search(r"\w", each)])


def language(text: str, likely: str | None = None) -> str | None:
    """Return the language of a text by its script or its small words, `likely` among equals; None if it is unclear."""
    prose = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    if len(re.findall(r"[\u3040-\u30ff]", prose)) >= 3:
        return "ja"
    if len(_CJK.findall(prose)) > len(re.findall(r"[A-Za-z]{3,}", prose)):
        return "zh"
    found = re.findall(r"[a-z]+", fold(prose))
    counts = {name: sum(found.count(each) for each in stops) for name, stops in STOPS.items()}
    best = max(counts, key=lambda each: (counts[each], each == likely))
    return best if counts[best] else None
