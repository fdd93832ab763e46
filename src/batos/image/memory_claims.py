"""Lists the memories that make claims, the newest first, the facts by their keys, and marks what does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from BTrees.OOBTree import OOBTree

from batos.image.memory_segments import trees_of
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots

#: The record, which comes with the first claim.
_CLAIMS: Final = "claims"
#: The standing of a question, which claims nothing.
ASKED: Final = "asked"
#: Above the number of any chunk: keys count down from it, so that the newest come first.
_LAST: Final = 10**12


class ClaimMark(NamedTuple):
    """A span of a chunk's text that does not simply hold: its standing, and the reason.

    `by` is the document that took its place, `since` the moment from which that one holds; "" where there is none.
    """

    start: int
    end: int
    standing: str
    reason: str = ""
    by: str = ""
    since: str = ""


def note_claims(root: Root, document: UvmObject, family: str = "") -> None:
    """Write down that a document makes claims; a fact under the family of its key."""
    kept, slots = trees_of(root), own_slots(document)
    if _CLAIMS not in kept:
        kept[_CLAIMS] = OOBTree()
    kept[_CLAIMS][_time_key(slots)] = slots["name"]
    if family:
        kept[_CLAIMS][_family_key(slots["user"], slots["scope"], family) + _countdown(slots)] = slots["name"]


def forget_claims(root: Root, document: UvmObject) -> tuple[str, ...]:
    """Take a document out of those that make claims; return the names of those in which it marked something."""
    claims: Any = trees_of(root).get(_CLAIMS)
    slots = own_slots(document)
    for subject in slots.get("subjects", ()):
        claims.pop(_subject_key(slots["user"], slots["scope"], subject) + _countdown(slots), None)
    if claims is not None and claims.pop(_time_key(slots), None) and slots.get("key"):
        beginning = _family_key(slots["user"], slots["scope"], "")
        for key in [each for each, name in _beginning(claims, beginning) if name == slots["name"]]:
            del claims[key]
    return tuple(slots.get("marked_in", ()))


def note_statement(root: Root, document: UvmObject, subject: str, told: tuple[Any, ...]) -> None:
    """Write down what a document says of a subject; `told` is plain data."""
    kept, slots = trees_of(root), own_slots(document)
    if _CLAIMS not in kept:
        kept[_CLAIMS] = OOBTree()
    key = _subject_key(slots["user"], slots["scope"], subject) + _countdown(slots)
    kept[_CLAIMS][key] = (slots["name"], *told)
    subjects = slots.get("subjects", ())
    if subject not in subjects:
        document.subjects = (*subjects, subject)


def statements_about(root: Root, user: str, scope: str, subject: str, most: int = 8) -> list[tuple[Any, ...]]:
    """Return what the newest documents say of a subject, each behind the document's name."""
    claims = trees_of(root).get(_CLAIMS)
    return [told for _, told in islice(_beginning(claims, _subject_key(user, scope, subject)), most)]


def note_marked(document: UvmObject, name: str) -> None:
    """Write down in which other memory a document marked something, so that this ends with it."""
    known = own_slots(document).get("marked_in", ())
    if name not in known:
        document.marked_in = (*known, name)


def newest_claims(root: Root, user: str, scope: str, most: int) -> list[str]:
    """Return the names of the newest documents of a scope that make claims."""
    claims = trees_of(root).get(_CLAIMS)
    return [name for _, name in islice(_beginning(claims, f"t\0{user}\0{scope}\0"), most)]


def facts_of_family(root: Root, user: str, scope: str, family: str, most: int = 4) -> list[str]:
    """Return the names of the newest facts whose keys are of a family."""
    claims = trees_of(root).get(_CLAIMS)
    return [name for _, name in islice(_beginning(claims, _family_key(user, scope, family)), most)]


def marks_of(chunk: UvmObject) -> tuple[ClaimMark, ...]:
    """Return the marks of a chunk, in their order."""
    return tuple(ClaimMark(*each) for each in own_slots(chunk).get("marks", ()))


def add_marks(chunk: UvmObject, marks: Sequence[ClaimMark]) -> None:
    """Mark spans of a chunk; what is marked already stays so."""
    known = {(each.start, each.end): each for each in marks}
    known.update({(each.start, each.end): each for each in marks_of(chunk)})
    chunk.marks = tuple(tuple(known[span]) for span in sorted(known))


def drop_marks(chunk: UvmObject, by: str) -> None:
    """Take away the marks that a document made."""
    left = tuple(tuple(each) for each in marks_of(chunk) if each.by != by)
    if len(left) < len(marks_of(chunk)):
        chunk.marks = left


def _beginning(claims: Any, beginning: str) -> Iterator[tuple[str, Any]]:
    for key, name in claims.items(beginning) if claims is not None else ():
        if not key.startswith(beginning):
            return
        yield key, name


def _time_key(slots: Any) -> str:
    return f"t\0{slots['user']}\0{slots['scope']}\0{_countdown(slots)}"


def _family_key(user: str, scope: str, family: str) -> str:
    return f"k\0{user}\0{scope}\0{family}\0" if family else f"k\0{user}\0{scope}\0"


def _subject_key(user: str, scope: str, subject: str) -> str:
    return f"s\0{user}\0{scope}\0{subject}\0"


def _countdown(slots: Any) -> str:
    return f"{_LAST - slots['chunks'][0]:013d}"
