"""Hears new facts, turns and notes among the newest of their scope, in the commit that writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.image import roots
from batos.image.records import TRUST
from batos.image.roots import Root
from batos.memory.claims.adjudication import adjudicate
from batos.memory.claims.claim_statements import ClaimText, Statement, family, statements_of
from batos.memory.claims.comparisons import RANKS
from batos.memory.claims.restatements import LONGEST, mark_chunk, restate
from batos.memory.records import memory_claims, memory_folding, memory_records, memory_standings
from batos.memory.records.memory_claims import ASKED, ClaimMark
from batos.memory.records.memory_records import NewDocument
from batos.objects.prototype import UvmObject, own_slots

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
            memory_folding.unfold_covering(root, [own_slots(document)["name"]])
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
