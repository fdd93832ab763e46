"""The protocol of look-ups: each searches, and fetches the documents of its hits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Protocol

from batos.agency.look_ups.web_documents import Document
from batos.memory import segmentation

#: The most hits of a search, and the most characters of a snippet.
MOST_HITS, MOST_SNIPPET = 20, 300


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a search: `address` is fetched by the same look-up, `date` is ISO 8601 or "".

    A snippet is no evidence: what is fetched is.
    """

    title: str
    address: str
    snippet: str = ""
    date: str = ""
    source: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the hit as plain data."""
        return asdict(self)


class LookUp(Protocol):
    """A source that may be looked up in; nothing of a question is kept there."""

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return at most so many hits, the best first; none where nothing is found.

        Raises: LookUpFailed: the source is not reached, or cannot search now.
        """
        ...

    async def fetch(self, address: str) -> Document:
        """Return a document by the address of a hit. Raises: LookUpFailed. Refused: it is not of this source."""
        ...


class Lists(Protocol):
    """A look-up whose contents can be listed."""

    async def list(self, place: str, limit: int) -> Sequence[Hit]:
        """Return what is at a place, at most so many. Raises: as `fetch`."""
        ...


def rank(candidates: Iterable[tuple[Hit, str]], query: str, limit: int) -> list[Hit]:
    """Return the hits whose texts have most of a query's rare words, the best first; none of those that have no word.

    The snippet is what stands around the first word that is found.
    """
    wanted = set(segmentation.stems(query))
    held = [
        (hit, text, Counter(each for each in segmentation.stems(text) if each in wanted)) for hit, text in candidates
    ]
    having = Counter(stem for _, _, counts in held for stem in counts)

    def weigh(counts: Counter[str]) -> float:
        return sum(log(1 + len(held) / having[stem]) * count / (count + 1.0) for stem, count in counts.items())

    found = sorted((each for each in held if each[2]), key=lambda each: (-weigh(each[2]), each[0].address))
    return [_with_snippet(hit, text, wanted) for hit, text, _ in found[:limit]]


def _with_snippet(hit: Hit, text: str, wanted: set[str]) -> Hit:
    if hit.snippet:
        return hit
    places = (start for term, start, _ in segmentation.placed_terms(text) if term[: segmentation.STEM] in wanted)
    start = max(0, next(places, 0) - MOST_SNIPPET // 3)
    snippet = segmentation.clip_line(text[start : start + 2 * MOST_SNIPPET], MOST_SNIPPET)
    return Hit(hit.title, hit.address, snippet, hit.date, hit.source)
