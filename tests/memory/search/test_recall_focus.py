"""Focus: the sentences that bear on a question stand in place of the passages, verbatim and in their order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import passage, texts

from batos.memory import thresholds
from batos.memory.evidence import Passage
from batos.memory.search.recall import focus
from batos.memory.segmentation import sentence_spans

LAMP = (
    "The lighthouse stands on a rock in the bay. It was built in 1869 by Anna Lund. Gulls nest below the gallery. "
    "The lamp burns 1,200 cans of oil each winter. Nobody counts the gulls. Ships pass at night."
)
TIDE = "The tide turns every six hours. Fishermen dry their nets on the wall. The harbour is closed in storms."


@pytest.mark.parametrize(
    ("text", "question", "wanted"),
    [
        (LAMP, "How many cans of oil does the lamp burn?", "The lamp burns 1,200 cans of oil each winter."),
        (
            "Das Meer ist grau. Die Laterne heißt Große Straßenlaterne. Möwen schreien. Öl ist teuer.",
            "Wie heißt die GROSSE Laterne?",
            "Die Laterne heißt Große Straßenlaterne.",
        ),
        ("大海是灰色的。这座灯塔有三十米高。油很贵。海鸥在叫。", "灯塔有多高？", "这座灯塔有三十米高。"),
        (
            "Море серое. Смотритель спит под галереей. Масло дорогое. Кричат чайки.",
            "Где спит смотритель?",
            "Смотритель спит под галереей.",
        ),
    ],
)
def test_the_sentence_with_the_words_is_in_focus(text: str, question: str, wanted: str) -> None:
    """The sentence that has the question's rare words is shown, in any script, and not the whole passage."""
    shown = " ".join(each.text for each in focus([passage(text)], question))
    assert wanted in shown
    assert len(shown) < len(text)


def test_a_sentence_that_begins_with_a_pronoun_brings_the_one_before_it() -> None:
    """Who `it` is stands in the sentence before, so both are shown as one span."""
    found = focus([passage(LAMP)], "Who built this in 1869?")
    assert any(
        each.text.startswith("The lighthouse stands on a rock in the bay. It was built in 1869") for each in found
    )


def test_no_pronoun_reaches_into_another_passage() -> None:
    """The first sentence of a passage has nothing before it, whatever it begins with."""
    first, second = passage("Gulls cry. The sea is grey.", 1), passage("It was built in 1869. Oil is dear.", 2)
    assert [each.text for each in focus([first, second], "What was built in 1869?")] == ["It was built in 1869."]


def test_few_sentences_lead_and_more_come_where_they_match_alike() -> None:
    """Two sentences are in focus where they lead; of many equal ones not more than the most."""
    clear = "Anna Lund built the lighthouse in 1869. Anna Lund was a mason. The lighthouse is white. The sea is grey."
    one = focus([passage(clear)], "Which mason built the lighthouse in 1869, Anna Lund?")
    assert sum(len(sentence_spans(each.text)) for each in one) == thresholds.FOCUS_USUAL
    alike = " ".join(
        f"The keeper called {name} winds the clock." for name in ("Ana", "Ben", "Cem", "Dan", "Eva", "Fay")
    )
    many = focus([passage(alike)], "Who winds the clock?")
    assert sum(len(sentence_spans(each.text)) for each in many) == thresholds.FOCUS_MOST


def test_nothing_is_in_focus_where_no_word_is_shared() -> None:
    """A question without a word of the documents has no focus, and the caller shows what it has."""
    assert focus([passage(LAMP)], "Pourquoi?") == ()
    assert focus([], "Who built it?") == ()


def test_sentences_keep_the_number_and_the_place_of_their_passage() -> None:
    """A span names the document that it is from and its own place in the file."""
    other = passage(TIDE, 7)
    shown = focus([passage(LAMP), other], "When does the tide turn at the lighthouse?")
    turned = next(each for each in shown if each.number == 7)
    assert turned.start == other.start + TIDE.index(turned.text)
    assert turned.sha256 == other.sha256


@given(found=st.lists(texts, max_size=4), question=texts)
def test_what_is_in_focus_stands_in_the_passages_in_order(found: list[str], question: str) -> None:
    """Each span is verbatim at its place, spans neither overlap nor change their order, and none is empty."""
    given_ = [passage(text, number) for number, text in enumerate(found)]
    shown = focus(given_, question)
    for each in shown:
        assert each.text == found[each.number][each.start : each.start + len(each.text)]
        assert each.text.strip() == each.text != ""
    places = [(each.number, each.start, each.start + len(each.text)) for each in shown]
    assert all(one[0] < other[0] or one[2] <= other[1] for one, other in pairwise(places))


def test_a_sentence_that_hardly_matches_stays_out() -> None:
    """Where one sentence has all that was asked for, another one with a common word is not shown beside it."""
    (found,) = focus([passage(LAMP)], "How many cans of oil does the lamp burn each winter?")
    assert found.text == "The lamp burns 1,200 cans of oil each winter."


def test_a_request_that_names_nothing_of_the_text_has_no_focus() -> None:
    """A word that stands in every text brings no sentence into focus."""
    assert focus([passage(LAMP)], "Summarise the attached report") == ()


def test_a_sentence_of_what_matches_less_well_comes_after_the_same_of_what_matches_best() -> None:
    """Passages that recall found have weights; those of files have none, and are as good as each other."""
    question = "Who winds the lamp?"
    one = Passage(1, "a", "0", 0, "Anna winds the lamp.", weight=0.3)
    other = Passage(2, "b", "1", 0, "Maro winds the lamp.")
    far = Passage(3, "c", "2", 0, "Ella winds the lamp.", weight=0.2)
    assert [each.text for each in focus([one, other, far], question)] == [
        "Anna winds the lamp.",
        "Maro winds the lamp.",
    ]
