"""Reads what an image remembers: lists of documents, and the parts of them that match a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from batos.image import (
    memory_archives,
    memory_claims,
    memory_pins,
    memory_places,
    memory_quotes,
    memory_records,
    roots,
)
from batos.image.memory_claims import ClaimMark
from batos.image.memory_folding import STANDS_FOR
from batos.image.memory_records import ChunkRange, MemoryKind
from batos.image.roots import Root
from batos.memory.chunk_search import ChunkSearch, FoundChunk, FoundChunks, RecallQuery
from batos.memory.claims.marked_texts import View, marked_spans, marked_text
from batos.memory.common_words import COMMON_STEMS
from batos.memory.evidence import PINNED, Passage
from batos.memory.linked_recall import Link
from batos.memory.reach import CURRENT, WITH_SUMMARISED, MemoryReach
from batos.memory.sentences import sentence_spans
from batos.memory.terms import stems, terms
from batos.memory_documents import (
    ChunkDocument,
    MarkDocument,
    MemoriesPage,
    MemoryLine,
    PathDocument,
    RecalledChunk,
    RecalledPage,
    WholeMemory,
)
from batos.objects.prototype import UvmObject, own_slots

#: Words that a recall names as the reason why a part was found: so many, at least so rare as a share of the rarest.
NAMED_WORDS, TELLING = 6, 0.3
#: The least that a part must have of a question to be shown to a mission (decision 0059).
LEAST_COVERED: Final = 0.325
#: The least mean of that and of the cosine, where a part has a vector (decision 0061).
LEAST_ALIKE: Final = 0.34


#: The kinds of memories that a mission is answered from, in this order, and only such as are evidence.
GIVEN: Final = frozenset[MemoryKind]({"document", "turn", "fact", "summary"})
ANSWERED: Final = frozenset[MemoryKind]({"mission"})
EVIDENCE: Final = frozenset({True})
#: An answer has the very question for a title, so that it matches best when that is asked again: a recall takes this
#: share of its score, and looks at so many times as many parts as it shows.
ANSWER_SHARE, WIDER = 0.4, 4


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
            shown = [each for each in found if reach.holds(_range_of_document(each))][:limit]
        else:
            shown = [memory_records.document_at(root, first) for first in firsts[:limit].tolist()]
        return {"memories": [line_of(each) for each in shown], "documents": len(firsts), "chunks": chunks}

    def list_pinned(self, root: Root, reach: MemoryReach, limit: int) -> MemoriesPage:
        """Return the pinned documents within reach."""
        names = memory_pins.list_all_pinned(root, reach.user or "")
        found = [
            each for each in (root[roots.DOCUMENTS][name] for name in names) if reach.holds(_range_of_document(each))
        ]
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
        found = self._search.recall(root, query, reach, WIDER * most)
        parts = _given_before_answers(found.best(WIDER * most))[:most]
        if shown.newest and len(parts) < most:
            parts += _newest(root, reach, {own_slots(each.chunk)["number"] for each in parts}, most - len(parts))
        lines = (_recalled_chunk(each, found, shown.view) for each in parts)
        return {"recalled": [each for each in lines if each["text"]], "of": found.count}

    def find_passages(
        self, root: Root, query: RecallQuery, reach: MemoryReach, most: int, with_answers: bool = True
    ) -> tuple[Passage, ...]:
        """Return the parts that bear on a query, as evidence.

        Answers of earlier missions are looked at only `with_answers` and if nothing that was given or said bears on it,
        and of these only such as documents carried.
        """
        for kinds in (GIVEN, ANSWERED) if with_answers else (GIVEN,):
            found = self._search.recall(root, query, replace(reach, kinds=kinds, evidence=EVIDENCE), most)
            best = [each for each in found.best(most) if is_relevant(each, found.rarity) and _stands(root, each.chunk)]
            if best:
                most_ = best[0].score
                return tuple(
                    passage
                    for each in best
                    for passage in _passages(each.chunk, _reasons(each, found.rarity, ""), each.score / most_)
                )
        return ()

    def pinned_passages(self, root: Root, reach: MemoryReach, most: int) -> tuple[Passage, ...]:
        """Return the first parts of what is pinned within reach, so many, as evidence."""
        named = memory_pins.list_pinned(root, reach.user or "", reach.scopes or ())
        documents = (root[roots.DOCUMENTS][name] for name in named)
        within = (each for each in documents if reach.holds(_range_of_document(each)))
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
            if each is not None and reach.holds(_range_of(each))
            for passage in _passages(each, why, weight)
        )


def _newest(root: Root, reach: MemoryReach, known: set[int], most: int) -> Iterator[FoundChunk]:
    """Yield the parts of the newest facts, turns and notes within reach that are not known, so many."""
    for name in memory_claims.newest_claims_within(root, reach.user or "", reach.scopes, MOST_NEWEST):
        document = root[roots.DOCUMENTS][name]
        if not reach.holds(_range_of_document(document)):
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


def _given_before_answers(parts: Iterable[FoundChunk]) -> list[FoundChunk]:
    """Return parts in order, the best first, where those of answers have a share of their scores."""
    weighed = [
        replace(each, score=ANSWER_SHARE * each.score)
        if own_slots(own_slots(each.chunk)["document"])["kind"] in ANSWERED
        else each
        for each in parts
    ]
    return sorted(weighed, key=lambda each: -each.score)


def _range_of(chunk: UvmObject) -> ChunkRange:
    return _range_of_document(own_slots(chunk)["document"])


def _range_of_document(document: UvmObject) -> ChunkRange:
    slots = own_slots(document)
    return ChunkRange(
        slots["chunks"][1], slots["name"], slots["user"], slots["scope"], slots["kind"], slots["standing"],
        slots["trust"], memory_claims.stated_at(slots), slots["source"], slots["mission"],
        slots["persona"], slots["conversation"], slots.get("is_evidence", True),
    )  # fmt: skip


def _passages(chunk: UvmObject, why: str, weight: float) -> Iterator[Passage]:
    """Yield a chunk as evidence, without numbers: its text, and apart from it the statements that do not hold."""
    slots = own_slots(chunk)
    document = own_slots(slots["document"])
    for start, text, standing in marked_spans(slots["text"], memory_claims.marks_of(chunk)):
        yield Passage(
            0, document["title"], document["sha256"], slots["start"] + start, text, document["trust"],
            document["name"], slots["number"], why, document["mission"],
            weight * HISTORY_WEIGHT if standing else weight, standing,
            head=slots["heading"], day=memory_claims.stated_at(document)[:10],
        )  # fmt: skip


def whole_weight(passage: Passage) -> float:
    """Return the weight of the chunk that a passage is of."""
    return passage.weight / HISTORY_WEIGHT if passage.standing else passage.weight


def _stands(root: Root, chunk: UvmObject) -> bool:
    """Tell whether a chunk still has what it was made from."""
    document = own_slots(own_slots(chunk)["document"])
    return document["kind"] not in ANSWERED or memory_quotes.is_grounded(root, document["mission"])


def is_relevant(found: FoundChunk, rarity: Mapping[str, float]) -> bool:
    """Tell whether a chunk has enough of a query to be shown to a mission, by words, and by vectors where it has one.

    The sentence that led to a chunk counts as one of its own.
    """
    covered = coverage(rarity, found.chunk, found.link.sentence if found.link else "")
    return covered >= LEAST_COVERED if found.cosine is None else (covered + found.cosine) / 2 >= LEAST_ALIKE


def coverage(rarity: Mapping[str, float], chunk: UvmObject, led_by: str = "") -> float:
    """Return how much of a query a chunk has: the mean of the chunk's share and that of the best of its sentences.

    A share is that of the weight of the query's stems by their rarity. The stems of the title and of the sentence that
    led to the chunk are each sentence's too.
    """
    slots = own_slots(chunk)
    text = slots["text"]
    known = frozenset(stems(f"{own_slots(slots['document'])['title']}\n{led_by}"))
    sentences = (frozenset(stems(text[start:end])) for start, end in sentence_spans(text))
    whole = _share(rarity, known.union(stems(text)))
    return (whole + max((_share(rarity, known | each) for each in sentences), default=0.0)) / 2


def _share(rarity: Mapping[str, float], there: frozenset[str]) -> float:
    return sum(weight for stem, weight in rarity.items() if stem in there) / (sum(rarity.values()) or 1.0)


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
        "why": _reasons(found, among.rarity, line["title"]),
        "path": None if found.link is None else _path(found.link, among),
    }


def _path(link: Link, among: FoundChunks) -> PathDocument:
    seed = among.find(link.chunk)
    title = "" if seed is None else own_slots(own_slots(seed)["document"])["title"]
    return {"chunk": link.chunk, "title": title, "name": link.name, "sentence": link.sentence}


def _reasons(found: FoundChunk, rarity: Mapping[str, float], title: str) -> str:
    """Return the reasons why a chunk was found, in a line."""
    there = {next(stems(term)): term for term in terms(f"{own_slots(found.chunk)['text']}\n{title}")}
    held = [stem for stem in rarity if stem in there]
    telling = [stem for stem in held if stem not in COMMON_STEMS] or held
    shared = sorted(telling, key=lambda stem: -rarity[stem])
    words = [there[stem] for stem in shared if rarity[stem] >= TELLING * rarity[shared[0]]][:NAMED_WORDS]
    reasons = [
        "among the newest" if not found.score else "",
        "named in the question" if found.is_named else "",
        f"words: {', '.join(words)}" if words else "",
        f"meaning: {found.cosine:.2f}" if found.cosine is not None else "",
        f"link: {found.link.name}" if found.link is not None else "",
    ]
    return "; ".join(filter(None, reasons))
