"""The memories of the image: documents in chunks, whose they are, and the segments of the indexes over their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

from batos.image import roots
from batos.image.roots import Root
from batos.memory.indexes import kinds
from batos.memory.records import memory_archives, memory_claims, memory_places, memory_standings
from batos.memory.records.memory_places import (
    find_by_source,
    names_below,
    names_with_content,
    names_with_source,
    place_key,
)
from batos.memory.records.memory_segments import (
    NewSegment,
    add_segment,
    count_change,
    has_number,
    items_beginning,
    note_present,
    present_ranges,
    take_out,
    trees_of,
)
from batos.memory.records.memory_standings import Standing
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.records import gold_items

#: The object that documents and chunks delegate to.
_CATALOG: Final = "knowledge_catalog_obj"

#: The slots of a document that are as they were given.
_KEPT: Final = (
    "name", "user", "scope", "source", "title", "media_type", "sha256", "size", "trust", "kind", "said_at", "mission",
    "persona", "conversation", "speaker", "is_evidence", "key", "supersedes", "depends_on", "left_out", "pages",
)  # fmt: skip

#: The source of what a person stated in a mission is its id with this.
SAID: Final = "/said"
#: The source of what a method gave to be remembered begins so.
BY_METHOD: Final = "method/"

#: The kind of a memory: a text that was given, an exchange of a mission, a turn of another program's conversation, a
#: fact with a key, or a summary of other memories.
MemoryKind: TypeAlias = Literal["document", "mission", "turn", "fact", "summary"]


class ChunkText(NamedTuple):
    """A chunk of a document: where it begins in the document's text, the headings above it, and its words.

    Of rows of a table the heading has, behind a line break, the caption and the names of the columns.
    """

    start: int
    heading: str
    text: str


class ChunkRange(NamedTuple):
    """The last chunk of a document, with what a search asks of it before it loads anything; texts are "" where unknown.

    `at` is when it was said or written where that is known, else when it was remembered (ISO 8601, UTC). Nothing is
    answered from what is no evidence: it is shown to who asks for it.
    """

    last: int
    document: str
    user: str
    scope: str
    kind: MemoryKind
    standing: Standing
    trust: str
    at: str
    source: str
    mission: str
    persona: str
    conversation: str
    is_evidence: bool = True


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that is to be remembered. `source` is where it came from: what comes from there again replaces it.

    `at` is when it is remembered, `said_at` when it was said or written ("": unknown). `mission`, `persona`,
    `conversation` and `speaker` tell of an exchange or a turn where it stood and who spoke. A fact has a `key`;
    `supersedes` and `depends_on` name other facts by theirs. An earlier wording is history: it takes no other's place.
    `left_out` has a phrase for each part of its file that could not be read, `pages` the places where its pages end.
    """

    name: str
    user: str
    scope: str
    source: str
    title: str
    media_type: str
    sha256: str
    size: int
    trust: str
    at: str
    chunks: tuple[ChunkText, ...]
    kind: MemoryKind = "document"
    said_at: str = ""
    mission: str = ""
    persona: str = ""
    conversation: str = ""
    speaker: str = ""
    is_evidence: bool = True
    key: str = ""
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()
    is_earlier_wording: bool = False
    left_out: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()

    @property
    def place(self) -> str:
        """Return the source whose next document takes its place; a fact is history then, and stays."""
        return "" if self.kind == "fact" or self.is_earlier_wording else self.source

    @property
    def numbers(self) -> int:
        """Return how many numbers its chunks take: one if it has none, since its range stands under the first."""
        return max(1, len(self.chunks))

    def range(self, last: int) -> ChunkRange:
        """Return the range of its chunks, by the last of them."""
        return ChunkRange(
            last, self.name, self.user, self.scope, self.kind, "current", self.trust, self.said_at or self.at,
            self.source, self.mission, self.persona, self.conversation, self.is_evidence,
        )  # fmt: skip


def chunk_count(root: Root) -> int:
    """Return the number of chunks that are remembered."""
    return sum(last - first + 1 for first, last in present_ranges(root))


def reserve(root: Root, count: int) -> int:
    """Set so many chunk numbers aside, which are never given again, and return the first of them."""
    kept = trees_of(root)
    first: int = kept["next_chunk"]
    kept["next_chunk"] = first + count
    return first


def add(root: Root, documents: Sequence[NewDocument], first: int, segments: Mapping[str, bytes]) -> list[str]:
    """Add documents with their chunks, numbered from `first` on, and the segments over these, one for each index.

    A document that came from the same source before, for the same user and scope, goes in the same change, unless its
    content came from another place too. Returns the names of the documents that went.
    """
    before: list[str] = []
    old, begin = [], first
    for document in documents:
        name = find_by_source(root, document.user, document.scope, document.place)
        is_pinned = name is not None and memory_standings.is_pinned(root, name)
        if name is not None:
            before.append(name)
            old.append(_leave(root, name, document.place))
        first = _add_document(root, document, first)
        if is_pinned and name not in root[roots.DOCUMENTS]:
            memory_standings.pin(root, document.name, document.at)
    take_out(root, [each for each in old if each])
    count_change(root, [(begin, first), *((each.start, each.start) for each in old)])
    missing = {number for each in old for number in each if number >= begin}  # a source may come twice in a batch
    for kind, data in segments.items():
        left = kinds.without(kind, data, missing) if missing else data
        add_segment(root, NewSegment(kind, left, begin, first - 1))
    return [name for name in before if name not in root[roots.DOCUMENTS]]


def add_places(root: Root, places: Sequence[tuple[str, str]]) -> None:
    """Note that contents of documents, by their names, came from further places; what came from there before goes."""
    kept, documents, fresh = trees_of(root), root[roots.DOCUMENTS], dict[str, tuple[str, str]]()
    for name, place in places:
        slots = own_slots(documents[name]) if name in documents else None
        if slots is not None and find_by_source(root, slots["user"], slots["scope"], place) != name:
            memory_places.note_place(root, name, place)
            fresh[place_key(slots["user"], slots["scope"], place)] = name, place
    old = []
    # Only now, as files may have changed places: one may be given up where another has just taken it.
    for key, (name, place) in fresh.items():
        if key in kept["sources"]:
            former = kept["sources"][key]
            is_pinned = memory_standings.is_pinned(root, former)
            old.append(_leave(root, former, place))
            if is_pinned and former not in documents:
                memory_standings.pin(root, name, own_slots(documents[name])["remembered_at"])
    kept["sources"].update({key: name for key, (name, _) in fresh.items()})
    take_out(root, [each for each in old if each])
    if fresh:
        count_change(root, [(each.start, each.start) for each in old])


def leave_place(root: Root, name: str, place: str) -> None:
    """Take one of several places from a document."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    trees_of(root)["sources"].pop(place_key(slots["user"], slots["scope"], place), None)
    count_change(root, [(first := _leave(root, name, place).start, first)])


def _leave(root: Root, name: str, place: str) -> range:
    """Take a place from a document, and the document itself where it was the only one and no history.

    Returns the numbers of the chunks that went; empty, from the document's first one, where it stays.
    """
    document = root[roots.DOCUMENTS][name]
    slots = own_slots(document)
    first = slots["chunks"][0]
    if not memory_places.drop_place(root, name, place) and slots["standing"] == "current":
        others = memory_places.places_of(root, name)
        if not others:
            return _remove_document(root, name)
        memory_places.drop_place(root, name, others[0])
        document.source = others[0]
        kept = trees_of(root)
        kept["ranges"][first] = tuple(ChunkRange(*kept["ranges"][first])._replace(source=others[0]))
    return range(first, first)


def document_slots(document: NewDocument, first: int) -> dict[str, object]:
    """Return the slots of a document whose chunks are numbered from `first` on."""
    kept, last = {name: getattr(document, name) for name in _KEPT}, first + len(document.chunks) - 1
    return {**kept, "remembered_at": document.at, "chunks": (first, last), "standing": "current"}


def chunk_slots(document: UvmObject, number: int, chunk: ChunkText) -> dict[str, object]:
    """Return the slots of a chunk of a document."""
    return {"document": document, "number": number, **chunk._asdict()}


def _add_document(root: Root, document: NewDocument, first: int) -> int:
    """Write a document and its chunks; return the number behind those that it takes."""
    kept, last = trees_of(root), first + len(document.chunks) - 1
    parents = (root["knowledge_catalog_obj"],) if _CATALOG in root else ()
    root[roots.DOCUMENTS][document.name] = made = UvmObject(document_slots(document, first), parents)
    for number, chunk in enumerate(document.chunks, start=first):
        kept["chunks"][number] = UvmObject(chunk_slots(made, number, chunk), parents)
    kept["ranges"][first] = tuple(document.range(last))
    note_present(root, first, last)
    if document.kind in {"document", "turn"} and not document.mission:  # an answer in its words is not that document
        kept["digests"][place_key(document.user, document.scope, document.sha256)] = document.name
    if document.place:
        kept["sources"][place_key(document.user, document.scope, document.source)] = document.name
    return first + document.numbers


def forget(root: Root, names: Sequence[str]) -> int:
    """Take documents, their chunks and these in the indexes out of the image as it is now; return how many chunks went.

    A segment that holds some of them is written anew, once.
    """
    gone = [_remove_document(root, name) for name in names]
    take_out(root, gone)
    count_change(root, [(each.start, each.start) for each in gone])
    return sum(map(len, gone))


def _remove_document(root: Root, name: str) -> range:
    """Take a document and its chunks out of the records, and return the chunks' numbers."""
    kept, slots = trees_of(root), own_slots(root[roots.DOCUMENTS][name])
    first, last = slots["chunks"]
    for number in range(first, last + 1):
        del kept["chunks"][number]
    del kept["ranges"][first]
    kept["recalls"].pop(first, None)
    places = memory_places.places_of(root, name)
    for place in places:
        memory_places.drop_place(root, name, place)
    sources = [("sources", place) for place in (slots["source"], *places)]
    for tree, value in (("digests", slots["sha256"]), *sources):
        key = place_key(slots["user"], slots["scope"], value)
        if kept[tree].get(key) == name:
            del kept[tree][key]
    memory_standings.let_go(root, memory_claims.forget_claims(root, root[roots.DOCUMENTS][name]), slots)
    memory_standings.unpin(root, name)
    gold_items.drop_items(root, name)
    del root[roots.DOCUMENTS][name]
    return range(first, last + 1)


def ranges_of(root: Root, begin: int | None = None, end: int | None = None) -> Iterator[tuple[int, ChunkRange]]:
    """Yield the first chunk of each document with the rest of its range, in the order of their numbers.

    With `begin` and `end`, those whose first chunk is from the one to the other.
    """
    for first, found in trees_of(root)["ranges"].items(begin, end):
        yield first, ChunkRange(*found)


def all_ranges(root: Root) -> Iterator[ChunkRange]:
    """Yield the range of each document, also of those that summaries stand for."""
    yield from (row for _, row in ranges_of(root))
    yield from (ChunkRange(*row) for _, _, row in memory_archives.rows(root))


def find_chunk(root: Root, number: int) -> UvmObject | None:
    """Return a chunk by its number, from an archive where a summary stands for it; None if there is none."""
    found: UvmObject | None = trees_of(root)["chunks"].get(number)
    return found if found is not None else memory_archives.find_part(root, number)


def has_chunk(root: Root, number: int) -> bool:
    """Test if there is a chunk of this number, without loading it."""
    return has_number(trees_of(root)["present"], number)


def document_at(root: Root, first: int) -> UvmObject:
    """Return the document whose first chunk this is."""
    document: UvmObject = root[roots.DOCUMENTS][trees_of(root)["ranges"][first][1]]
    return document


def find_document(root: Root, named: str, user: str | None = None) -> UvmObject:
    """Return a document by its name, else by an unambiguous beginning of it, by its source, or by its whole text.

    Raises: NotFound: there is none, or it is another user's.
    """
    exact: UvmObject | None = root[roots.DOCUMENTS].get(named)
    if exact is not None and user in (None, own_slots(exact)["user"]):
        return exact
    found = set(names_with_source(root, named, user)) if named else set()
    if len(named) > len("d-"):
        found.update(islice(_beginning_with(root, named, user), 2))
    if not found:
        found.update(names_with_content(root, hashlib.sha256(named.encode()).hexdigest(), user))
    if len(found) != 1:
        what = "several documents are" if found else "there is no document"
        near = "`batos recall` finds what is near these words; " if " " in named else ""
        remedy = "Give more of its name; " if found else near
        raise NotFound(f"{what} named {named!r}", field="name", remedy=f"{remedy}`batos memories` lists them.")
    document: UvmObject = root[roots.DOCUMENTS][found.pop()]
    return document


def find_documents(root: Root, named: str, user: str | None = None) -> list[UvmObject]:
    """Return the document of a name as `find_document` does; of a mission all that is remembered of it.

    Of a mailbox, or a file of chats, these are its mails and messages; of a text, what says it in these words.

    Raises: NotFound: there is none, or it is another user's.
    """
    if of_mission := documents_of_mission(root, named, user):
        return of_mission
    try:
        return [find_document(root, named, user)]
    except NotFound:
        if names := sorted(memory_places.messages_of(root, named, user)) or memory_claims.names_saying(
            root, named, user or ""
        ):
            return [root[roots.DOCUMENTS][name] for name in names]
        raise


def documents_of_mission(root: Root, mission: str, user: str | None = None) -> list[UvmObject]:
    """Return all that is remembered of a mission: what was said, the answer, and what its methods gave."""
    names = {name for each in (mission, f"{mission}{SAID}") for name in names_with_source(root, each, user)}
    if mission.startswith("m-"):
        names.update(names_below(root, BY_METHOD, user))
    found: Iterator[UvmObject] = (root[roots.DOCUMENTS][name] for name in sorted(names))
    return [each for each in found if mission and own_slots(each)["mission"] == mission]


def chunks_of(root: Root, document: UvmObject) -> Iterable[UvmObject]:
    """Return the chunks of a document in their order, from an archive where a summary stands for it."""
    if memory_archives.summary_of(document):
        return memory_archives.parts_of(root, document)
    values: Iterable[UvmObject] = trees_of(root)["chunks"].values(*own_slots(document)["chunks"])
    return values


def copy_of(root: Root, name: str) -> NewDocument:
    """Return a document as one that can be added again, with all its texts; its standing and its pin are not in it.

    Of one that was edited it is an earlier wording.
    """
    document = root[roots.DOCUMENTS][name]
    slots = own_slots(document)
    parts = (own_slots(each) for each in chunks_of(root, document))
    chunks = tuple(ChunkText(part["start"], part["heading"], part["text"]) for part in parts)
    kept = {field: slots[field] for field in _KEPT if field in slots}
    earlier, at = slots["standing"] == "edited", slots["remembered_at"]
    return NewDocument(**kept, at=at, chunks=chunks, is_earlier_wording=earlier)


def _beginning_with(root: Root, beginning: str, user: str | None) -> Iterator[str]:
    """Yield the names of documents that begin so; a user's, or all."""
    for name, document in items_beginning(root[roots.DOCUMENTS], beginning):
        if user is None or own_slots(document)["user"] == user:
            yield name
