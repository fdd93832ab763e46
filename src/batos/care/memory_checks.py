"""Checks of what is remembered: documents, their parts, and the indexes over these agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from batos.care.image_faults import ImageFault, discard_memory, entries_between
from batos.image import roots
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.memory.indexes import kinds
from batos.memory.indexes.links import LinkIndex
from batos.memory.indexes.text import TextIndex
from batos.memory.indexes.vectors import VectorIndex
from batos.memory.records import memory_archives, memory_claims, memory_places, memory_records
from batos.memory.records.memory_places import place_key
from batos.memory.records.memory_records import ChunkRange
from batos.memory.records.memory_segments import (
    VECTORS,
    NewSegment,
    add_range,
    add_segment,
    as_ranges,
    count_change,
    has_number,
    remove_range,
    segments_of,
    trees_of,
)
from batos.objects.prototype import own_slots

#: The slots of a document that its range repeats, in the range's order from the fourth on.
_FORGET: Final = "forget the memory; its file can be remembered again"


def check_memories(root: Root) -> Iterator[ImageFault]:
    """Yield the faults of documents and parts; of the indexes only if there are none, since these are made of those."""
    found = [*_check_ranges(root), *_check_documents(root), *_check_chunks(root), *_check_names(root)]
    yield from found
    if not found:
        yield from _check_present(root)
        yield from _check_segments(root)


def _check_ranges(root: Root) -> Iterator[ImageFault]:
    kept, documents = trees_of(root), root[roots.DOCUMENTS]
    for first, row in kept["ranges"].items():
        told = ChunkRange(*row)
        where = f"parts {first} to {told.last}"
        if told.document not in documents:
            what = f"they are of {told.document}, which is not there"
            mend = partial(_drop_range, first)
            yield ImageFault("entry without object", where, what, "take the parts away", mend)
            continue
        slots = own_slots(documents[told.document])
        if tuple(slots["chunks"]) != (first, told.last):
            what = f"{told.document} says that its parts are {slots['chunks'][0]} to {slots['chunks'][1]}"
            mend = partial(_point_to_chunks, told.document, (first, told.last))
            yield ImageFault("wrong link", told.document, what, f"let it point to {first} to {told.last}", mend)
        missing = [number for number in range(first, told.last + 1) if number not in kept["chunks"]]
        if missing:
            what = f"part {missing[0]} is not there"
            yield ImageFault("entry without object", told.document, what, _FORGET, partial(_forget, told.document))
    for first, row in kept["folded"].items():
        if row[2] not in documents:
            what = f"{row[2]} is not there"
            yield ImageFault(
                "entry without object", "folded", what, "take it off", partial(discard_memory, "folded", first)
            )


def _drop_range(first: int, root: Root) -> None:
    kept = trees_of(root)
    last = kept["ranges"].pop(first)[0]
    for number in range(first, last + 1):
        kept["chunks"].pop(number, None)
    remove_range(kept["present"], first, last)
    kept["recalls"].pop(first, None)
    count_change(root, [(first, first)])


def _point_to_chunks(name: str, chunks: tuple[int, int], root: Root) -> None:
    document = memory_records.find_document(root, name)
    document.chunks = chunks


def _forget(name: str, root: Root) -> None:
    """Forget a document some of whose parts are lost; other objects stand in for these, so that each can be removed."""
    kept = trees_of(root)
    document = root[roots.DOCUMENTS][name]
    first, last = own_slots(document)["chunks"]
    for number in range(first, last + 1):
        if number not in kept["chunks"]:
            kept["chunks"][number] = document
    DocumentStore.forget_exactly(root, [name])


def _check_documents(root: Root) -> Iterator[ImageFault]:
    kept = trees_of(root)
    for name, document in root[roots.DOCUMENTS].items():
        slots = own_slots(document)
        tree = kept["folded"] if memory_archives.summary_of(document) else kept["ranges"]
        if slots["chunks"][0] not in tree:
            what = "no index knows that it is there"
            yield ImageFault("object without entry", name, what, "list it again", partial(_list_again, name))


def _list_again(name: str, root: Root) -> None:
    """Give a document its range back; one whose parts are gone too is taken away."""
    kept, document = trees_of(root), root[roots.DOCUMENTS][name]
    slots = own_slots(document)
    first, last = slots["chunks"]
    if memory_archives.summary_of(document) or any(n not in kept["chunks"] for n in range(first, last + 1)):
        del root[roots.DOCUMENTS][name]
        return
    moment = memory_claims.stated_at(slots)
    kept["ranges"][first] = (
        last, name, slots["user"], slots["scope"], slots["kind"], slots["standing"], slots["trust"], moment,
        slots["source"], slots["mission"], slots["persona"], slots["conversation"], slots["is_evidence"],
    )  # fmt: skip
    if first <= last:
        add_range(kept["present"], first, last)
    count_change(root, [(first, first)])


def _check_chunks(root: Root) -> Iterator[ImageFault]:
    kept = trees_of(root)
    rows = [(first, row[0], row[1]) for first, row in kept["ranges"].items()]
    spans, at = iter(rows), None
    for number, chunk in kept["chunks"].items():
        while at is None or number > at[1]:
            at = next(spans, (2**62, 2**62, ""))
        if number < at[0]:
            what = "it is of no memory"
            mend = partial(_drop_chunk, number)
            yield ImageFault("object without entry", f"part {number}", what, "take it away", mend)
            continue
        named = root[roots.DOCUMENTS].get(at[2])
        if named is not None and own_slots(chunk)["document"] is not named:
            what = f"it leads to another memory than {at[2]}"
            mend = partial(_link_chunk, number, at[2])
            yield ImageFault("wrong link", f"part {number}", what, "let it lead there", mend)


def _drop_chunk(number: int, root: Root) -> None:
    kept = trees_of(root)
    kept["chunks"].pop(number, None)
    remove_range(kept["present"], number, number)


def _link_chunk(number: int, name: str, root: Root) -> None:
    chunk = trees_of(root)["chunks"].get(number)
    chunk.document = root[roots.DOCUMENTS][name]


def _check_names(root: Root) -> Iterator[ImageFault]:
    """Yield entries that name documents which are not there, and documents that are not found by their source."""
    kept, documents = trees_of(root), root[roots.DOCUMENTS]
    for tree in ("sources", "digests"):
        for key, name in kept[tree].items():
            if name not in documents:
                mend = partial(discard_memory, tree, key)
                yield ImageFault("entry without object", tree, f"{name} is not there", "take it off", mend)
            elif not _belongs(root, tree, key, name):
                mend = partial(discard_memory, tree, key)
                what = f"{key.rpartition(chr(0))[2]} leads to {name}, which is not from there"
                yield ImageFault("wrong link", tree, what, "take it off", mend)
    for key in list(kept.get("pins", ())):
        if key.rpartition("\0")[2] not in documents:
            mend = partial(discard_memory, "pins", key)
            yield ImageFault("entry without object", "pins", f"{key.rpartition(chr(0))[2]} is not there", "unpin", mend)
    for name, document in documents.items():
        slots = own_slots(document)
        key = place_key(slots["user"], slots["scope"], slots["source"])
        is_found = slots["kind"] == "fact" or slots["standing"] != "current" or not slots["source"]
        if not is_found and key not in kept["sources"]:
            what = f"nothing leads from {slots['source']} to it"
            mend = partial(_name_source, key, name)
            yield ImageFault("object without entry", name, what, "let its source lead to it", mend)


def _belongs(root: Root, tree: str, key: str, name: str) -> bool:
    slots = own_slots(root[roots.DOCUMENTS][name])
    values = (slots["sha256"],) if tree == "digests" else (slots["source"], *memory_places.places_of(root, name))
    return key in {place_key(slots["user"], slots["scope"], value) for value in values}


def _name_source(key: str, name: str, root: Root) -> None:
    trees_of(root)["sources"][key] = name


def _check_present(root: Root) -> Iterator[ImageFault]:
    kept = trees_of(root)
    expected: Any = type(kept["present"])()
    for first, row in kept["ranges"].items():
        if first <= row[0]:
            add_range(expected, first, row[0])
    if dict(expected) != dict(kept["present"]):
        what = "the numbers of parts are not those of the memories"
        yield ImageFault("wrong count", "present", what, "count anew", partial(_set_present, dict(expected)))


def _set_present(expected: dict[int, int], root: Root) -> None:
    present = trees_of(root)["present"]
    present.clear()
    present.update(expected)
    count_change(root)


def _check_segments(root: Root) -> Iterator[ImageFault]:
    """Yield the words, links and vectors of parts that are not there, and parts without words."""
    kept = trees_of(root)
    for kind, index_type in (("text", TextIndex), ("links", LinkIndex), (VECTORS, VectorIndex)):
        held: set[int] = set()
        for number, row in segments_of(root, kind):
            index: Any = index_type()
            index.add(0, row.segment.data)
            ids = set(map(int, index.ids()))
            gone = {each for each in ids if not has_number(kept["present"], each)}
            gone = {each for each in gone if not has_number(kept["stale"], each)}
            held |= ids
            if gone:
                what = f"the index of {kind} holds part {min(gone)}, which is not there"
                mend = partial(_clear_segment, number, frozenset(gone))
                yield ImageFault("entry without object", f"segment {number}", what, "take it out", mend)
        if kind == "text":
            missing = [n for first, last in kept["present"].items() for n in range(first, last + 1) if n not in held]
            if missing:
                what = f"no word of part {missing[0]} is in the index"
                mend = partial(_index_anew, tuple(missing))
                yield ImageFault("object without entry", "the index of text", what, "index them anew", mend)


def _clear_segment(number: int, gone: frozenset[int], root: Root) -> None:
    kept = trees_of(root)
    kind, about, first, last, _, segment = kept["segments"].pop(number)
    add_segment(root, NewSegment(kind, kinds.without(kind, segment.data, gone), first, last, about))


def _index_anew(numbers: tuple[int, ...], root: Root) -> None:
    entries = [each for span in as_ranges(numbers) for each in entries_between(root, *span)]
    for kind, data in kinds.build_each(entries).items():
        add_segment(root, NewSegment(kind, data, min(numbers), max(numbers)))
