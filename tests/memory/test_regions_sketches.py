"""Sketches of memories: those that say nearly the same are found by the words of the index alone."""

from __future__ import annotations

import numpy as np
from tests.memory.test_regions import candidate

from batos.memory.indexes import postings, text
from batos.memory.indexes.postings import Entry
from batos.memory.regions import BANDS, MOST_DOCUMENTS, ROWS, Sketches, redundant_regions, sketch

LOG = " ".join(f"word{number}" for number in range(60))


def found(*texts: str, per: int = 1, **row: str) -> list[list[int]]:
    """The regions of memories of so many parts each, in two segments."""
    entries = [Entry(number, "", each) for number, each in enumerate(texts, start=1)]
    half = len(entries) // 2
    segments = [postings.read_segment(text.KIND, text.build(part)) for part in (entries[:half], entries[half:])]
    candidates = [candidate(number, per, **row) for number in range(1, len(texts) + 1, per)]
    firsts = np.array([each.first for each in candidates], np.int64)
    sketches = sketch(segments, firsts, firsts + per - 1)
    return [[each.first for each in region.members] for region in redundant_regions(candidates, sketches)]


def test_memories_that_say_the_same_are_found() -> None:
    """Among others, also if a few words differ; words in another order are the same words."""
    assert found("gulls cry at dawn", LOG, f"{LOG} and more", "oil burns slowly") == [[2, 3]]
    assert found(LOG, "fog over Skarn", " ".join(reversed(LOG.split()))) == [[1, 3]]
    assert found("gulls cry at dawn", "oil burns slowly", "the fog came over Skarn") == []
    assert found(LOG, " ".join(LOG.split()[:25]) + " ".join(f" other{n}" for n in range(60))) == []


def test_a_memory_of_several_parts_is_compared_as_a_whole() -> None:
    """Wherever its parts stand; each memory is in one region only, and a region has at most so many."""
    words = LOG.split()
    one, other = " ".join(words[:30]), " ".join(words[30:])
    assert found(one, other, "oil", "fog", other, one, per=2) == [[1, 5]]
    many = found(*(LOG for _ in range(2 * MOST_DOCUMENTS)))
    assert [len(each) for each in many] == [MOST_DOCUMENTS] * 2
    assert len({number for each in many for number in each}) == sum(map(len, many))


def test_all_memories_that_say_the_same_are_in_regions() -> None:
    """However many there are, and whatever else agrees with the first of them in a part of the sketch."""
    several = found(*(LOG for _ in range(10 * MOST_DOCUMENTS)))
    assert [len(each) for each in several] == [MOST_DOCUMENTS] * 10
    sketches: Sketches = np.arange(5 * BANDS * ROWS, dtype=np.uint32).reshape(5, BANDS * ROWS)
    sketches[1:, :ROWS] = sketches[0, :ROWS]
    sketches[2] = sketches[1]
    sketches[4] = sketches[3]
    told = list(redundant_regions([candidate(number) for number in range(1, 6)], sketches))
    assert [[each.first for each in region.members] for region in told] == [[2, 3], [4, 5]]
    assert [region.measures() for region in told] == [(1.0, 1.0), (1.0, 1.0)]


def test_sketches_agree_as_far_as_words_do() -> None:
    """In the mean over many; without a part in the index a memory has none."""
    words = [f"term{number}" for number in range(300)]
    entries = [Entry(1, "", " ".join(words[:200])), Entry(2, "", " ".join(words[100:]))]
    segment = postings.read_segment(text.KIND, text.build(entries))
    numbers = np.array([1, 2, 3], np.int64)
    sketches = sketch([segment], numbers, numbers)
    assert sketches.shape == (3, BANDS * ROWS)
    assert abs(float(np.mean(sketches[0] == sketches[1])) - 100 / 300) < 0.25
    assert list(redundant_regions([candidate(n) for n in (1, 2, 3)], sketches)) == []
    assert sketch([segment], np.empty(0, np.int64), np.empty(0, np.int64)).shape == (0, BANDS * ROWS)
