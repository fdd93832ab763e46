"""Make the summary of a region: lines of a model, or sentences that a rule takes from the memories themselves."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from batos.image.ids import document_id, iso
from batos.image.records import least_trust
from batos.memory.indexes import kinds, links
from batos.memory.indexes.postings import Entry
from batos.memory.mentions import names_of
from batos.memory.passages import passages
from batos.memory.records.memory_archives import Parts
from batos.memory.records.memory_records import ChunkRange, ChunkText, NewDocument
from batos.memory.segmentation import sentence_spans, stems, words
from batos.memory.words_by_language import COMMON_STEMS

#: The room of a summary, in characters: a share of what it stands for, at least and at most so many.
SHARE, LEAST, MOST = 8, 1_200, 64_000
#: The best sentences of all, of which a summary is made: each is compared with those that are chosen already.
LOOKED_AT: Final = 2_048
#: The most of what it stands for that a summary of memories which say the same may be.
WORTH: Final = 0.7
#: Sentences that share so much of their words say the same; a first sentence counts so many times.
SAME, LEAD = 0.6, 1.5
#: The longest sentence that is taken, in characters: what is longer is a table or a list.
LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A memory that is to be summarised: its name, its title and its text."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A paragraph of a summary, and the memory that it comes from."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class _ExtractSentence:
    memory: int
    place: int
    text: str
    stems: frozenset[str]


def room_for(texts: Sequence[FoldedText]) -> int:
    """Return the characters that a summary of memories may have."""
    return min(MOST, max(LEAST, sum(len(each.text) for each in texts) // SHARE))


def central(texts: Sequence[FoldedText], most: int | None = None) -> list[SummaryLine]:
    """Return the sentences that say most of what memories say, in their order, within so many characters.

    None: as many as a summary may have.

    Each memory has its title, and the best of its sentences first. A sentence counts by the words that its memory has
    often and others have not, and what a chosen sentence says already is left out.
    """
    sentences = list(_sentences(texts))
    scores = _centrality(sentences)
    room = (most or room_for(texts)) - sum(len(each.title) + 2 for each in texts)
    chosen: list[_ExtractSentence] = []
    firsts, others = _by_turns(sentences, scores)
    for each in (*firsts, *others)[:LOOKED_AT]:
        if len(each.text) < room and not any(_is_same(each, one) for one in chosen):
            chosen.append(each)
            room -= len(each.text) + 1
    return _lines(texts, chosen)


def distinct(texts: Sequence[FoldedText]) -> list[SummaryLine]:
    """Return all that memories say that say nearly the same: the first as it is, of the others what differs.

    A memory that begins with another sentence is about something else, of which an equal sentence is another fact: all
    of it stays. Nothing is returned if that is not much less than all of them.
    """
    keys = [_key(texts[0].text[start:end]) for start, end in sentence_spans(texts[0].text)]
    first, seen = keys[0] if keys else "", set(keys)
    lines = [SummaryLine(texts[0].name, titled_text(texts[0].title, texts[0].text))]
    for each in texts[1:]:
        sentences = [each.text[start:end] for start, end in sentence_spans(each.text)]
        is_other = bool(sentences) and _key(sentences[0]) != first
        new = [sentence for sentence in sentences if is_other or _key(sentence) not in seen]
        if not is_other:
            seen.update(map(_key, new))
        said = " ".join(dict.fromkeys(new))
        lines.append(SummaryLine(each.name, titled_text(each.title, said) if said else ""))
    whole = sum(len(each.text) for each in texts)
    return lines if sum(len(each.text) for each in lines) <= WORTH * whole else []


def _key(sentence: str) -> tuple[str, ...] | str:
    """Return what two sentences have in common that say the same; without words that is all of it."""
    return tuple(words(sentence)) or sentence


def _sentences(texts: Sequence[FoldedText]) -> Iterator[_ExtractSentence]:
    for memory, each in enumerate(texts):
        for place, (start, end) in enumerate(sentence_spans(each.text)):
            said = " ".join(each.text[start:end].split())
            held = frozenset(stems(said)) - COMMON_STEMS
            if held and len(said) <= LONGEST and words(said) != words(each.title):
                yield _ExtractSentence(memory, place, said, held)


def _centrality(sentences: Sequence[_ExtractSentence]) -> list[float]:
    """Return how much each sentence says of what its memory says, and others do not."""
    own = Counter((each.memory, stem) for each in sentences for stem in each.stems)
    among = len({each.memory for each in sentences})
    held = Counter(stem for _, stem in own)
    if among < 2:  # of a single memory the sentences are compared
        among, held = len(sentences), Counter(stem for each in sentences for stem in each.stems)
    rarity = {stem: math.log(1 + among / count) for stem, count in held.items()}
    return [
        (LEAD if each.place == 0 else 1.0)
        * sum(own[each.memory, stem] * rarity[stem] for stem in each.stems)
        / math.sqrt(len(each.stems))
        for each in sentences
    ]


def _by_turns(
    sentences: Sequence[_ExtractSentence], scores: Sequence[float]
) -> tuple[list[_ExtractSentence], list[_ExtractSentence]]:
    """Return the best sentence of each memory, and all others, the best first."""
    order = sorted(range(len(sentences)), key=lambda at: (-scores[at], at))
    best: dict[int, _ExtractSentence] = {}
    others = []
    for at in order:
        each = sentences[at]
        if each.memory in best:
            others.append(each)
        else:
            best[each.memory] = each
    return list(best.values()), others


def _is_same(each: _ExtractSentence, other: _ExtractSentence) -> bool:
    fewer, more = sorted((len(each.stems), len(other.stems)))
    if fewer / more < SAME:  # as with most: no more than these can be shared
        return False
    both = len(each.stems & other.stems)
    return both / (fewer + more - both) >= SAME and _numbers(each) == _numbers(other)


def _numbers(each: _ExtractSentence) -> frozenset[str]:
    """Return the numbers of a sentence: two with different ones say different things."""
    return frozenset(stem for stem in each.stems if not stem.isalpha())


def _lines(texts: Sequence[FoldedText], chosen: Sequence[_ExtractSentence]) -> list[SummaryLine]:
    """Return a paragraph for each memory: its title, and its chosen sentences in their order."""
    lines = []
    for memory, each in enumerate(texts):
        own = sorted((one for one in chosen if one.memory == memory), key=lambda one: one.place)
        lines.append(SummaryLine(each.name, titled_text(each.title, " ".join(one.text for one in own))))
    return lines


def titled_text(title: str, said: str) -> str:
    """Return a text behind its title, unless it begins with that."""
    head = " ".join(title.split())
    if not said:
        return f"{head}."
    plain = " ".join(said[: 2 * len(head) + 8].split()).lstrip("# ")
    return said if not head or plain.casefold().startswith(head.casefold()) else f"{head}: {said}"


#: Characters of a title of which a summary's own is made.
_TITLE = 60


@dataclass(frozen=True, slots=True)
class FoldedMemory:
    """A memory of a region: its range, its title, who spoke and what it is evidence of."""

    row: ChunkRange
    title: str
    speaker: str


@dataclass(frozen=True, slots=True)
class MadeSummary:
    """A summary as a document, and the place of the part that stands for each memory, by its name."""

    document: NewDocument
    places: Mapping[str, int]

    @property
    def text(self) -> str:
        """Return all that it says."""
        return "\n\n".join(each.text for each in self.document.chunks)


def make_summary(memories: Sequence[FoldedMemory], lines: Sequence[SummaryLine], now: datetime) -> MadeSummary:
    """Return the summary of memories of one group that has these lines.

    The summary is trusted as little as the least of them, and was said when the newest was. Of answers it is no
    evidence.
    """
    rows = [each.row for each in memories]
    title = _title_of([each.title for each in memories])
    text, starts = _join(lines)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    chunks = tuple(ChunkText(each.start, "", each.text) for each in passages([(title, digest, text)]))
    document = NewDocument(
        document_id(now), rows[0].user, rows[0].scope, "", title, "text/plain", digest,
        len(text.encode("utf-8", "surrogatepass")), least_trust(*(each.trust for each in rows)), iso(now), chunks,
        "summary", max(each.at for each in rows), "", _common([each.persona for each in rows]),
        _common([each.conversation for each in rows]), _common([each.speaker for each in memories]),
        all(each.is_evidence and each.kind != "mission" for each in rows),
    )  # fmt: skip
    places = {name: sum(each.start <= start for each in chunks) - 1 for name, start in starts.items()}
    return MadeSummary(document, {each.document: max(0, places.get(each.document, 0)) for each in rows})


def index_summary(made: MadeSummary, first: int, parts: Parts, titles: Mapping[str, str]) -> dict[str, bytes]:
    """Return the segments over a summary: what names a memory that it stands for names the part that does so."""
    document = made.document
    entries = [
        Entry(number, document.title, chunk.text, chunk.heading, number == first)
        for number, chunk in enumerate(document.chunks, start=first)
    ]
    named: dict[int, set[str]] = {
        each.id: names_of(each.title, each.heading, each.text, each.is_first) for each in entries
    }
    for name, several in parts.items():
        for each in several:
            is_first = each.number == several[0].number
            named[first + made.places[name]] |= names_of(titles[name], each.heading, each.text, is_first)
    return {**kinds.build_each(entries), "links": links.build_named(named)}


def _join(lines: Sequence[SummaryLine]) -> tuple[str, dict[str, int]]:
    """Return lines as paragraphs, and where that of each memory begins."""
    text, starts = "", dict[str, int]()
    for each in lines:
        if each.text:
            text += "\n\n" if text else ""
            starts.setdefault(each.name, len(text))
            text += each.text
    return text, starts


def _title_of(titles: Sequence[str]) -> str:
    """Return the title of a summary: the first one, and how many others.

    >>> _title_of(["The lamp", "The oil", "The fog"])
    'The lamp and 2 more'
    """
    short = " ".join(titles[0].split())[:_TITLE]
    return short if len(titles) == 1 else f"{short} and {len(titles) - 1} more"


def _common(values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else ""
