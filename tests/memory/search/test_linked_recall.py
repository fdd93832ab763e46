"""Joined recall: laws of fusion, and the links from the best parts to those that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.mentions import Mention, key_of, mentions
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.linked_recall import FEW, NOTHING_SAID, OFTEN, Legs, NamesWithin, SaidWords, fuse, recall
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import Recollection
from batos.memory.words_by_language import wanted_words

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


class Table(NamesWithin):
    """Names from a table."""

    def __init__(self, names: Mapping[str, Sequence[int]] = NAMES, counts: Mapping[str, int] | None = None) -> None:
        self._names = names
        self._counts = counts or {}

    def mentions(self, text: str) -> Sequence[Mention]:
        return list(mentions(text, self._names))

    def resolve(self, name: str) -> Sequence[int]:
        return self._names.get(name, ())

    def beside(self, name: str, part: int) -> Sequence[int]:
        return [each for each in self._names[name] if each != part]

    def sharing(self, name: str, part: int) -> Sequence[int]:
        return [id_ for id_ in TEXTS if id_ != part and key_of(name) in key_of(TEXTS[id_])]

    def count(self, name: str) -> int:
        return self._counts.get(name, 1)

    def title(self, part: int) -> str:
        return next((name for name, ids in self._names.items() if ids == [part]), "")


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


def test_a_name_that_many_say_leads_less_far() -> None:
    """The more so the more parts say it; a few more or less are no matter."""
    legs = Legs({1: 5.0}, {}, said("built"))
    few, same, many = (
        recall(legs, "linked", (), TEXTS.get, Table(counts={"ada brun": count}))[1] for count in (1, OFTEN, 9 * OFTEN)
    )
    assert few.id == same.id == many.id == 2
    assert few.score == same.score == 3 * many.score


def test_what_the_question_names_needs_no_link() -> None:
    """It has its gain for that, and none beside."""
    legs = Legs({1: 5.0, 2: 1.0}, {}, said("Who built Holm Light, Ada Brun?"))
    found = {each.id: each for each in recall(legs, "linked", [1, 2], TEXTS.get, Table({**NAMES, "tarn": []}))}
    assert found[2].link is None
    assert found[2].score == fuse(legs, [1, 2])[2]


def test_a_name_that_no_part_has_joins_those_that_say_it() -> None:
    """Unless the question says it, which the legs know."""
    names = {"holm light": [1]}
    for question, reached in (("Where did the builder come from?", True), ("Where did Ada Brun come from?", False)):
        found = recall(Legs({1: 5.0}, {}, said(question)), "linked", (), TEXTS.get, Table(names))
        led = {each.id: (each.link.chunk, each.link.name) for each in found if each.link}
        assert led == ({2: (1, "ada brun")} if reached else {})


@pytest.mark.parametrize(("wicks", "found"), [(2, {"Skarn"}), (2 * FEW, {"Skarn", "Logbook"})])
async def test_a_part_is_found_by_the_title_that_it_says(wicks: int, found: set[str]) -> None:
    """The path has the sentence of the part that was reached, and another part of the same document is none.

    Of so few parts that each tenth one says the name it tells nothing.
    """
    texts = {
        "Skarn": "Skarn is a rock off Tarn.\n\n" + "It is bare. " * 60 + "\n\nNobody lives on Skarn.",
        "Logbook": "The oil came late. Ada Brun rowed to Skarn with the rest.",
        **{f"Note {n}": f"The wick of day {n} is short." for n in range(wicks)},
    }
    async with open_image(None) as image:
        await store_of(image).remember([replace(incoming(text, f"/{t}"), title=t) for t, text in texts.items()])
        with image.snapshot() as root:
            page = Recollection().recall(root, RecallQuery("Which rock is bare?"), MemoryReach(None), 9)["recalled"]
    paths = [(each["title"], each["path"]) for each in page]
    assert {title for title, _ in paths} == found
    assert all(path is None for title, path in paths if title == "Skarn")
    reached = [(path["title"], path["name"], path["sentence"].strip()) for _, path in paths if path]
    assert reached == [("Skarn", "skarn", "Ada Brun rowed to Skarn with the rest.") for _ in found - {"Skarn"}]


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
