"""Hears new facts, turns and documents: reads the values that they give to subjects, and marks earlier statements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from batos.image import roots
from batos.image.records import TRUST
from batos.image.roots import Root
from batos.memory.claims import claim_statements
from batos.memory.claims.adjudication import adjudicate
from batos.memory.claims.claim_statements import (
    Attribute,
    ClaimText,
    GivenFact,
    Statement,
    family,
    statements_of,
    telling,
    values,
)
from batos.memory.claims.comparisons import RANKS
from batos.memory.claims.cues import CLAIMING, DEFINITE, NEGATIONS
from batos.memory.records import memories_set_aside, memory_claims, memory_records, memory_standings
from batos.memory.records.memory_claims import ASKED, ClaimMark
from batos.memory.records.memory_records import NewDocument
from batos.memory.segmentation import sentence_spans
from batos.objects.prototype import UvmObject, own_slots

#: The longest text (characters) whose statements are claims: a note, not a book.
LONGEST: Final = 4_000
#: The stems that a named subject has at least, by which documents from files are known to speak of one thing.
LEAST_NAMED: Final = 2

_VERSION = re.compile(r"[\W\d_]+|\b(?:v|version|draft|final|new|old|copy)\b", re.IGNORECASE)


def restate(root: Root, document: NewDocument) -> Iterator[tuple[str, str]]:
    """Write down what a new document says of its subjects, and mark what it gives another value to, or itself.

    The later of two statements holds. Yield the name of each memory that marked something, and of that in which it did.
    """
    if document.kind in ("mission", "summary") or sum(len(each.text) for each in document.chunks) > LONGEST:
        return
    if document.kind == "fact" or document.name not in root[roots.DOCUMENTS]:
        return
    made: UvmObject = root[roots.DOCUMENTS][document.name]
    for chunk in memory_records.chunks_of(root, made):
        start = own_slots(chunk)["start"]
        for found in assertions_of(own_slots(chunk)["text"]):
            own = found._replace(start=start + found.start, end=start + found.end)
            subject = " ".join(own.subject)
            for name, *told in memory_claims.statements_about(root, document.user, document.scope, subject):
                other = root[roots.DOCUMENTS][name]
                yield from _compare(root, (other, Assertion(*told)), (made, own))
            memory_claims.note_statement(root, made, subject, tuple(own))


def find_replaced(root: Root, user: str, scope: str, text: str, at: str) -> Iterator[tuple[str, int, int]]:
    """Yield the statements to which a person's text, said at a moment, would give another value.

    Each is the name of its memory and its place there. Nothing is changed.
    """
    for own in assertions_of(text):
        for name, *told in memory_claims.statements_about(root, user, scope, " ".join(own.subject)):
            earlier, slots = Assertion(*told), own_slots(root[roots.DOCUMENTS][name])
            holds = slots["standing"] in ("current", "summarised") and slots["trust"] != "external"
            if holds and memory_claims.stated_at(slots) <= at and earlier.gives_way(own):
                yield name, earlier.start, earlier.end


def _compare(
    root: Root, before: tuple[UvmObject, Assertion], after: tuple[UvmObject, Assertion]
) -> Iterator[tuple[str, str]]:
    if memory_claims.stated_at(own_slots(after[0])) < memory_claims.stated_at(own_slots(before[0])):
        before, after = after, before
    (older, earlier), (newer, later) = before, after
    if not (earlier.gives_way(later) and _speak_of_one(older, newer, later) and _may(older, newer)):
        return
    by = own_slots(newer)
    memories_set_aside.unfold_covering(root, [own_slots(older)["name"]])  # an archive is never changed
    mark = ClaimMark(earlier.start, earlier.end, "superseded", "", by["name"], memory_claims.stated_at(by))
    for chunk in memory_records.chunks_of(root, older):
        if mark_chunk(chunk, [mark]):
            memory_claims.note_marked(newer, own_slots(older)["name"])
            yield by["name"], own_slots(older)["name"]


def _may(older: UvmObject, newer: UvmObject) -> bool:
    """Test if the newer document is trusted as much as the older one and may speak of it, and neither is history.

    Somebody else in a talk of their own contradicts it, and both stand.
    """
    one, other = own_slots(older), own_slots(newer)
    current = {one["standing"], other["standing"]} <= {"current", "summarised"}
    one_voice = (
        other["trust"] == "user"
        or one["speaker"].casefold() == other["speaker"].casefold()
        or one["conversation"] == other["conversation"] != ""
    )
    return current and one_voice and TRUST.index(one["trust"]) >= TRUST.index(other["trust"])


def _speak_of_one(older: UvmObject, newer: UvmObject, later: Assertion) -> bool:
    """Test if two documents mean one thing by a subject: what a person said does, files with one title do."""
    one, other = own_slots(older), own_slots(newer)
    if "external" not in (one["trust"], other["trust"]):
        return True
    if later.is_named and later.is_number and len(later.subject) >= LEAST_NAMED:
        return True
    return _VERSION.sub("", one["title"]).casefold() == _VERSION.sub("", other["title"]).casefold()


def mark_chunk(chunk: UvmObject, marks: Sequence[ClaimMark]) -> list[ClaimMark]:
    """Mark the spans of a document that are in a chunk; return the marks that are new."""
    slots = own_slots(chunk)
    begin, length = slots["start"], len(slots["text"])
    known = {each[:2] for each in memory_claims.marks_of(chunk)}
    found = [
        mark._replace(start=max(0, mark.start - begin), end=min(length, mark.end - begin))
        for mark in marks
        if mark.start - begin < length and mark.end > begin
    ]
    fresh = [each for each in found if each[:2] not in known]
    if fresh:
        memory_claims.add_marks(chunk, fresh)
    return fresh


# -- statements that give a subject a value, such as "The launch of Orion is on 18 March"


#: The assertions of a text that are kept at most, and the characters of the longest one.
MOST: Final = 12
LONGEST_SENTENCE: Final = 200

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
        """Test if the value has a number in it."""
        return any(map(str.isdigit, "".join(self.value)))

    def gives_way(self, later: Assertion) -> bool:
        """Test if a later assertion gives the same subject another value of the same kind.

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
        found = _read(text[start:end].rstrip(), start) if end - start <= LONGEST_SENTENCE else None
        if found is not None and many < MOST:
            many += 1
            yield found


def _read(sentence: str, start: int) -> Assertion | None:
    if (given := claim_statements.read_attribute(sentence, _ALONE)) is not None and not _DEFINITE.match(given.subject):
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


#: The earlier memories of a scope that new ones are heard among, and new ones that are heard at once.
WINDOW: Final = 48
#: The statements of earlier memories that new ones are compared with: all are compared with each other.
MOST_HEARD: Final = 500
#: The newest facts of a family that a new one is heard among, beside the one of its key.
_MOST_ALIKE: Final = 4
#: The standings of memories that new ones are heard among.
_HEARD: Final = frozenset({"current", "superseded", "summarised"})


@dataclass(slots=True)
class ClaimOutcome:
    """The names of facts that gave way to a new memory, and of memories in which it marked something else."""

    superseded: list[str] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)


def hear(root: Root, documents: Sequence[NewDocument]) -> dict[str, ClaimOutcome]:
    """Judge new documents, and mark them or earlier ones; no model is asked. Return what gave way to which.

    Facts, turns and notes that a person typed are heard, by user and scope. Of these and of other short documents the
    values that they give to subjects are compared with earlier ones.
    """
    scopes: dict[tuple[str, str], list[NewDocument]] = {}
    for document in documents:
        if _makes_claims(document) and document.name in root[roots.DOCUMENTS]:
            scopes.setdefault((document.user, document.scope), []).append(document)
    outcomes: dict[str, ClaimOutcome] = {}
    for document in documents:
        for by, name in restate(root, document):
            outcomes.setdefault(by, ClaimOutcome()).flagged.append(name)
    for (user, scope), several in scopes.items():
        for at in range(0, len(several), WINDOW):
            _hear_some(root, (user, scope), several[at : at + WINDOW], outcomes)
    return outcomes


def _makes_claims(document: NewDocument) -> bool:
    if document.kind == "fact":
        return True
    noted = document.kind == "turn" or (document.kind == "document" and document.trust == "user")
    return noted and sum(len(each.text) for each in document.chunks) <= LONGEST


def _hear_some(
    root: Root, scope: tuple[str, str], fresh: Sequence[NewDocument], outcomes: dict[str, ClaimOutcome]
) -> None:
    names = set(_newest(root, scope))
    for document in fresh:
        memory_claims.note_claims(root, root[roots.DOCUMENTS][document.name], family(document.key))
        for key in filter(None, (document.key, document.supersedes, *document.depends_on)):
            names.update(_facts_like(root, scope, key, {each.name for each in fresh}))
    names.update(each.name for each in fresh)
    heard = {}
    for name in names:
        found = root[roots.DOCUMENTS].get(name)
        if found is not None and own_slots(found)["standing"] in _HEARD:
            heard[own_slots(found)["chunks"][0]] = found
    statements = adjudicate(_claim_text(root, number, each) for number, each in heard.items())
    for by, name, is_replaced in _write_marks(root, heard, statements):
        outcome = outcomes.setdefault(by, ClaimOutcome())
        known = outcome.superseded if is_replaced else outcome.flagged
        if name not in known:
            known.append(name)


def _facts_like(root: Root, scope: tuple[str, str], key: str, fresh: Collection[str]) -> list[str]:
    """Return the newest facts of a key's family that are heard, and the current one of this very key."""
    among = memory_claims.facts_of_family(root, *scope, family(key), memory_standings.MOST_VALUES)
    known = {name: own_slots(root[roots.DOCUMENTS][name]) for name in among if name not in fresh}
    heard = [name for name, slots in known.items() if slots["standing"] in _HEARD]
    same = (name for name in heard if known[name]["key"].casefold() == key.casefold())
    current = [name for name in same if known[name]["standing"] == "current"]
    return [*heard[:_MOST_ALIKE], *current[:1]]


def _newest(root: Root, scope: tuple[str, str]) -> Iterator[str]:
    """Yield the names of the newest memories of a scope that make claims, as far as they have not too many statements.

    A memory of another standing than those that are heard counts for nothing.
    """
    left = MOST_HEARD
    for name in memory_claims.newest_claims(root, *scope, WINDOW):
        document = root[roots.DOCUMENTS].get(name)
        if document is not None and own_slots(document)["standing"] in _HEARD:
            left -= len(statements_of(_claim_text(root, 0, document)))
            if left < 0:
                return
            yield name


def _claim_text(root: Root, number: int, document: UvmObject) -> ClaimText:
    """Return a document as it is judged: what was said in no conversation stands alone."""
    slots = own_slots(document)
    rank = slots["source"].rpartition("/")[2] if slots["kind"] == "fact" else ""
    return ClaimText(
        number, slots["kind"], _text_of(root, document), memory_claims.stated_at(slots),
        slots["conversation"] or slots["name"], slots.get("key", ""), slots.get("supersedes", ""),
        slots.get("depends_on", ()), rank if rank in RANKS else "", TRUST.index(slots["trust"]), slots["speaker"],
    )  # fmt: skip


def _text_of(root: Root, document: UvmObject) -> str:
    """Return the text of a document, with blanks between its chunks."""
    text = ""
    for chunk in memory_records.chunks_of(root, document):
        slots = own_slots(chunk)
        text = text.ljust(slots["start"]) + slots["text"]
    return text


def _write_marks(
    root: Root, heard: Mapping[int, UvmObject], statements: Iterable[Statement]
) -> Iterator[tuple[str, str, bool]]:
    """Mark what does not hold; yield the name of what took its place, its own, and if it is a fact that gave way."""
    of_document: dict[int, list[Statement]] = {}
    for statement in statements:
        of_document.setdefault(statement.given.id, []).append(statement)
    for number, several in of_document.items():
        document = heard[number]
        marks = [(each, mark) for each in several if (mark := _mark_of(each, heard)) is not None]
        if marks:  # an archive is never changed
            memories_set_aside.unfold_covering(root, [own_slots(document)["name"]])
        chunks = list(memory_records.chunks_of(root, document)) if marks else []
        fresh = [mark for chunk in chunks for mark in mark_chunk(chunk, [mark for _, mark in marks])]
        replaced = next((each for each, _ in marks if each.is_replaced), None)
        if replaced is not None and own_slots(document)["standing"] == "current":
            _set_superseded(root, document, replaced, heard)
        name = own_slots(document)["name"]
        for by in dict.fromkeys(each.by for each in fresh if each.by):
            memory_claims.note_marked(root[roots.DOCUMENTS][by], name)
            yield by, name, replaced is not None


def _mark_of(statement: Statement, heard: Mapping[int, UvmObject]) -> ClaimMark | None:
    """Return the mark of a statement that does not simply hold; a question in a turn was only asked."""
    standing: str = statement.standing
    if standing == "current":
        if statement.is_claim or statement.given.kind != "turn":
            return None
        standing = ASKED
    by = heard.get(statement.by) if statement.by is not None else None
    slots: Mapping[str, Any] = own_slots(by) if by is not None else {}
    since = memory_claims.stated_at(slots) if slots else ""
    return ClaimMark(statement.start, statement.end, standing, statement.reason, slots.get("name", ""), since)


def _set_superseded(root: Root, document: UvmObject, statement: Statement, heard: Mapping[int, UvmObject]) -> None:
    """Make history of a fact that another took the place of."""
    if statement.by is not None and statement.by in heard:
        by = own_slots(heard[statement.by])
        since = memory_claims.stated_at(by)
        memory_standings.supersede(root, own_slots(document)["name"], by["name"], since)
