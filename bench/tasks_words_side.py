"""Patterns by which an answer declines, by language: it says that the text does not say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tasks_texts_side import plain

_PATTERNS: Final[Mapping[str, Sequence[str]]] = {
    "en": (
        (
            r"\b((does|do|did) not|doesn't|don't|didn't)( \w+)? (say|mention|state|specify|contain|provide|"
            r"include|give|list|indicate|name|record|tell|show|reveal|note|cover|know|hold|disclose|have (any|the|"
            r"this|that|enough|information))\b"
        ),
        (
            r"\b((is|are|was|were|been|be) not|isn't|aren't|wasn't|weren't)( \w+)? (mentioned|stated|given|"
            r"specified|provided|included|listed|indicated|named|recorded|said|available|found|known|noted|"
            r"disclosed|written|clear from|in the (text|file|document|table|notes?|minutes|letter))\b"
        ),
        r"\b(there is|there's|there are|i have|i found|contains?|gives?|found|provides?) (no|nothing)\b",
        r"\bno (information|mention|indication|record|details?|data|such|word)\b",
        (
            r"\b(can't|cannot|can not|could not|couldn't|unable to|not able to)( \w+)? (find|determine|answer|"
            r"tell|say|provide|know|be (determined|found|answered|said))\b"
        ),
        r"\bnothing (about|on|in|there|is said|says)\b",
        r"\bnone of (the|your|my|these)\b.*\b(say|mention|give|contain|state|name)",
        r"\bnot (mentioned|stated|given|specified|provided|included|listed|said|available|found in|known|in the)\b",
        r"\bunknown\b",
        r"\bsilent (on|about)\b",
    ),
    "de": (
        (
            r"\b(steht|stehen|findet sich|finden sich|ist|sind|wird|werden|gibt es|geht)\b.{0,60}\b(nicht|nichts|"
            r"kein\w*)\b"
        ),
        (
            r"\b(kein\w*|nicht|nichts)\b.{0,50}\b(angabe\w*|angegeben|erwahnt\w*|genannt|information\w*|"
            r"hinweis\w*|auskunft|enthalten|beschrieben|bekannt|hervor|gesagt|zu finden|vermerkt)\b"
        ),
        (
            r"\b(nennt|nennen|sagt|sagen|erwahnt|erwahnen|enthalt|enthalten|verrat|weiss|macht)\b.{0,40}\b(nicht|"
            r"nichts|kein\w*)\b"
        ),
        r"\bunbekannt\b",
    ),
    "fr": (
        r"\b(ne|n')\s?\w+.{0,30}\b(pas|rien|aucun\w*|nulle part)\b",
        r"\baucune? (information|mention|indication|precision|donnee)\b",
        r"\b(pas|non) (mentionne|indique|precise|donne|communique)",
        r"\binconnu",
    ),
    "es": (
        (
            r"\bno (se |lo |la |consta|dice|aparece|figura|hay|indica|menciona|especifica|contiene|ofrece|da |"
            r"esta|puedo|proporciona|tengo|encuentr)"
        ),
        r"\bninguna? (informacion|mencion|dato|nota)\b",
        r"\b(desconocid[oa]|nada sobre|nada de)\b",
    ),
    "zh": (
        r"(没有|未|并未|沒有|无法|不能|没|不)[^。,]{0,12}(提到|说明|提及|写|给出|列出|规定|注明|记载|包含|提供|找到|确定|回答|知道|说|信息|得知|相关|指出|明确)",
        r"(不知道|不清楚|不详|无从|未知|没有(相关)?信息)",
    ),
    "ja": (
        r"(記載|記述|言及|情報|説明|記録|案内|明記|掲載|書)[^。]{0,12}(ない|ありませ|いませ|なく|されてお)",
        r"(わかりませ|分かりませ|わからない|分からない|不明|見つかりませ|見つからない|存在しませ|ございませ|触れられていませ)",
    ),
}
#: The patterns without marks over letters: they meet folded texts.
DECLINES: Final[Mapping[str, Sequence[str]]] = {name: tuple(map(plain, each)) for name, each in _PATTERNS.items()}
