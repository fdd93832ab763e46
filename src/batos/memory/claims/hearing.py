"""Hears new facts and turns among the newest of their scope, in the commit that writes them, and marks what gave way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from batos.image import memory_claims, memory_records, roots
from batos.image.memory_claims import ClaimMark
from batos.image.memory_records import NewDocument
from batos.image.roots import Root
from batos.memory.claims.adjudication import RANKS, adjudicate
from batos.memory.claims.statements import Saying, Statement, family
from batos.objects.prototype import UvmObject, own_slots

#: The earlier memories of a scope that new ones are heard among, and new ones that are heard at once.
WINDOW: Final = 48
#: The longest document (characters) whose statements are claims: a note, not a book.
LONGEST: Final = 4_000
#: The standing of a statement that claims nothing.
ASKED: Final = "asked"


def hear(root: Root, documents: Sequence[NewDocument]) -> None:
    """Adjudicate new documents, and mark them or earlier ones; no model is asked.

    Facts, turns and notes that a person typed are heard, by user and scope.
    """
    scopes: dict[tuple[str, str], list[NewDocument]] = {}
    for document in documents:
        if _makes_claims(document) and document.name in root[roots.DOCUMENTS]:
            scopes.setdefault((document.user, document.scope), []).append(document)
    for (user, scope), several in scopes.items():
        for at in range(0, len(several), WINDOW):
            _hear_some(root, user, scope, several[at : at + WINDOW])


def _makes_claims(document: NewDocument) -> bool:
    if document.kind == "document":
        return document.trust == "user" and sum(len(each.text) for each in document.chunks) <= LONGEST
    return document.kind in ("fact", "turn")


def _hear_some(root: Root, user: str, scope: str, fresh: Sequence[NewDocument]) -> None:
    names = set(memory_claims.newest_claims(root, user, scope, WINDOW))
    for document in fresh:
        memory_claims.note_claims(root, root[roots.DOCUMENTS][document.name], family(document.key))
        for key in filter(None, (document.key, document.supersedes, *document.depends_on)):
            names.update(memory_claims.facts_of_family(root, user, scope, family(key)))
    names.update(each.name for each in fresh)
    heard = {}
    for name in names:
        found = root[roots.DOCUMENTS].get(name)
        if found is not None and own_slots(found)["standing"] in ("current", "superseded"):
            heard[own_slots(found)["chunks"][0]] = found
    _write_marks(root, heard, adjudicate(_saying(root, number, each) for number, each in heard.items()))


def _saying(root: Root, number: int, document: UvmObject) -> Saying:
    slots = own_slots(document)
    rank = slots["source"].rpartition("/")[2] if slots["kind"] == "fact" else ""
    return Saying(
        number, slots["kind"], _text_of(root, document), slots["said_at"] or slots["remembered_at"],
        slots["conversation"], slots["key"], slots["supersedes"], slots["depends_on"],
        rank if rank in RANKS else "",
    )  # fmt: skip


def _text_of(root: Root, document: UvmObject) -> str:
    """Return the text of a document, with blanks between its chunks."""
    text = ""
    for chunk in memory_records.chunks_of(root, document):
        slots = own_slots(chunk)
        text = text.ljust(slots["start"]) + slots["text"]
    return text


def _write_marks(root: Root, heard: Mapping[int, UvmObject], statements: Iterable[Statement]) -> None:
    of_document: dict[int, list[Statement]] = {}
    for statement in statements:
        of_document.setdefault(statement.saying.id, []).append(statement)
    for number, several in of_document.items():
        marked = [(each, _standing(each)) for each in several]
        if any(standing != "current" for _, standing in marked):
            for chunk in memory_records.chunks_of(root, heard[number]):
                _mark_chunk(chunk, marked, heard)
        claims = [each for each, standing in marked if standing != ASKED]
        if claims and all(each.standing == "superseded" for each in claims):
            _set_superseded(root, heard[number], claims[0], heard)


def _standing(statement: Statement) -> str:
    """Return the standing of a statement; that of a question in a turn is that it was asked."""
    if statement.standing == "current" and not statement.is_claim and statement.saying.kind == "turn":
        return ASKED
    return statement.standing


def _mark_chunk(chunk: UvmObject, marked: Iterable[tuple[Statement, str]], heard: Mapping[int, UvmObject]) -> None:
    slots = own_slots(chunk)
    begin, length = slots["start"], len(slots["text"])
    found = [
        ClaimMark(max(0, each.start - begin), min(length, each.end - begin), standing, each.reason, _name(each, heard))
        for each, standing in marked
        if standing != "current" and each.start - begin < length and each.end > begin
    ]
    if {each[:2] for each in found} - {each[:2] for each in memory_claims.marks_of(chunk)}:
        memory_claims.add_marks(chunk, found)


def _set_superseded(root: Root, document: UvmObject, first: Statement, heard: Mapping[int, UvmObject]) -> None:
    slots = own_slots(document)
    if slots["standing"] != "current" or slots["kind"] == "document":
        return
    memory_records.set_standing(root, slots["name"], "superseded")
    document.superseded_by = _name(first, heard)
    by: Mapping[str, Any] = own_slots(heard[first.by]) if first.by in heard else {}
    document.valid_to = (by.get("said_at") or by.get("remembered_at")) if by else ""


def _name(statement: Statement, heard: Mapping[int, UvmObject]) -> str:
    return str(own_slots(heard[statement.by])["name"]) if statement.by in heard else ""
