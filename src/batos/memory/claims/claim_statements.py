"""Reads facts, turns and documents into statements: their words, their values, and the cues in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from batos.memory.claims import cues
from batos.memory.claims.cue_tables import CLAIMING, FIRST_PERSON, PAST_VERBS, SMALL_WORDS
from batos.memory.sentences import sentence_spans
from batos.memory.terms import stems, words

#: The standing of a statement: it holds, another one took its place, it was not meant to hold here, or who said it may
#: not say so.
StatementStanding: TypeAlias = Literal["current", "superseded", "out of scope", "untrusted"]

#: A label in brackets before a text: who speaks, for whom it is, or that it no longer holds.
_LABEL = re.compile(r"\s*\[([^\[\]]{2,200})\]:?\s*(?=\S)")
# The speaker, before a colon: "Ana (Head of Sales): ...".
_SPEAKER = re.compile(r"\s*([\w.' -]{1,60}\([^()]{2,80}\)):\s*(?=\S)")
_RESTRICTED = re.compile(
    r"(?:restricted|confidential|private|secret|classified|internal only|scope|vertraulich|geheim|confidentiel"
    r"|confidencial)\b",
    re.IGNORECASE,
)
_INVALID = re.compile(
    r"(?:invalid(?:ated)?|obsolete|superseded|deprecated|outdated|void|ungültig|veraltet|obsolète|obsoleto)\b",
    re.IGNORECASE,
)
# A name: a capitalised word that does not begin the text, or letters in the middle of a word.
_NAME = re.compile(r"(?<=[\w,;:'’)\]] )[A-Z][\w&.-]*|\b\w+[a-z][A-Z]\w*|\b[A-Z]{2,}\b")
#: The sentences of a text that are heard, from its beginning: each is compared with those of other texts.
MOST_STATEMENTS: Final = 32
#: The characters of a sentence in which its subject stands.
_OPENING: Final = 400
#: Texts whose sentences are kept.
_READ: Final = 512
_UNIT = re.compile(r"\d[\d.,]*\s?([^\W\d]+)")
_FIRST = re.compile(rf"\W*(?:{FIRST_PERSON})\b", re.IGNORECASE)
_SUBJECT = re.compile(rf"\W*((?:[^\s.:;]+\s+){{1,10}}?)(?:{CLAIMING}|{PAST_VERBS})\b", re.IGNORECASE)
_ENDING = re.compile(r"[_-](?:v\d+|corrected|updated|revised|new|final|latest)$")
_EARLIER_ID = re.compile(r"^f[-_]|[-_]v?\d+$")


@dataclass(frozen=True, slots=True)
class ClaimText:
    """A text that was given: a fact with its key, a turn, or a document.

    `at` is when it holds from. Texts of one `conversation` are one talk: what stands alone has a name of its own there.
    `supersedes` and `depends_on` name keys of facts. `authority` is the rank of who gave it, `speaker` the name, and
    `doubt` grows as the trust in it falls: nothing gives way to what is trusted less.
    """

    id: int
    kind: str
    text: str
    at: str = ""
    conversation: str = ""
    key: str = ""
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()
    authority: str = ""
    doubt: int = 0
    speaker: str = ""


@dataclass(slots=True)
class Statement:
    """A sentence of a text, or the whole value of a fact, and its standing among the others.

    `text` are its own words, from `start` on with the label before them.
    `terms` are the stems that tell something, `values` those of them with a digit or of names, `subject` those of a
    fact's key. `by` is the text that took its place. `rests_on` are statements without which it does not hold.
    """

    given: ClaimText
    start: int
    end: int
    text: str
    terms: frozenset[str]
    values: frozenset[str]
    subject: frozenset[str]
    label: str
    #: A question claims nothing.
    is_claim: bool
    standing: StatementStanding = "current"
    reason: str = ""
    by: int | None = None
    took_place: bool = False
    is_replaced: bool = False
    rests_on: list[Statement] = field(default_factory=list)

    def mark(self, standing: StatementStanding, reason: str, by: Statement | None = None) -> None:
        """Write down that it does not hold, why, and which statement took its place."""
        self.standing, self.reason = standing, reason
        self.by = by.given.id if by is not None else None

    def rest_on(self, others: Iterable[Statement]) -> None:
        """Write down statements without which it does not hold."""
        self.rests_on.extend(others)

    def gave_way(self, by: Statement) -> bool:
        """Test if the text of another one took its place."""
        return self.standing == "superseded" and self.by == by.given.id

    def replace(self) -> None:
        """Write down that a fact of its key, or one that names it, took its place."""
        self.is_replaced = True

    def take_place(self) -> None:
        """Write down that it took the place of another."""
        self.took_place = True

    @property
    def is_restricted(self) -> bool:
        """Test if its label keeps it from who has no right to it."""
        return _RESTRICTED.match(self.label) is not None

    @property
    def is_invalid(self) -> bool:
        """Test if its label says that it no longer holds."""
        return _INVALID.match(self.label) is not None

    @property
    def about(self) -> frozenset[str]:
        """Return the stems of what it is about and of what it says of it."""
        return self.terms | self.subject


def statements_of(given: ClaimText) -> list[Statement]:
    """Return the statements of a text: a fact is one, a text has one for each sentence.

    >>> [each.text for each in statements_of(ClaimText(1, "turn", "[Ana]: Oil is dear. Gas was not."))]
    ['Oil is dear.', 'Gas was not.']
    """
    subject = telling(given.key.replace("_", " ").replace("-", " "))
    label, sentences = _read(given.text, given.kind == "fact")
    return [
        Statement(given, each.start, each.end, each.text, each.terms, each.values, subject, label, each.is_claim)
        for each in sentences
    ]


class _Sentence(NamedTuple):
    """A sentence of a text, as each statement of it begins."""

    start: int
    end: int
    text: str
    terms: frozenset[str]
    values: frozenset[str]
    is_claim: bool


@lru_cache(maxsize=_READ)
def _read(text: str, is_fact: bool) -> tuple[str, tuple[_Sentence, ...]]:
    """Return the label of a text, and its sentences; the newest texts of a scope are read again and again."""
    label = _LABEL.match(text)
    named, start = (label[1], label.end()) if label else ("", 0)
    if speaker := _SPEAKER.match(text, start):
        named, start = named or speaker[1], speaker.end()
    whole = is_fact or bool(label and (_RESTRICTED.match(named) or _INVALID.match(named)))
    behind = ((max(begin, start), end) for begin, end in sentence_spans(text) if end > start)
    spans = [(start, len(text))] if whole else list(behind)
    found: list[_Sentence] = []
    for begin, end in spans[:MOST_STATEMENTS]:
        said = text[begin:end]
        own = telling(said), values(said), not cues.is_question(said)
        found.append(_Sentence(begin if found else 0, end, said, *own))
    return named, tuple(found)


def telling(text: str) -> frozenset[str]:
    """Return the stems of a text that tell something.

    >>> sorted(telling("The lamp is at the harbour."))
    ['harbou', 'lamp']
    """
    return frozenset(each for each in stems(text) if each not in SMALL_WORDS and (len(each) > 1 or each.isdigit()))


def values(text: str) -> frozenset[str]:
    """Return the stems of a text that can be a value: what has a digit, and names.

    >>> sorted(values("The keel goes to Bremen for $75,000."))
    ['000', '75', 'bremen']
    """
    digits = {word for word in words(text) if any(map(str.isdigit, word))}
    names = (stem for found in _NAME.finditer(text) for stem in telling(found[0]))
    return frozenset({*digits, *names})


def subject_of(text: str) -> frozenset[str]:
    """Return the stems of what a statement is about, by the verb behind them; nothing where that is not clear.

    >>> sorted(subject_of("The lamp of the tower is red.")), sorted(subject_of("I live in Ulm."))
    (['lamp', 'tower'], ['i'])
    """
    return frozenset(subject_in_order(text))


@lru_cache(maxsize=_READ)
def subject_in_order(text: str) -> tuple[str, ...]:
    """Return the stems of what a statement is about as they follow each other."""
    if _FIRST.match(text):
        return ("i",)
    found = _SUBJECT.match(text[:_OPENING])
    telling_ = telling(found[1]) if found else frozenset()
    return tuple(each for each in stems(found[1]) if each in telling_) if found else ()


def units(text: str) -> frozenset[str]:
    """Return the stems of the words behind the numbers of a text: what they count tells not what they are said of.

    >>> sorted(units("It is 700 euros, or 60 kg."))
    ['euros', 'kg']
    """
    return frozenset(stem for found in _UNIT.finditer(text) for stem in telling(found[1]))


def family(key: str) -> str:
    """Return a key without the ending of a later version.

    >>> family("launch_date_v2"), family("price-corrected")
    ('launch_date', 'price')
    """
    return _ENDING.sub("", key.casefold())


def parts_of_key(key: str) -> list[str]:
    """Return the words of a key, without the marks of a version: another notation of it has beginnings of the same.

    >>> parts_of_key("F-MEETING-LOC-V2")
    ['meeting', 'loc']
    """
    return [each for each in re.split(r"[_\W]+", _EARLIER_ID.sub("", key.casefold())) if each]
