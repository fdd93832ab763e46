"""Records of gold items: each once under its memory, a split for each place, and an end to how many there are."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from persistent.mapping import PersistentMapping

from batos.image.roots import Root
from batos.objects.prototype import UvmObject
from batos.records import gold_items
from batos.records.gold_items import GoldItem

ROWS = st.lists(
    st.builds(
        GoldItem,
        id=st.integers(0, 40).map(lambda number: f"i-{number}"),
        kind=st.sampled_from(["R", "A", "H", "S", "U"]),
        question=st.just("Who?"),
        gold=st.just(("Maro",)),
        source=st.sampled_from(["d-1", "d-2", "d-3"]),
        split=st.sampled_from(["propose", "judge", "sealed"]),
        user=st.sampled_from(["ann", "bob"]),
        made_at=st.integers(0, 9).map(str),
    ),
    max_size=40,
)


def root_of(rows: list[GoldItem]) -> Root:
    """A root in which items stand under three memories, of which the last is retracted."""
    standings = {"d-1": "current", "d-2": "current", "d-3": "retracted"}
    documents = {name: UvmObject({"standing": standing}) for name, standing in standings.items()}
    root: Root = {"items": PersistentMapping(), "documents": documents}  # type: ignore[typeddict-item]
    for name in standings:
        gold_items.put_items(root, name, [each for each in rows if each.source == name])
    return root


@given(ROWS)
def test_a_user_has_what_stands_under_current_memories(rows: list[GoldItem]) -> None:
    """Each once, and nothing of another user."""
    root = root_of(rows)
    for user in ("ann", "bob"):
        found = gold_items.list_items(root, user)
        assert all((each.user, each.source != "d-3") == (user, True) for each in found)
        assert len({(each.source, each.id) for each in found}) == len(found)
        parts = [gold_items.list_items(root, user, {split}) for split in ("propose", "judge", "sealed")]
        assert sum(map(len, parts)) == len(found)
    assert gold_items.list_items(root, "cid") == []


@given(ROWS)
def test_what_is_put_and_dropped_is_as_it_was(rows: list[GoldItem]) -> None:
    """A memory without items has no entry."""
    root = root_of(rows)
    for name in ("d-1", "d-2", "d-3"):
        gold_items.drop_items(root, name)
        gold_items.put_items(root, name, ())
        assert gold_items.items_under(root, name) == ()
    assert not root["items"].get("kept")


@settings(deadline=None)
@given(st.integers(0, 700), st.integers(0, 300), st.integers(0, 300))
def test_the_oldest_of_the_most_numerous_kind_go(retrieval: int, answers: int, unanswerable: int) -> None:
    """A user has so many at most, the newest of each kind; fewer than others of a kind only where there were fewer."""
    numbered = [("R", n) for n in range(retrieval)] + [("A", n) for n in range(answers)]
    numbered += [("N", n) for n in range(min(answers, unanswerable))]
    rows = [
        GoldItem(f"i-{kind}{n}", kind, "Who?", (), "d-1", "judge", "ann", f"{n:04}")  # type: ignore[arg-type]
        for kind, n in numbered
    ]
    root = root_of(rows)
    gold_items.cap_items(root, "ann")
    left = gold_items.list_items(root, "ann")
    assert len(left) == min(gold_items.CAP, len(rows))
    counts = Counter("R" if each.kind == "R" else "A" for each in left)
    before = Counter("R" if each.kind == "R" else "A" for each in rows)
    for kind, other in (("R", "A"), ("A", "R")):
        assert counts[kind] == before[kind] or counts[kind] >= counts[other] - 1
    oldest = min((each.made_at for each in left if each.kind == "R"), default="")
    assert all(each in left for each in rows if each.kind == "R" and each.made_at >= oldest > "")


@given(st.lists(st.text(max_size=20), min_size=1, max_size=9))
def test_a_place_has_one_split(places: list[str]) -> None:
    """Whatever stands there."""
    assert [gold_items.split_of(each) for each in places] == [gold_items.split_of(each) for each in places]


def test_places_are_split_four_four_two() -> None:
    """In the long run."""
    counts = Counter(gold_items.split_of(f"/notes/{number}.md") for number in range(5_000))
    assert abs(counts["propose"] - 2_000) < 150
    assert abs(counts["judge"] - 2_000) < 150
    assert abs(counts["sealed"] - 1_000) < 150
