"""Reads statements that give a subject a value, such as "The launch of Orion is on 18 March", and compares them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from batos.memory.claims import attributes
from batos.memory.claims.attributes import Attribute, GivenFact
from batos.memory.claims.claim_statements import telling, values
from batos.memory.claims.cue_tables import CLAIMING, DEFINITE, NEGATIONS
from batos.memory.sentences import sentence_spans

#: The assertions of a text that are kept at most, and the characters of the longest one.
MOST: Final = 12
LONGEST: Final = 200

#: Attributes of which a subject has one value at a time.
_ALONE: Final = frozenset[Attribute]({"residence", "work"})
_ASSERTION = re.compile(rf"\W*((?:[^\s,.:;]+\s+){{1,8}}?)(?:{CLAIMING})\s+(\S+(?:\s+\S+){{0,11}})\Z", re.IGNORECASE)
_DEFINITE = re.compile(rf"\W*(?:{DEFINITE})\b", re.IGNORECASE)
_NEGATED = re.compile(rf"\b(?:{NEGATIONS})\b", re.IGNORECASE)


class Assertion(NamedTuple):
    """A value that a text gives to a subject, in stems: the span of the sentence, and the words around the value.

    `is_definite`: the sentence speaks of a thing of which there is only this; `is_named`: by a name or a number.
    """

    subject: tuple[str, ...]
    start: int
    end: int
    frame: tuple[str, ...]
    value: tuple[str, ...]
    is_definite: bool
    is_named: bool

    @property
    def is_number(self) -> bool:
        """Tell whether the value has a number in it."""
        return any(map(str.isdigit, "".join(self.value)))

    def gives_way(self, later: Assertion) -> bool:
        """Tell whether a later assertion gives the same subject another value of the same kind.

        >>> one, other, third = (next(assertions_of(f"The lamp is {word}.")) for word in ("9 m", "12 m", "7 years old"))
        >>> one.gives_way(other), one.gives_way(third), one.gives_way(one)
        (True, False, False)
        """
        return (
            self.subject == later.subject
            and self.frame == later.frame
            and self.value != later.value
            and self.is_number == later.is_number
            and (self.is_number or (self.is_definite and later.is_definite))
        )


def assertions_of(text: str) -> Iterator[Assertion]:
    """Yield the assertions of a text: of now, none that denies, each with a value that is a number or a name.

    >>> [each.subject for each in assertions_of("The launch of Orion is on 18 March. It was on 15 March. Is it so?")]
    [('launch', 'orion')]
    """
    many = 0
    for start, end in sentence_spans(text):
        found = _read(text[start:end].rstrip(), start) if end - start <= LONGEST else None
        if found is not None and many < MOST:
            many += 1
            yield found


def _read(sentence: str, start: int) -> Assertion | None:
    if (given := attributes.read(sentence, _ALONE)) is not None and not _DEFINITE.match(given.subject):
        return _assertion_of(given, start, start + len(sentence))
    found = _ASSERTION.match(sentence)
    if found is None or sentence.endswith(("?", "？")) or _NEGATED.search(found[2]):
        return None
    known = values(sentence)
    subject, said = telling(found[1]), telling(found[2])
    value = said & known
    if not subject or not value:
        return None
    return Assertion(
        tuple(sorted(subject)), start, start + len(sentence), tuple(sorted(said - value)), tuple(sorted(value)),
        _DEFINITE.match(found[1]) is not None, bool(subject & known),
    )  # fmt: skip


def _assertion_of(given: GivenFact, start: int, end: int) -> Assertion | None:
    subject, value = telling(given.subject) or frozenset({"i"} if given.is_self else ()), telling(given.value)
    if not subject or not value:
        return None
    frame = (f"@{given.attribute}",)
    return Assertion(tuple(sorted(subject)), start, end, frame, tuple(sorted(value)), is_definite=True, is_named=False)
