"""Lists the memories that make claims, the newest first, the facts by their keys, and marks what does not hold."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records.memory_segments import find_tree, items_beginning, make_tree, trees_of
from batos.objects.prototype import UvmObject, own_slots

#: The record, which comes with the first claim.
_CLAIMS: Final = "claims"
#: The standing of a question, which claims nothing.
ASKED: Final = "asked"
#: Keys of facts begin so; behind it stand user, scope, family, and a number that counts down.
_FAMILIES: Final = "k\0"
#: Above the number of any chunk: keys count down from it, so that the newest come first.
_LAST: Final = 10**12
#: Memories that are looked through for one that says a text.
_LOOKED_THROUGH: Final = 2_000


class ClaimMark(NamedTuple):
    """A span of a chunk's text that does not simply hold: its standing, and the reason.

    `by` is the document that took its place, `since` the moment from which that one holds; "" where there is none. A
    mark is not held while that document is retracted.
    """

    start: int
    end: int
    standing: str
    reason: str = ""
    by: str = ""
    since: str = ""
    is_held: bool = True


def note_claims(root: Root, document: UvmObject, family: str = "") -> None:
    """Write down that a document makes claims; a fact under the family of its key."""
    claims, slots = make_tree(root, _CLAIMS), own_slots(document)
    claims[_time_key(slots)] = slots["name"]
    if family:
        document.family = family
        claims[_family_key(slots["user"], slots["scope"], family) + _countdown(slots)] = slots["name"]


def forget_claims(root: Root, document: UvmObject) -> list[str]:
    """Take a document out of those that make claims, and its marks away; return the facts that it superseded."""
    claims, slots = find_tree(root, _CLAIMS), own_slots(document)
    for subject in slots.get("subjects", ()):
        claims.pop(_subject_key(slots["user"], slots["scope"], subject) + _countdown(slots), None)
    claims.pop(_time_key(slots), None)
    if slots.get("family"):
        claims.pop(_family_key(slots["user"], slots["scope"], slots["family"]) + _countdown(slots), None)
    return _drop_marks(root, document)


def note_statement(root: Root, document: UvmObject, subject: str, told: tuple[Any, ...]) -> None:
    """Write down what a document says of a subject; `told` is plain data."""
    slots = own_slots(document)
    key = _subject_key(slots["user"], slots["scope"], subject) + _countdown(slots)
    make_tree(root, _CLAIMS)[key] = (slots["name"], *told)
    subjects = slots.get("subjects", ())
    if subject not in subjects:
        document.subjects = (*subjects, subject)


def statements_about(root: Root, user: str, scope: str, subject: str, most: int = 8) -> list[tuple[Any, ...]]:
    """Return what the newest documents say of a subject, each behind the document's name."""
    return _newest(root, _subject_key(user, scope, subject), most)


def note_marked(document: UvmObject, name: str) -> None:
    """Write down in which other memory a document marked something, so that this ends with it."""
    known = own_slots(document).get("marked_in", ())
    if name not in known:
        document.marked_in = (*known, name)


def stated_at(slots: Mapping[str, object]) -> str:
    """Return when a document was said, or else remembered, by its slots: that is when it holds from."""
    return str(slots["said_at"] or slots["remembered_at"])


def newest_claims(root: Root, user: str, scope: str, most: int) -> list[str]:
    """Return the names of the newest documents of a scope that make claims."""
    return _newest(root, f"t\0{user}\0{scope}\0", most)


def newest_claims_within(root: Root, user: str, scopes: Collection[str] | None, most: int) -> list[str]:
    """Return the names of the newest documents that make claims, of some scopes of a user; None: of all."""
    claims = find_tree(root, _CLAIMS)
    begun = (f"t\0{user}\0{scope}\0" for scope in (_scopes_of(claims, user) if scopes is None else scopes))
    merged = heapq.merge(
        *(items_beginning(claims, each) for each in begun), key=lambda found: found[0].rpartition("\0")[2]
    )
    return [name for _, name in islice(merged, most)]


def names_saying(root: Root, text: str, user: str) -> list[str]:
    """Return the names of a user's newest facts, turns and notes that say a text, but for case, blanks and its end."""
    wanted, chunks, found = _bare(text), trees_of(root)["chunks"], []
    for name in newest_claims_within(root, user, None, _LOOKED_THROUGH) if " " in wanted else ():
        slots = own_slots(root[roots.DOCUMENTS][name])
        first, last = slots["chunks"]
        if first == last and first in chunks and _bare(own_slots(chunks[first])["text"]) == wanted:
            found.append(name)
    return found


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!… ")


def facts_of_family(root: Root, user: str, scope: str, family: str, most: int) -> list[str]:
    """Return the names of the newest facts whose keys are of a family."""
    return _newest(root, _family_key(user, scope, family), most)


def marks_of(chunk: UvmObject) -> tuple[ClaimMark, ...]:
    """Return the marks of a chunk that are held, in their order."""
    return tuple(each for each in _all_marks(chunk) if each.is_held)


def add_marks(chunk: UvmObject, marks: Sequence[ClaimMark]) -> None:
    """Mark spans of a chunk; what is marked already stays so."""
    known = {each[:2]: each for several in (_all_marks(chunk), marks, marks_of(chunk)) for each in several}
    chunk.marks = tuple(tuple(known[span]) for span in sorted(known))


def hold_claims(root: Root, document: UvmObject, *, is_held: bool) -> list[str]:
    """Hold the marks that a document made, or not, while it is retracted; return the facts that it superseded."""
    name = own_slots(document)["name"]
    for chunk in _marked_chunks(root, document):
        chunk.marks = tuple(
            tuple(each._replace(is_held=is_held) if each.by == name else each) for each in _all_marks(chunk)
        )
    return _superseded_facts(root, document)


def _drop_marks(root: Root, document: UvmObject) -> list[str]:
    """Take away the marks that a document made; return the facts that it superseded."""
    name = own_slots(document)["name"]
    for chunk in _marked_chunks(root, document):
        chunk.marks = tuple(tuple(each) for each in _all_marks(chunk) if each.by != name)
    return _superseded_facts(root, document)


def _all_marks(chunk: UvmObject) -> Iterator[ClaimMark]:
    return (ClaimMark(*each) for each in own_slots(chunk).get("marks", ()))


def _marked_documents(root: Root, document: UvmObject) -> Iterator[UvmObject]:
    names = own_slots(document).get("marked_in", ())
    return (root[roots.DOCUMENTS][each] for each in names if each in root[roots.DOCUMENTS])


def _marked_chunks(root: Root, document: UvmObject) -> Iterator[UvmObject]:
    name = own_slots(document)["name"]
    for other in _marked_documents(root, document):
        for chunk in trees_of(root)["chunks"].values(*own_slots(other)["chunks"]):
            if any(each.by == name for each in _all_marks(chunk)):
                yield chunk


def _superseded_facts(root: Root, document: UvmObject) -> list[str]:
    name = own_slots(document)["name"]
    slots = map(own_slots, _marked_documents(root, document))
    found = (each for each in slots if each.get("superseded_by") == name)
    return [each["name"] for each in found if each["standing"] in ("current", "superseded")]


def _scopes_of(claims: Any, user: str) -> Iterator[str]:
    """Yield the scopes in which a user has documents that make claims; the cost is that of the scopes."""
    at = begun = f"t\0{user}\0"
    while key := next(iter(claims.keys(at)), ""):
        if not key.startswith(begun):
            return
        scope = key.split("\0")[2]
        yield scope
        at = f"{begun}{scope}\1"  # behind all of the scope


def _newest(root: Root, beginning: str, most: int) -> list[Any]:
    """Return what stands under the first of the keys that begin so, which are those of the newest documents."""
    return [found for _, found in islice(items_beginning(find_tree(root, _CLAIMS), beginning), most)]


def _time_key(slots: Any) -> str:
    return f"t\0{slots['user']}\0{slots['scope']}\0{_countdown(slots)}"


def _family_key(user: str, scope: str, family: str) -> str:
    return f"{_FAMILIES}{user}\0{scope}\0{family}\0"


def _subject_key(user: str, scope: str, subject: str) -> str:
    return f"s\0{user}\0{scope}\0{subject}\0"


def _countdown(slots: Any) -> str:
    return f"{_LAST - slots['chunks'][0]:013d}"
