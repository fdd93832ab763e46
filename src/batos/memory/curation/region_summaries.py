"""Make the summary of a region: a document with the lines of a rule or a model, and the names of what it is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from batos.image.ids import document_id, iso
from batos.image.records import least_trust
from batos.memory.curation.extracts import SummaryLine
from batos.memory.indexes import kinds, links
from batos.memory.indexes.entries import Entry
from batos.memory.mentions import names_of
from batos.memory.passages import passages
from batos.memory.records.memory_archives import Parts
from batos.memory.records.memory_records import ChunkRange, ChunkText, NewDocument

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
