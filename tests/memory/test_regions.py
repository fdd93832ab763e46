"""Regions: neighbours of one kind, trust and place that nobody recalls, within the limits."""

from __future__ import annotations

from batos.memory.records.memory_records import ChunkRange
from batos.memory.regions import (
    FEWEST_PARTS,
    FEWEST_SUMMARIES,
    MOST_CHUNKS,
    MOST_DOCUMENTS,
    FoldCandidate,
    cold_regions,
)


def candidate(first: int, chunks: int = 1, /, used: str = "2026-01", **row: str) -> FoldCandidate:
    """A memory that was last used in a month."""
    about = {"user": "ann", "scope": "default", "kind": "document", "trust": "external", "source": "/notes/a", **row}
    found = ChunkRange(
        first + chunks - 1, f"d-{first}", about["user"], about["scope"], about["kind"], "current", about["trust"],  # type: ignore[arg-type]
        "2026-01", about["source"], "", "", about.get("conversation", ""),
    )  # fmt: skip
    return FoldCandidate(first, found, used)


def regions(*given: FoldCandidate) -> list[list[int]]:
    """The first numbers of the memories of each cold region."""
    return [[each.first for each in region.members] for region in cold_regions(given, "2026-02")]


def test_only_what_nobody_recalled_is_cold() -> None:
    """A single short memory is not worth a summary; one of many parts is."""
    assert regions(candidate(1), candidate(2), candidate(3, used="2026-02")) == [[1, 2]]
    assert regions(candidate(1), candidate(2, used="2026-03")) == []
    assert regions(candidate(1, FEWEST_PARTS - 1)) == []
    assert regions(candidate(1, FEWEST_PARTS)) == [[1]]


def test_a_region_has_one_owner_kind_trust_and_place() -> None:
    """A summary is as little trusted as the least of what it stands for: what is trusted more stays apart."""
    others = [{"user": "bob"}, {"scope": "work"}, {"kind": "turn"}, {"trust": "user"}, {"source": "/other/a"}]
    assert regions(candidate(1), *(candidate(2, **each) for each in others)) == []
    turns = [candidate(n, kind="turn", conversation=f"c-{n % 2}", source=f"m-{n}/said") for n in range(1, 5)]
    assert regions(*turns) == [[1, 3], [2, 4]]
    assert regions(candidate(1), candidate(2, source="/notes/b")) == [[1, 2]]


def test_regions_have_a_most_of_memories_and_parts() -> None:
    """One memory of more parts stands alone."""
    many = regions(*(candidate(number) for number in range(1, 2 * MOST_DOCUMENTS + 2)))
    assert [len(each) for each in many] == [MOST_DOCUMENTS, MOST_DOCUMENTS]
    half = MOST_CHUNKS // 2
    assert regions(*(candidate(1 + half * n, half) for n in range(3))) == [[1, 1 + half], [1 + 2 * half]]
    assert regions(candidate(1), candidate(2, MOST_CHUNKS + 1), candidate(200)) == [[2]]


def test_few_summaries_are_left_as_they_are() -> None:
    """Else each run would fold what the last one wrote."""
    summaries = [candidate(n, kind="summary", source="") for n in range(1, FEWEST_SUMMARIES + 1)]
    assert regions(*summaries[:-1]) == []
    assert regions(*summaries) == [[each.first for each in summaries]]
