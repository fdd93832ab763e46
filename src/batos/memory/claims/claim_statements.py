"""Reads facts, turns and documents into statements: their words, their values, and the attributes of subjects.

A sentence that gives a subject the value of an attribute, and nothing more, can be noted as it stands. A sentence with
any other word, which may be about a feeling, a problem or a wish, is not read so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from batos.memory.claims import cues
from batos.memory.claims.cues import CLAIMING, FIRST_PERSON, PAST_VERBS, SMALL_WORDS
from batos.memory.segmentation import sentence_spans, stems, words

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
_HEADER: Final = re.compile(r"(?:From|To|Date|Subject): .*\n", re.IGNORECASE)
_LETTER: Final = re.compile(r"(?<=\w )(?:[A-HJ-Z]|[IVX]{2,4})(?![\w'’])")
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
    def is_header(self) -> bool:
        """Test if it is the head of a mail, which says who wrote when, and gives way to nothing."""
        return self.given.kind == "turn" and _HEADER.match(self.text) is not None

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


def labels_of_subject(text: str) -> frozenset[str]:
    """Return the letters and Roman numbers that tell what a statement is about from its like, where that is clear.

    >>> labels_of_subject("The meeting of team A is on Monday."), labels_of_subject("My grade is A.")
    (frozenset({'A'}), frozenset())
    """
    found = _SUBJECT.match(text[:_OPENING])
    return frozenset(_LETTER.findall(found[1])) if found else frozenset()


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


Attribute: TypeAlias = Literal["residence", "origin", "work", "name", "value", "is", "allergy"]
ATTRIBUTES: Final[tuple[Attribute, ...]] = ("residence", "origin", "work", "name", "value", "is", "allergy")

#: Characters of the longest sentence that is read.
LONGEST: Final = 200
_UNSPACED: Final = frozenset({"Chinese", "Japanese"})
#: The value of a template by its mark: the name of its group, and what it may be.
_SPACED_VALUES: Final = {mark: rf"(?P<{mark}>\S.{{0,90}}?)" for mark in "vnw"}
_UNSPACED_VALUES: Final = {mark: rf"(?P<{mark}>[^，。、,;；!！?？\s]{{1,20}}?)" for mark in "vnw"}
_FIGURE: Final = re.compile(r"\d|[一二三四五六七八九十百千万两]")
_TOKEN: Final = re.compile(r"[^\s,;()\"“”„«»]+")
#: The words of the longest value in plain words.
_MOST_WORDS: Final = 4
_END: Final = re.compile(r"[.。]?\s*\Z")


class GivenFact(NamedTuple):
    """A subject, the attribute of which it is given a value, and the language in which this is said."""

    subject: str
    attribute: Attribute
    value: str
    language: str
    #: The subject is who speaks.
    is_self: bool


class _Language(NamedTuple):
    """The patterns of a language, and its words."""

    name: str
    patterns: tuple[tuple[Attribute, re.Pattern[str]], ...]
    small: frozenset[str]
    days: frozenset[str]
    unless: frozenset[str]
    lead: re.Pattern[str]
    tail: re.Pattern[str]

    def read(self, sentence: str, wanted: Collection[Attribute]) -> GivenFact | None:
        for attribute, pattern in self.patterns:
            found = pattern.fullmatch(sentence) if attribute in wanted else None
            if found is not None and not self._says_more(sentence):
                mark = next(each for each in "vnw" if found.groupdict().get(each))
                if self._is_value(found[mark], mark):
                    subject = (found["s"] or found["self"] or "").strip()
                    return GivenFact(subject, attribute, found[mark].strip(), self.name, not found["s"])
        return None

    def _says_more(self, sentence: str) -> bool:
        if self.name in _UNSPACED:
            return any(each in sentence for each in self.unless)
        return not self.unless.isdisjoint(words(sentence))

    def _is_value(self, text: str, mark: str) -> bool:
        if self.name in _UNSPACED:
            return mark != "n" or bool(_FIGURE.search(text) or any(each in text for each in self.days))
        tokens = [each.strip(".:") for each in _TOKEN.findall(text)]
        if mark == "w":
            return 0 < len(tokens) <= _MOST_WORDS and all(each.isalpha() for each in tokens)
        return self._is_named_or_counted(tokens, named=mark == "v")

    def _is_named_or_counted(self, tokens: list[str], *, named: bool) -> bool:
        """Test if tokens are a name or a figure, with small words, and a unit behind a figure."""
        has_value, before = False, ""  # what stands before a token: a figure, a unit, or another word
        for token in filter(None, tokens):
            is_count = bool(_FIGURE.search(token))
            if before == "unit" and is_count:
                return False  # a calculation
            if is_count or token.casefold() in self.days or (named and token[:1].isupper()):
                has_value, before = True, "figure" if is_count else ""
            elif token.casefold() in self.small or token[:1].isupper():
                before = ""
            elif before == "figure":
                before = "unit"
            else:
                return False
        return has_value


def facts_in(message: str, sentences: list[str]) -> list[GivenFact]:
    """Return the facts of a message if each of its sentences gives one, or only asks to note them; else nothing."""
    found: list[GivenFact] = []
    for language in _languages():
        several = [language.tail.sub("", each.strip()) for each in sentences]
        facts = [language.read(_bare(language.lead.sub("", each)), ATTRIBUTES) for each in several if _bare(each)]
        given = [each for each in facts if each is not None]
        if len(given) == len(facts) > len(found):
            found = given
    return found if message.strip() else []


def read_attribute(sentence: str, wanted: Collection[Attribute] = ATTRIBUTES) -> GivenFact | None:
    """Return the fact that a sentence gives, None where it gives none of those wanted, or says more.

    >>> read("My sister moved to Hamburg.")[:3], read("My sister moved to Hamburg and I miss her.")
    (('My sister', 'residence', 'Hamburg'), None)
    """
    if len(sentence) > LONGEST:
        return None
    bare = _bare(sentence)
    return next((found for each in _languages() if (found := each.read(bare, wanted)) is not None), None)


def _bare(sentence: str) -> str:
    return _END.sub("", sentence.strip())


@lru_cache(maxsize=1)
def _languages() -> tuple[_Language, ...]:
    listed = tomllib.loads(files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8"))
    return tuple(_language(name, table) for name, table in listed.items())


def _language(name: str, table: Mapping[str, Any]) -> _Language:
    small, days, unless = (frozenset(table[key].split()) for key in ("small", "days", "unless"))
    gap = "" if name in _UNSPACED else r"(?:\s+|(?<=['’]))"
    own = table["self"]
    lead = re.compile(rf"\A\s*(?:{table['lead']})[\s,:，：、]*", re.IGNORECASE)
    tail = re.compile(rf"[\s,;，；、–—-]*(?:{table['tail']})\s*[.。!！]?\s*\Z", re.IGNORECASE)
    subject = rf"(?:(?P<s>{table['subject']}){gap}|(?P<self>{own.strip('|')}){gap}{'|' if own.endswith('|') else ''})"
    return _Language(name, tuple(_patterns(name, table, subject)), small, days, unless, lead, tail)


def _patterns(name: str, table: Mapping[str, Any], subject: str) -> Iterator[tuple[Attribute, re.Pattern[str]]]:
    values = _UNSPACED_VALUES if name in _UNSPACED else _SPACED_VALUES
    for attribute in ATTRIBUTES:
        for template in table.get(attribute, ()):
            said = template
            for mark, value in values.items():
                said = said.replace(f"{{{mark}}}", value)
            yield attribute, re.compile(f"{subject}{said}", re.IGNORECASE)
