"""Ranking: the text with the words of the question comes first, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import passage

from batos.memory.evidence import rank, scores
from batos.memory.segmentation import terms


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How often is the clockwork wound?", "The clockwork is wound every four hours."),
        ("Wie heißt die STRASSE?", "Die Straße heißt Am Leuchtturm."),
        ("灯塔有多高？", "这座灯塔有三十米高。"),
        ("Где спит смотритель?", "Смотритель спит под галереей."),
    ],
)
def test_the_passage_with_the_words_comes_first(query: str, wanted: str) -> None:
    """Among passages about other things the one that shares the query's words is ranked first, in any script."""
    others = ["The sea is grey.", "Das Meer ist grau.", "大海是灰色的。", "Море серое.", "Oil and brass."]
    found = rank([passage(text) for text in (*others, wanted)], query)
    assert found[0].text == wanted


@given(found=st.lists(st.text("ab ", min_size=1, max_size=9), max_size=8), query=st.text("abc ", max_size=9))
def test_ranking_is_a_stable_permutation(found: list[str], query: str) -> None:
    """Nothing is lost or made; ties keep their order; a passage without any of the words scores 0."""
    given_ = [passage(text, number) for number, text in enumerate(found)]
    ranked = rank(given_, query)
    assert sorted(each.number for each in ranked) == list(range(len(found)))
    by_score = dict(zip([each.number for each in given_], scores(given_, query), strict=True))
    keys = [(-by_score[each.number], each.number) for each in ranked]
    assert keys == sorted(keys)
    for each in given_:
        assert (by_score[each.number] > 0) == bool(set(terms(query)) & set(terms(each.text)))
