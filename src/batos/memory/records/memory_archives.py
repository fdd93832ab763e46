"""The archives of memories: the parts that a summary stands for, packed, which can come back as they were."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from batos.image import roots
from batos.image.records import Archive, Segment
from batos.image.roots import Root
from batos.memory.records.memory_segments import (
    VECTORS,
    NewSegment,
    add_range,
    add_segment,
    has_any,
    note_embedded,
    note_present,
    remove_range,
    segments_of,
    take_out,
    trees_of,
)
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import IndexDamaged

#: The slot of a memory that has the name of the summary that stands for it.
SUMMARISED_BY: Final = "summarised_by"
#: The slots of a part that is archived: one with others stays as it is.
PART_SLOTS: Final = frozenset({"document", "number", "start", "heading", "text", "marks"})


class ArchivedPart(NamedTuple):
    """A part of a memory as an archive has it; `marks` are the spans that do not simply hold."""

    number: int
    start: int
    heading: str
    text: str
    marks: tuple[tuple[Any, ...], ...] = ()

    @classmethod
    def read(cls, number: int, start: int, heading: str, text: str, marks: Sequence[Sequence[object]]) -> ArchivedPart:
        """Return a part of what JSON has of it."""
        return cls(number, start, heading, text, tuple(map(tuple, marks)))

    def slots(self) -> dict[str, Any]:
        """Return the slots of the part; no marks are none."""
        return {name: value for name, value in self._asdict().items() if name != "marks" or value}


#: The parts of each memory, by its name.
Parts: TypeAlias = Mapping[str, Sequence[ArchivedPart]]


def pack(parts: Parts) -> bytes:
    """Return the parts of memories as few bytes."""
    return zlib.compress(json.dumps({name: [*map(list, each)] for name, each in parts.items()}).encode("ascii"), 9)


def unpack(data: bytes) -> dict[str, list[ArchivedPart]]:
    """Return the parts that `pack` made bytes of. Raises: IndexDamaged: they are none."""
    try:
        found = json.loads(zlib.decompress(data))
        return {name: [ArchivedPart.read(*each) for each in parts] for name, parts in found.items()}
    except (zlib.error, ValueError, TypeError, AttributeError) as error:
        raise IndexDamaged("an archive of memories is damaged") from error


def put_away(root: Root, name: str, parts: Parts, segments: Sequence[NewSegment]) -> list[tuple[int, int]]:
    """Move the parts of memories into the archive of a summary; return their first numbers, as what was touched.

    Segments that still hold them are written anew later (`drop_stale`): nobody finds them there meanwhile.
    """
    kept, touched = trees_of(root), []
    packed = tuple((each.kind, each.about, Segment(each.kind, each.data)) for each in segments)
    kept["archives"][name] = Archive(pack(parts), packed)
    for each in parts:
        document = root[roots.DOCUMENTS][each]
        first, last = own_slots(document)["chunks"]
        row = kept["ranges"].pop(first)
        kept["folded"][first] = (name, *with_standing(row, "summarised"))
        document.standing = "summarised"
        setattr(document, SUMMARISED_BY, name)
        for number in range(first, last + 1):
            del kept["chunks"][number]
        for ranges in (kept["present"], *kept["embedded"].values()):
            remove_range(ranges, first, last)
        if first <= last:
            add_range(kept["stale"], first, last)
        touched.append((first, first))
    return touched


def bring_back(root: Root, names: Sequence[str]) -> list[str]:
    """Put the parts of archives back as they were, with their numbers; return the names of their memories.

    A memory that was taken out of recall meanwhile stays so.
    """
    archives = [trees_of(root)["archives"].pop(name) for name in names]
    unpacked = [unpack(each.texts) for each in archives]
    back = [name for parts in unpacked for name in parts]
    _clear_stale(root, [own_slots(root[roots.DOCUMENTS][each])["chunks"] for each in back])
    for archive, parts in zip(archives, unpacked, strict=True):
        _bring_back_one(root, archive, parts)
    return back


def _clear_stale(root: Root, spans: Sequence[tuple[int, int]]) -> None:
    """Take parts out of the segments that may still hold them, so that none stands there twice."""
    stale = trees_of(root)["stale"]
    left = [range(first, last + 1) for first, last in spans if has_any(stale, first, last)]
    if left:
        take_out(root, left)
        for each in left:
            remove_range(stale, each.start, each.stop - 1)


def _bring_back_one(root: Root, archive: Archive, parts: Parts) -> None:
    kept = trees_of(root)
    spans = [own_slots(root[roots.DOCUMENTS][each])["chunks"] for each in parts]
    for each, texts in parts.items():
        document = root[roots.DOCUMENTS][each]
        for part in texts:
            kept["chunks"][part.number] = _object_of(root, document, part)
        first, last = own_slots(document)["chunks"]
        row = kept["folded"].pop(first)[1:]
        standing = own_slots(document)["standing"]
        document.standing = standing = "current" if standing == "summarised" else standing
        kept["ranges"][first] = with_standing(row, standing)
        delattr(document, SUMMARISED_BY)
        note_present(root, first, last)
    for kind, about, segment in archive.segments:
        if kind != VECTORS or about in kept["embedded"]:
            _index_again(root, kind, about, segment.data, spans)


def _index_again(root: Root, kind: str, about: str, data: bytes, spans: Sequence[tuple[int, int]]) -> None:
    add_segment(root, NewSegment(kind, data, min(first for first, _ in spans), max(last for _, last in spans), about))
    if kind == VECTORS:
        note_embedded(root, about, [number for first, last in spans for number in range(first, last + 1)])


def summary_of(document: UvmObject) -> str:
    """Return the name of the summary that stands for a memory; "" for none."""
    return str(own_slots(document).get(SUMMARISED_BY, ""))


def is_summary(root: Root, name: str) -> bool:
    """Test if a memory stands for others, whose parts are archived."""
    return name in trees_of(root).get("archives", ())


def rows(root: Root) -> Iterator[tuple[int, str, tuple[Any, ...]]]:
    """Yield the first number of each memory that is archived, its summary, and its range as `ranges` had it."""
    for first, row in trees_of(root).get("folded", {}).items():
        yield first, row[0], tuple(row[1:])


def text_segments(root: Root) -> Iterator[tuple[str, bytes]]:
    """Yield the segment of words of each archive, under the name of its summary."""
    for name, archive in trees_of(root).get("archives", {}).items():
        for kind, _, segment in archive.segments:
            if kind == "text":
                yield name, segment.data
                segment._p_deactivate()
        archive._p_deactivate()


def find_part(root: Root, number: int) -> UvmObject | None:
    """Return an archived part by its number, as an object of no image; None if there is none."""
    folded = trees_of(root).get("folded")
    if not folded or folded.minKey() > number:
        return None
    first = folded.maxKey(number)
    name, last, document = folded[first][:3]
    if number > last:
        return None
    return _object_of(root, root[roots.DOCUMENTS][document], _parts_of(root, name)[document][number - first])


def parts_of(root: Root, document: UvmObject) -> list[UvmObject]:
    """Return the parts of a memory that is archived, as objects of no image."""
    found = _parts_of(root, summary_of(document))[own_slots(document)["name"]]
    return [_object_of(root, document, each) for each in found]


def _parts_of(root: Root, name: str) -> Mapping[str, Sequence[ArchivedPart]]:
    """Return what an archive holds; it is unpacked once as long as the database has it in memory."""
    archive = trees_of(root)["archives"][name]
    found: Parts | None = getattr(archive, "_v_parts", None)
    if found is None:
        found = archive._v_parts = unpack(archive.texts)
    return found


def _object_of(root: Root, document: UvmObject, part: ArchivedPart) -> UvmObject:
    parents = (root["knowledge_catalog_obj"],) if "knowledge_catalog_obj" in root else ()
    return UvmObject({"document": document, **part.slots()}, parents)


def with_standing(row: Sequence[object], standing: str) -> tuple[Any, ...]:
    """Return a range with another standing, which stands where ChunkRange has it."""
    return (*row[:5], standing, *row[6:])


# -- what segments still hold


def stale_numbers(root: Root) -> list[tuple[int, int]]:
    """Return the numbers of parts that were archived and may still stand in segments, as ranges."""
    return list(trees_of(root).get("stale", {}).items())


def holding_stale(root: Root) -> list[int]:
    """Return the numbers of the segments that may hold a part that was archived."""
    stale = stale_numbers(root)
    return [
        number
        for number, row in segments_of(root)
        if any(row.first <= last and first <= row.last for first, last in stale)
    ]


def rewrite_segment(root: Root, number: int, before: Segment, data: bytes) -> bool:
    """Put bytes without archived parts in the place of a segment; return False if it is gone meanwhile."""
    kept = trees_of(root)
    row = kept["segments"].get(number)
    if row is None or row[-1]._p_oid != before._p_oid:
        return False
    del kept["segments"][number]
    add_segment(root, NewSegment(row[0], data, row[2], row[3], row[1]))
    return True


def forget_stale(root: Root, ranges: Sequence[tuple[int, int]]) -> None:
    """Write down that no segment holds these parts any more."""
    for first, last in ranges:
        remove_range(trees_of(root)["stale"], first, last)
