"""Find from the words of a statement if it corrects another, is of the past or supposes; a table for each language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

#: A statement that *corrects* takes the place of an earlier one whose subject it need not name; one that *updates*
#: takes the place of one about the same subject. *Past* is what no longer holds, *refers* what may tell of it.
#: In English a word that is more often none ("I actually like it", "make it fun") counts only where a clause begins.
#: *Supposes* asserts nothing, *concludes* rests on what was said before. *Explores* opens a talk that asserts nothing,
#: *interrupts* opens another topic, *returns* ends either. *Denies* tells that somebody was wrong,
#: *commands* speaks to the machine, not of anything.
Cue: TypeAlias = Literal[
    "corrects",
    "updates",
    "past",
    "refers",
    "supposes",
    "concludes",
    "explores",
    "interrupts",
    "returns",
    "denies",
    "commands",
]

_READ: Final = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))
#: Words that say nothing about a subject or a value, in the languages that have a table.
SMALL_WORDS: Final = frozenset(" ".join(_READ.pop("small_words")).split())
#: The table of each language.
TABLES: Final[Sequence[Mapping[Cue, str]]] = tuple(
    {cue: "".join(pieces) for cue, pieces in table.items()} for table in _READ.values()
)

#: Corrections that are as often said for emphasis: alone, and without a number or a name, they are none.
EMPHATIC: Final = r"actually|eigentlich|doch nicht|en fait|finalement|plutôt|en realidad|al final"
#: Words of a question that asks for what no longer holds.
ASKING_HISTORY: Final = (
    r"before|earlier|previous(?:ly)?|originally|formerly|used to|in the past|history|at first|superseded|no longer"
    r"|vorher|früher\w*|ursprünglich\w*|bisher\w*|avant|auparavant|précédente?s?|antes|anterior(?:es)?|anteriormente"
)
#: The verbs between a subject and its value: of now, and of the past.
CLAIMING: Final = r"is|are|will be|ist|sind|wird|est|sont|sera|es|son|será|(?:has |have )?(?:moved|changed) to"
PAST_VERBS: Final = r"was|were|war|waren|était|étaient|era|eran"
#: Words by which somebody speaks of themselves, and words before a thing of which there is only this.
FIRST_PERSON: Final = r"i|we|ich|wir|je|nous|yo"
DEFINITE: Final = r"the|our|this|der|die|das|unser|unsere|le|la|les|notre|el|los|las|nuestro|nuestra"
#: Words that turn a statement into its opposite.
NEGATIONS: Final = r"not|no longer|never|nicht|kein|keine|nie|pas|plus|jamais|nunca|ya no"


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
