"""Reads what an image remembers: lists of documents, and the parts of them that match a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory import thresholds
from batos.memory.claims.adjudication import View, marked_spans, marked_text
from batos.memory.evidence import PERHAPS, PINNED, Passage
from batos.memory.records import (
    memory_archives,
    memory_claims,
    memory_places,
    memory_records,
    memory_standings,
    memory_wordings,
)
from batos.memory.records.memories_set_aside import STANDS_FOR
from batos.memory.records.memory_claims import ClaimMark
from batos.memory.records.memory_records import ChunkRange, MemoryKind
from batos.memory.search import later_texts
from batos.memory.search.chunk_search import ChunkSearch, FoundChunk, FoundChunks, RecallQuery, nearness
from batos.memory.search.linked_recall import Link, RecallMode, SaidWords
from batos.memory.search.metadata import CURRENT, WITH_SUMMARISED, MemoryReach
from batos.memory.segmentation import sentence_spans, stems, terms, words
from batos.memory.words_by_language import COMMON_STEMS
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.memory_documents import (
    ChunkDocument,
    MarkDocument,
    MemoriesPage,
    MemoryLine,
    PathDocument,
    RecalledChunk,
    RecalledPage,
    WholeMemory,
)

#: Words that a recall names as the reason why a part was found: so many, at least so rare as a share of the rarest.
NAMED_WORDS, TELLING = 6, 0.3

#: The kinds of memories that a mission is answered from, in this order, and only such as are evidence.
GIVEN: Final = frozenset[MemoryKind]({"document", "turn", "fact", "summary"})
ANSWERED: Final = frozenset[MemoryKind]({"mission"})
EVIDENCE: Final = frozenset({True})
#: Parts that are shown as perhaps about the matter, at most.
MOST_PERHAPS: Final = 3
#: The share of its weight that counts of a statement that does not simply hold, beside those that do.
HISTORY_WEIGHT: Final = 0.5
#: Facts, turns and notes that are looked through for the newest ones.
MOST_NEWEST: Final = 200


@dataclass(frozen=True, slots=True)
class RecallView:
    """The way a recall shows its parts; `newest`: behind those that match come the newest facts, turns and notes."""

    view: View = "marked"
    newest: bool = False


#: Statements that do not hold are shown behind their marks.
MARKED: Final = RecallView()


class Recollection:
    """Recalls from any root of one image; the indexes are read into memory by the first search."""

    def __init__(self) -> None:
        self._search = ChunkSearch()

    @property
    def search(self) -> ChunkSearch:
        """Return the search that it recalls with."""
        return self._search

    def list_memories(self, root: Root, reach: MemoryReach, limit: int, sha256: Sequence[str] = ()) -> MemoriesPage:
        """Return the newest documents within reach; with digests, only those that have one of these contents."""
        firsts, chunks = self._search.documents(root, reach)
        if sha256:
            names = {name for each in sha256 for name in memory_places.names_with_content(root, each, reach.user)}
            found = [root[roots.DOCUMENTS][name] for name in sorted(names, reverse=True)]
            shown = [each for each in found if reach.holds(_range_of(each))][:limit]
        else:
            shown = [memory_records.document_at(root, first) for first in firsts[:limit].tolist()]
        return {"memories": [line_of(each) for each in shown], "documents": len(firsts), "chunks": chunks}

    def list_pinned(self, root: Root, reach: MemoryReach, limit: int) -> MemoriesPage:
        """Return the pinned documents within reach."""
        names = memory_standings.list_pinned(root, reach.user or "")
        found = [each for each in (root[roots.DOCUMENTS][name] for name in names) if reach.holds(_range_of(each))]
        lines = [line_of(each) for each in found]
        return {"memories": lines[:limit], "documents": len(lines), "chunks": sum(each["chunks"] for each in lines)}

    def show(self, root: Root, named: str, user: str | None) -> WholeMemory:
        """Return a document with its parts. Raises: NotFound: there is none, or it is another user's."""
        document = memory_records.find_document(root, named, user)
        parts = [_part(each) for each in memory_records.chunks_of(root, document)]
        below = [root[roots.DOCUMENTS][name] for name in own_slots(document).get(STANDS_FOR, ())]
        return {**line_of(document), "parts": parts, "stands_for": [line_of(each) for each in below]}

    def recall(
        self, root: Root, query: RecallQuery, reach: MemoryReach, most: int, shown: RecallView = MARKED
    ) -> RecalledPage:
        """Return the parts that match a query best, and how many have a word of it."""
        kinds = GIVEN if reach.kinds is None else reach.kinds - ANSWERED
        found = self._search.recall(root, query, replace(reach, kinds=kinds), most)
        parts = sorted(found.best(most), key=lambda each: not _has_key(each.chunk, query.words))
        answers = self._answers(root, query, reach, most - len(parts))
        if shown.newest and len(parts) < most:
            parts += _newest(root, reach, {own_slots(each.chunk)["number"] for each in parts}, most - len(parts))
        lines = [_recalled_chunk(each, found, shown.view) for each in parts]
        lines += [_recalled_chunk(each, answers, shown.view) for each in answers.best(most - len(parts))]
        lines = [each for each in lines if each["text"]]
        return {"recalled": lines, "of": max(found.count + answers.count, len(lines))}

    def _answers(self, root: Root, query: RecallQuery, reach: MemoryReach, most: int) -> FoundChunks:
        """Return the earlier answers that match: they have the very question for a title, so they come behind the rest.

        No name in one of them leads to anything.
        """
        wanted = ANSWERED if reach.kinds is None else ANSWERED & reach.kinds
        mode: RecallMode = "hybrid" if query.mode == "linked" else query.mode
        return self._search.recall(root, replace(query, mode=mode), replace(reach, kinds=wanted), max(0, most))

    def find_passages(
        self, root: Root, query: RecallQuery, reach: MemoryReach, most: int, with_answers: bool = True
    ) -> tuple[Passage, ...]:
        """Return the parts that bear on a query, as evidence.

        Answers of earlier missions are looked at only `with_answers` and if nothing that was given or said bears on it,
        and of these only such as documents carried.
        """
        within = replace(reach, kinds=GIVEN, evidence=EVIDENCE)
        given = self._search.recall(root, query, within, most)
        near = [(nearness(each, given.said), each) for each in given.best(most)]
        best, said = [each for share, each in near if share >= 1], given.said
        if not best and with_answers:
            answers = self._search.recall(root, query, replace(reach, kinds=ANSWERED, evidence=EVIDENCE), most)
            standing = (each for each in answers.best(most) if _stands(root, each.chunk))
            best, said = [each for each in standing if nearness(each, answers.said) >= 1], answers.said
        if best:
            best += later_texts.later_of(best, near)
            found = [(each, _reasons(each, said, ""), each.score / best[0].score) for each in best]
        else:
            nearest = sorted(near, key=lambda pair: -pair[0])[:MOST_PERHAPS]
            perhaps = [each for share, each in nearest if share >= thresholds.RECALL_PERHAPS]
            found = [(each, f"{PERHAPS}; {_reasons(each, given.said, '')}", 1.0) for each in perhaps]
        for each, weight in later_texts.successors_of(root, [(each.chunk, weight) for each, _, weight in found]):
            if within.holds(_range_of(own_slots(each)["document"])):
                found.append((FoundChunk(each, weight), later_texts.INSTEAD, weight))
        return tuple(passage for each, why, weight in found for passage in _passages(each.chunk, why, weight))

    def has_any(self, root: Root, reach: MemoryReach) -> bool:
        """Test if anything that was given or said is within reach."""
        return len(self._search.documents(root, replace(reach, kinds=GIVEN, evidence=EVIDENCE))[0]) > 0

    def pinned_passages(self, root: Root, reach: MemoryReach, most: int) -> tuple[Passage, ...]:
        """Return the first parts of what is pinned within reach, so many, as evidence."""
        named = memory_standings.list_pinned(root, reach.user or "", reach.scopes or ())
        documents = (root[roots.DOCUMENTS][name] for name in named)
        within = (each for each in documents if reach.holds(_range_of(each)))
        parts = islice((part for each in within for part in memory_records.chunks_of(root, each)), most)
        return tuple(passage for each in parts if _stands(root, each) for passage in _passages(each, PINNED, 1.0))

    def passages_of(
        self, root: Root, found: Sequence[tuple[int, str, float]], reach: MemoryReach
    ) -> tuple[Passage, ...]:
        """Return chunks as evidence by their numbers, reasons and weights: those that are there and within reach.

        Those too that a summary has come to stand for meanwhile.
        """
        reach = replace(reach, standings=WITH_SUMMARISED | (reach.standings or CURRENT))
        there = ((memory_records.find_chunk(root, number), why, weight) for number, why, weight in found)
        return tuple(
            passage
            for each, why, weight in there
            if each is not None and reach.holds(_range_of(own_slots(each)["document"]))
            for passage in _passages(each, why, weight)
        )

    def whole_documents(self, root: Root, names: Iterable[str], most: int) -> tuple[Passage, ...]:
        """Return all parts of documents as evidence, those that were given or said and have at most so many bytes."""
        found = (root[roots.DOCUMENTS].get(name) for name in names)
        given = (each for each in found if each is not None and own_slots(each)["kind"] in GIVEN)
        whole = [each for each in given if own_slots(each)["size"] <= most]
        parts = (part for each in whole for part in memory_records.chunks_of(root, each))
        return tuple(passage for each in parts for passage in _passages(each, "", 1.0))


def _has_key(chunk: UvmObject, said: str) -> bool:
    """Test if a part is of the fact whose key is said, however its words are joined."""
    key = own_slots(own_slots(chunk)["document"]).get("key", "")
    return bool(key) and words(key.replace("_", " ")) == words(said.replace("_", " "))


def _newest(root: Root, reach: MemoryReach, known: set[int], most: int) -> Iterator[FoundChunk]:
    """Yield the parts of the newest facts, turns and notes within reach that are not known, so many."""
    for name in memory_claims.newest_claims_within(root, reach.user or "", reach.scopes, MOST_NEWEST):
        document = root[roots.DOCUMENTS][name]
        if not reach.holds(_range_of(document)):
            continue
        for chunk in memory_records.chunks_of(root, document):
            if own_slots(chunk)["number"] not in known:
                if not most:
                    return
                most -= 1
                yield FoundChunk(chunk, 0.0)


def _size(document: UvmObject) -> int:
    first, last = own_slots(document)["chunks"]
    return int(last - first + 1)


def line_of(document: UvmObject) -> MemoryLine:
    """Return the line of a document."""
    slots = own_slots(document)
    return {
        "document": slots["name"],
        "title": slots["title"],
        "source": slots["source"],
        "scope": slots["scope"],
        "user": slots["user"],
        "media_type": slots["media_type"],
        "sha256": slots["sha256"],
        "size": slots["size"],
        "trust": slots["trust"],
        "at": memory_claims.stated_at(slots),
        "chunks": _size(document),
        "kind": slots["kind"],
        "standing": slots["standing"],
        "mission": slots["mission"],
        "persona": slots["persona"],
        "conversation": slots["conversation"],
        "speaker": slots["speaker"],
        "key": slots.get("key", ""),
        "superseded_by": slots.get("superseded_by", "") if slots["standing"] == "superseded" else "",
        "valid_to": slots.get("valid_to", "") if slots["standing"] == "superseded" else "",
        "summarised_by": memory_archives.summary_of(document),
        "left_out": [*slots.get("left_out", ())],
    }


def _part(chunk: UvmObject) -> ChunkDocument:
    slots = own_slots(chunk)
    return {
        "chunk": slots["number"],
        "heading": slots["heading"],
        "span": [slots["start"], slots["start"] + len(slots["text"])],
        "text": slots["text"],
        "marks": [_mark(slots["start"], each) for each in memory_claims.marks_of(chunk)],
    }


def _mark(start: int, mark: ClaimMark) -> MarkDocument:
    return {
        "span": [start + mark.start, start + mark.end],
        "standing": mark.standing,
        "reason": mark.reason,
        "by": mark.by,
        "since": mark.since,
    }


def _shown_text(chunk: UvmObject, standing: str, view: View) -> str:
    """Return a chunk's text with its marks; history of which no part is marked is marked as a whole."""
    text, marks = own_slots(chunk)["text"], memory_claims.marks_of(chunk)
    if not marks and standing not in WITH_SUMMARISED:
        marks = (ClaimMark(0, len(text), standing),)
    return marked_text(text, marks, view)


def _range_of(document: UvmObject) -> ChunkRange:
    slots = own_slots(document)
    return ChunkRange(
        slots["chunks"][1], slots["name"], slots["user"], slots["scope"], slots["kind"], slots["standing"],
        slots["trust"], memory_claims.stated_at(slots), slots["source"], slots["mission"],
        slots["persona"], slots["conversation"], slots.get("is_evidence", True),
    )  # fmt: skip


def _passages(chunk: UvmObject, why: str, weight: float) -> Iterator[Passage]:
    """Yield a chunk as evidence, without numbers: its text, and apart from it the statements that do not hold.

    A fact stands behind the words of its key, without which it says little. Perhaps is in the name of a part that
    is only perhaps about the matter.
    """
    slots = own_slots(chunk)
    document = own_slots(slots["document"])
    title = document["title"]
    key = f"{title}: " if document["kind"] == "fact" and document.get("key") else ""
    name = f"{title} ({PERHAPS})" if why.startswith(PERHAPS) else title
    for start, text, standing in marked_spans(slots["text"], memory_claims.marks_of(chunk)):
        yield Passage(
            0, name, document["sha256"], slots["start"] + start, f"{key}{text}", document["trust"],
            document["name"], slots["number"], why, document["mission"],
            weight * HISTORY_WEIGHT if standing else weight, standing,
            head=slots["heading"].strip(), day=memory_claims.stated_at(document)[:10], speaker=document["speaker"],
            source=document["source"], left_out=document.get("left_out", ()), pages=document.get("pages", ()),
        )  # fmt: skip


def whole_weight(passage: Passage) -> float:
    """Return the weight of the chunk that a passage is of."""
    return passage.weight / HISTORY_WEIGHT if passage.standing else passage.weight


def _stands(root: Root, chunk: UvmObject) -> bool:
    """Test if a chunk still has what it was made from."""
    document = own_slots(own_slots(chunk)["document"])
    return document["kind"] not in ANSWERED or memory_wordings.is_grounded(root, document["mission"])


def _recalled_chunk(found: FoundChunk, among: FoundChunks, view: View) -> RecalledChunk:
    line = line_of(own_slots(found.chunk)["document"])
    return {
        **_part(found.chunk),
        "text": _shown_text(found.chunk, line["standing"], view),
        "document": line["document"],
        "title": line["title"],
        "source": line["source"],
        "scope": line["scope"],
        "at": line["at"],
        "trust": line["trust"],
        "sha256": line["sha256"],
        "kind": line["kind"],
        "standing": line["standing"],
        "key": line["key"],
        "superseded_by": line["superseded_by"],
        "valid_to": line["valid_to"],
        "summarised_by": line["summarised_by"],
        "score": round(found.score, 3),
        "why": _reasons(found, among.said, line["title"]),
        "path": None if found.link is None else _path(found.link, own_slots(found.chunk)["text"], among),
    }


def _path(link: Link, text: str, among: FoundChunks) -> PathDocument:
    seed = among.find(link.chunk)
    title = "" if seed is None else own_slots(own_slots(seed)["document"])["title"]
    saying = (each for span in sentence_spans(text) if {*stems(link.name)} <= {*stems(each := text[slice(*span)])})
    sentence = link.sentence or next(saying, "")
    return {"chunk": link.chunk, "title": title, "name": link.name, "sentence": sentence}


def _reasons(found: FoundChunk, said: SaidWords, title: str) -> str:
    """Return the reasons why a chunk was found, in a line."""
    slots = own_slots(found.chunk)
    there = {
        said.words.stem_of[stem]: term
        for term in terms(f"{title}\n{slots['heading']}\n{slots['text']}")
        if (stem := next(stems(term))) in said.words.stem_of
    }
    telling = [stem for stem in there if stem not in COMMON_STEMS] or list(there)
    shared = sorted(telling, key=lambda stem: -said.rarity[stem])
    words = [there[stem] for stem in shared if said.rarity[stem] >= TELLING * said.rarity[shared[0]]][:NAMED_WORDS]
    reasons = [
        "among the newest" if not found.score else "",
        "named in the question" if found.is_named else "",
        f"words: {', '.join(words)}" if words else "",
        f"meaning: {found.cosine:.2f}" if found.cosine is not None else "",
        f"link: {found.link.name}" if found.link is not None else "",
    ]
    return "; ".join(filter(None, reasons))
