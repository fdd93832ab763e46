"""Tells from the words of a statement if it corrects another, is of the past, supposes or leaves its topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from batos.memory.claims.cue_tables import ASKING_HISTORY, EMPHATIC, TABLES, Cue

#: Cues that count only where a statement begins.
_AT_START: Final[frozenset[Cue]] = frozenset({"concludes", "interrupts"})
#: A break after which a clause that opens another topic goes on: "Hold on - ...", not "Hold on VendorA".
_BREAK: Final = r"\s*[-–—,:;.!]"


def _pattern(cue: Cue) -> re.Pattern[str]:
    any_of = "|".join(table[cue] for table in TABLES)
    opening = r"\A\W*" if cue in _AT_START else r"(?<!\w)"
    closing = _BREAK if cue in _AT_START else r"(?!\w)"
    return re.compile(f"{opening}(?:{any_of}){closing}", re.IGNORECASE)


_PATTERNS: Final[Mapping[Cue, re.Pattern[str]]] = {cue: _pattern(cue) for cue in TABLES[0]}
#: Signs that something is supposed, where a value is noted in a few words: "(tentative)", "Draft: ...".
_NOTED: Final = re.compile(
    r"\((?:tentative|draft|provisional|tbc|vorläufig|entwurf|provisoire|brouillon|provisional|borrador)\)|\Adraft:",
    re.IGNORECASE,
)
_EMPHATIC: Final = re.compile(rf"(?<!\w)(?:{EMPHATIC})(?!\w),?", re.IGNORECASE)
_ALONE: Final = re.compile(r"(?<!\w)(?:i|ich|je|yo|my|mein\w*|mon|ma|mi)(?!\w)", re.IGNORECASE)
_ASKING_HISTORY: Final = re.compile(rf"(?<!\w)(?:{ASKING_HISTORY})(?!\w)", re.IGNORECASE)
# Words of somebody else, which are no cue of who quotes them.
_QUOTED: Final = re.compile(r"(?<!\w)'[^'\n]{12,}'(?!\w)|\"[^\"\n]{12,}\"|“[^“”\n]{12,}”|«[^«»\n]{12,}»|„[^„“\n]{12,}“")
#: Statements whose cues are kept.
_KNOWN: Final = 8_192
_ASKED: Final = re.compile(r"\A\s*¿|[?？؟][\"'”’»)\]」』]*\s*\Z|(?:吗|呢|か)[。！]?\s*\Z")


@lru_cache(maxsize=_KNOWN)
def has(cue: Cue, statement: str) -> bool:
    """Test if a statement has a cue.

    >>> has("corrects", "No wait, make that Tuesday."), has("corrects", "It is Tuesday.")
    (True, False)
    >>> has("updates", "Das Treffen ist jetzt in Ulm."), has("supposes", "Podríamos ir a Cádiz.")
    (True, True)
    """
    return _PATTERNS[cue].search(_QUOTED.sub(" ", statement)) is not None


def before(cue: Cue, statement: str) -> str:
    """Return the words before a cue; "" if it is not there."""
    found = _PATTERNS[cue].search(statement)
    return statement[: found.start()] if found else ""


def without(cue: Cue, statement: str) -> str:
    """Return a statement without the words of a cue."""
    return _PATTERNS[cue].sub(" ", statement)


def is_past(statement: str) -> bool:
    """Test if a statement says that it no longer holds; of a person's own past it is true.

    >>> is_past("Originally the price was 9 euros."), is_past("I originally studied law.")
    (True, False)
    """
    return has("past", statement) and _ALONE.search(statement) is None


def asks_history(question: str) -> bool:
    """Test if a question asks for what no longer holds, so that this is worth to be shown, marked.

    >>> asks_history("On which day was the launch before?"), asks_history("On which day is the launch?")
    (True, False)
    """
    return _ASKING_HISTORY.search(question) is not None


def is_firm(statement: str) -> bool:
    """Test if a statement corrects by more than a word that is as often said for emphasis.

    >>> is_firm("Actually, it is fine."), is_firm("Actually, let us switch to tea instead.")
    (False, True)
    """
    return has("corrects", _EMPHATIC.sub(" ", statement))


def is_question(statement: str) -> bool:
    """Test if a statement is a question, which claims nothing."""
    return _ASKED.search(statement) is not None


def is_noted_as_supposed(value: str) -> bool:
    """Test if a short value calls itself a draft or tentative.

    >>> is_noted_as_supposed("phased rollout (tentative)")
    True
    """
    return _NOTED.search(value) is not None
