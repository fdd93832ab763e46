"""Tells how near a part is to a question, and what is near enough to be shown to a mission."""

from __future__ import annotations

from typing import Final

from batos.memory import thresholds
from batos.memory.indexes.entries import words_beside
from batos.memory.search.chunk_search import FoundChunk
from batos.memory.search.linked_recall import SaidWords
from batos.memory.sentences import sentence_spans
from batos.memory.table_heads import head_within
from batos.memory.terms import words
from batos.objects.prototype import UvmObject, own_slots

#: A part of a longer file that has fewer words is what stood between others, and says nothing alone.
LEAST_WORDS: Final = 6


def nearness(found: FoundChunk, said: SaidWords) -> float:
    """Return how near a chunk is to a query, as a share of what is near enough: from 1 on it is shown to a mission.

    Words measure that, and vectors where the chunk has one. The sentence that led to a chunk counts as one of
    its own.
    """
    if _is_remnant(found.chunk):
        return 0.0
    covered = coverage(said, found.chunk, found.link.sentence if found.link else "")
    if found.cosine is None:
        return covered / thresholds.RECALL_COVERED
    return (covered + found.cosine) / 2 / thresholds.RECALL_ALIKE


def coverage(said: SaidWords, chunk: UvmObject, led_by: str = "") -> float:
    """Return how much of a query a chunk has: the mean of the chunk's share and that of the best of its sentences.

    A share is that of the weight of the query's words by their rarity. Those of the title and of the sentence that led
    to the chunk are each sentence's too.
    """
    said, slots = said.telling(), own_slots(chunk)
    text = slots["text"]
    document = own_slots(slots["document"])
    beside = words_beside(document["source"], document["said_at"])
    known = said.words.find_in(f"{document['title']}\n{beside}\n{slots['heading']}\n{led_by}")
    sentences = (said.words.find_in(text[start:end]) for start, end in sentence_spans(text))
    whole = said.share(known | said.words.find_in(text))
    return (whole + max((said.share(known | each) for each in sentences), default=0.0)) / 2


def _is_remnant(chunk: UvmObject) -> bool:
    """Test if a chunk is a few words between others of a file, and no row of a table."""
    slots = own_slots(chunk)
    first, last = own_slots(slots["document"])["chunks"]
    is_part = first < last and own_slots(slots["document"])["kind"] == "document"
    return is_part and len(words(slots["text"])) < LEAST_WORDS and not head_within(slots["heading"])
