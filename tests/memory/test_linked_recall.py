"""Joined recall: laws of fusion, and the links from the best parts to those that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.chunk_search import RecallQuery
from batos.memory.inflections import wanted_words
from batos.memory.linked_recall import NOTHING_SAID, Legs, SaidWords, fuse, recall
from batos.memory.mentions import Mention, mentions
from batos.memory.reach import MemoryReach
from batos.memory.recollection import Recollection

scores = st.dictionaries(st.integers(1, 30), st.just(0.0) | st.floats(0.001, 50), max_size=8)
cosines = st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=8)

TEXTS = {
    1: "Holm Light was lit in 1848. It was built by Ada Brun.",
    2: "Ada Brun was an engineer. She was born in Tarn.",
    3: "Tarn is a town on the fjord.",
    4: "Oil is dear.",
}
HOSTILE = ["((", '"', "AND OR NOT", "a*", "[[", "\x00", "🔥" * 9, "東京の灯台は", "d.e(f)[0]"]
NAMES = {"holm light": [1], "ada brun": [2], "tarn": [3]}


class Table:
    """Names from a table."""

    def __init__(self, names: Mapping[str, Sequence[int]] = NAMES) -> None:
        self._names = names

    def mentions(self, text: str) -> Sequence[Mention]:
        return list(mentions(text, self._names))

    def resolve(self, name: str) -> Sequence[int]:
        return self._names[name]

    def beside(self, name: str, part: int) -> Sequence[int]:
        return [each for each in self._names[name] if each != part]


def said(question: str) -> SaidWords:
    """Return the words of a question, which are all as rare."""
    words = wanted_words(question)
    return SaidWords(dict.fromkeys(words.forms, 1.0), words)


@given(scores, cosines, st.sets(st.integers(1, 30), max_size=3))
def test_scores_are_joined_up_to_one(words: dict[int, float], near: dict[int, float], named: set[int]) -> None:
    """Nothing is below 0 or above 1, and whatever a leg or the question names is there if anything is positive."""
    joined = fuse(Legs(words, near, NOTHING_SAID), named)
    assert all(0 <= score <= 1 for score in joined.values())
    assert named <= joined.keys()
    if max(words.values(), default=0) > 0:
        assert words.keys() <= joined.keys()


@given(scores, st.floats(0.1, 9))
def test_the_unit_of_a_leg_does_not_count(words: dict[int, float], factor: float) -> None:
    """Only the order and the distances within a leg do."""
    before = fuse(Legs(words, {}, NOTHING_SAID))
    after = fuse(Legs({id_: score * factor for id_, score in words.items()}, {}, NOTHING_SAID))
    assert before.keys() == after.keys()
    assert all(abs(before[id_] - after[id_]) < 1e-6 for id_ in before)


@given(scores, cosines)
def test_every_part_that_a_leg_found_stays(words: dict[int, float], near: dict[int, float]) -> None:
    """Links add parts and scores, and take none away."""
    legs = Legs(words, near, said("built"))
    plain = {each.id: each.score for each in recall(legs, "hybrid", (), TEXTS.get, Table())}
    linked = {each.id: each.score for each in recall(legs, "linked", (), TEXTS.get, Table())}
    assert plain.keys() <= linked.keys()
    assert all(linked[id_] >= score for id_, score in plain.items())


def test_a_part_is_reached_by_the_sentence_that_names_it() -> None:
    """The sentence that has words of the question leads further than one that has none."""
    question = "Who built Holm Light?"
    legs = Legs({1: 5.0, 4: 0.2}, {}, said(question))
    first, second, *_ = recall(legs, "linked", [1], TEXTS.get, Table())
    assert (first.id, first.is_named, first.link) == (1, True, None)
    assert second.link is not None
    assert (second.id, second.link.chunk, second.link.name) == (2, 1, "ada brun")
    assert second.link.sentence.strip() == "It was built by Ada Brun."


def test_a_name_of_two_leads_less_to_each() -> None:
    """Who shares a name is less likely to be meant."""
    legs = Legs({1: 5.0}, {}, said("built"))
    one = recall(legs, "linked", (), TEXTS.get, Table())
    two = recall(legs, "linked", (), TEXTS.get, Table({**NAMES, "ada brun": [2, 4]}))
    assert one[1].score > two[1].score == two[2].score > 0


async def test_a_question_of_two_steps_finds_what_only_a_link_leads_to() -> None:
    """With the path: the other part, the name, and the sentence. By words alone it is not found."""
    texts = [
        "Holm Light\nHolm Light is a lighthouse on Skarn. It was designed by Ada Brun.",
        "Ada Brun\nAda Brun was an engineer, who came from Tarn and lived by the sea.",
        *(f"Note {n}\nThe oil of day {n} is dear." for n in range(9)),
    ]
    async with open_image(None) as image:
        lines = (await store_of(image).remember([incoming(text, f"/{n}") for n, text in enumerate(texts)]))[
            "remembered"
        ]
        recollection, question = Recollection(), "Where did the designer of Holm Light grow up?"
        with image.snapshot() as root:
            page = recollection.recall(root, RecallQuery(question), MemoryReach(None), 2)["recalled"]
            alone = recollection.recall(root, RecallQuery(question, mode="text"), MemoryReach(None), 2)["recalled"]
        assert [each["document"] for each in page] == [lines[0]["document"], lines[1]["document"]]
        assert page[1]["path"] is not None
        assert page[1]["path"]["name"] == "ada brun"
        assert page[1]["path"]["sentence"].strip() == "It was designed by Ada Brun."
        assert page[1]["why"].endswith("link: ada brun")
        assert page[0]["why"].startswith("named in the question")
        assert all(each["path"] is None for each in alone)


@given(
    st.text(max_size=60)
    | st.sampled_from(["((", '"', "AND OR NOT", "a*", "[[", "\x00", "🔥" * 9, "東京の灯台は", "d.e(f)[0]"])
)
def test_no_query_is_an_error(query: str) -> None:
    """Brackets, quotes, other scripts and surrogates are plain text."""
    legs = Legs({1: 1.0}, {}, said(query))
    assert recall(legs, "linked", (), TEXTS.get, Table())[0].id == 1
    assert Table().mentions(query) is not None
