"""Naming: an id, any beginning that is one id's alone, and those counted back from the newest."""

from __future__ import annotations

import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st

from batos.image.ids import back, complete_id, newest_first
from batos.protocol.errors import BriefError

IDS = st.sets(st.text(st.sampled_from("0123ABYZ"), min_size=26, max_size=26), min_size=1, max_size=8)


def tree(ids: set[str]) -> OOBTree[str, str]:
    """A tree of missions."""
    return OOBTree({f"m-{each}": each for each in ids})


@given(ids=IDS)
def test_records_come_newest_first(ids: set[str]) -> None:
    """In the order of their ids from the last, each once."""
    assert list(newest_first(tree(ids))) == sorted((f"m-{each}" for each in ids), reverse=True)


@given(ids=IDS, length=st.integers(1, 26), data=st.data())
def test_a_beginning_names_the_only_id_that_has_it(ids: set[str], length: int, data: st.DataObject) -> None:
    """In small letters too; the beginning of several is refused, with their number and the newest of them."""
    meant = data.draw(st.sampled_from(sorted(ids)))
    beginning = f"m-{meant[:length].lower()}"
    having = sorted(f"m-{each}" for each in ids if each.startswith(meant[:length]))
    if len(having) == 1:
        assert complete_id(tree(ids), beginning) == f"m-{meant}"
        return
    with pytest.raises(BriefError, match=f"the beginning of {len(having)} missions: {having[-1]}") as raised:
        complete_id(tree(ids), beginning)
    assert raised.value.field == "mission"


@pytest.mark.parametrize("name", ["m-9", "m-", "m-!", "brick_prototype_obj", "", "x-0", "m-0" + "0" * 40])
def test_what_begins_nothing_stays_as_it_is(name: str) -> None:
    """Whoever looks it up says that there is none."""
    assert complete_id(tree({"0" * 26}), name) == name


def test_counting_back() -> None:
    """`last` is the newest, `last-1` the one before; nothing else counts."""
    assert [back(each) for each in ("last", "LAST-3", "last-", "last-x", "m-last", "lasting")] == [0, 3, *[None] * 4]


@given(ids=IDS, length=st.integers(1, 26), data=st.data())
def test_beginnings_of_others_ids_count_for_nothing(ids: set[str], length: int, data: st.DataObject) -> None:
    """Whoever may see one id alone names it by any beginning, and is told of no other."""
    own = f"a-{data.draw(st.sampled_from(sorted(ids)))}"
    kept = OOBTree({f"a-{each}": each for each in ids})
    assert complete_id(kept, own[: 2 + length].lower(), own.__eq__) == own


def test_several_are_named_and_the_rest_counted() -> None:
    """Of many ids the three newest are named."""
    ids = {f"{number:026}" for number in range(5)}
    with pytest.raises(BriefError, match=r"5 missions: m-0*4, m-0*3, m-0*2 and 2 more"):
        complete_id(tree(ids), "m-0")
