"""The columns over documents: they find what a reach holds, and nothing else, whatever came and went."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.memory.records.memory_records import ChunkRange
from batos.memory.search.metadata import MemoryReach, MetadataIndex, index_of

few = st.sampled_from(["", "a", "b"])
moments = st.sampled_from(["2026-11-01T00:00:00Z", "2026-11-02T00:00:00.5Z", "2026-12-01T00:00:00Z"])
rows = st.builds(
    ChunkRange,
    last=st.just(0),
    document=few,
    user=few,
    scope=few,
    kind=st.sampled_from(["document", "mission", "turn"]),
    standing=st.sampled_from(["current", "superseded"]),
    trust=st.just("user"),
    at=moments,
    source=st.sampled_from(["", "a", "b", "a#1", "a#b#2", "#1"]),
    mission=few,
    persona=few,
    conversation=few,
)
some = st.one_of(st.none(), st.frozensets(st.sampled_from(["", "a", "unknown"]), max_size=2))
reaches = st.builds(
    MemoryReach,
    user=st.one_of(st.none(), few),
    scopes=some,
    kinds=st.one_of(st.none(), st.frozensets(st.sampled_from(["document", "mission"]))),
    standings=st.one_of(st.none(), st.just(frozenset({"current"}))),
    sources=some,
    missions=some,
    personas=some,
    since=st.one_of(st.just(""), moments, st.just("2026-11-02")),
    until=st.one_of(st.just(""), moments),
)
#: Documents are put and left out: (whether it is put, the first chunk, the row).
changes = st.lists(st.tuples(st.booleans(), st.integers(1, 6).map(lambda number: 10 * number), rows), max_size=20)


@given(changes, reaches)
def test_what_a_reach_holds_is_found(changed: list[tuple[bool, int, ChunkRange]], reach: MemoryReach) -> None:
    """After any changes the spans are those of the documents that are there and that the reach holds."""
    index, there = MetadataIndex(), dict[int, ChunkRange]()
    for is_put, first, row in changed:
        whole = row._replace(last=first + 3)
        if is_put:
            index.put(first, whole)
            there[first] = whole
        else:
            index.drop(first - 10, first)
            there = {each: kept for each, kept in there.items() if not first - 10 <= each <= first}
    firsts, lasts = index.spans(reach)
    found = dict(zip(firsts.tolist(), lasts.tolist(), strict=True))
    assert found == {first: row.last for first, row in there.items() if reach.holds(row)}
    assert len(index.spans(MemoryReach(None, standings=None))[0]) == len(there)


def test_it_grows() -> None:
    """There is room for any number of documents."""
    row = ChunkRange(0, "d", "ann", "default", "document", "current", "user", "2026", "", "", "", "")
    index = index_of((number, row._replace(last=number)) for number in range(3_000))
    firsts, _ = index.spans(MemoryReach("ann"))
    assert sorted(firsts.tolist()) == list(range(3_000))
