"""Makers of gold items: pure functions over the sentences of a text, and of answers that people judged."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import item_makers
from batos.autotelic.item_makers import ItemSource, StatedFact
from batos.memory.segmentation import line_of, stems, words

CORPUS = Path(os.environ.get("BATOS_CORPUS", "/nowhere")) / "quality" / "dev.jsonl"
LAMP = (
    "The clockwork of the old lamp at Holm Light was wound by its keeper every night. In 1889 the harbour board of the"
    " island paid the granite pier and its iron crane. Who paid the 77 gulls that nest on the cliff of the island?"
)
PAGES = """# Lamp

The lamp was lit in 1889 and burns colza oil. Its keeper winds the clockwork.

# Pier

The pier was built of granite. Storms of that winter took the crane away.

## Pier

Twice the same heading.

# Gulls

Few.
"""


def source(text: str, **about: Any) -> ItemSource:
    """A text of ann's."""
    return ItemSource("d-1", "ann", "log.md", text, "judge", "2026-11-30T06:00:00.000Z")._replace(**about)


def never(stem: str) -> int:
    """A memory that has no word."""
    return 0


def test_a_sentence_is_looked_for_by_its_common_words() -> None:
    """Those that memory has most often, without the span; a question gives none."""
    often = Counter({"lamp": 9, "keeper": 7, "pier": 9})
    found = list(item_makers.make_retrieval(source(LAMP), lambda stem: often[stem]))
    assert {each.question for each in found} == {"lamp", "pier"}
    assert {each.gold for each in found} == {(LAMP[:80],), (LAMP[81 : LAMP.index(" Who")],)}
    assert {(each.kind, each.source, each.user, each.split) for each in found} == {("R", "d-1", "ann", "judge")}
    assert not list(item_makers.make_retrieval(source(f"{LAMP} {LAMP}"), never))


def test_what_no_more_holds_makes_nothing() -> None:
    """A sentence that another text gave another value to."""
    void = (LAMP.index("In 1889"), LAMP.index(" Who"))
    assert [each.span for each in item_makers.facts_of(source(LAMP, void=(void,)))] == ["Holm Light"]
    assert "1889" not in item_makers.held_text(source(LAMP, void=(void,)))


def test_numbers_and_inner_names_are_spans() -> None:
    """In figures and words; a name that begins a sentence may be any word, and German nouns are written like names."""
    spans = list(item_makers.find_spans("Maro sold twenty-seven lamps of Holm for 1,889 crowns to 3 men.", "English"))
    assert spans == ["1,889", "twenty-seven", "Holm"]
    assert list(item_makers.find_spans("Die Lampe kostet 1.889 Kronen.", "German")) == ["1.889"]


def test_headings_are_asked_for() -> None:
    """Those that stand once, and have enough below them."""
    found = list(item_makers.make_headings(source(PAGES)))
    assert [each.question for each in found] == ["What does log.md say about Lamp?"]
    assert found[0].gold == ("The lamp was lit in 1889 and burns colza oil.", "Its keeper winds the clockwork.")
    whole = " ".join(PAGES.split())
    assert item_makers.score(found[0], " ".join(found[0].gold)) == 1.0
    assert item_makers.score(found[0], whole, beside=whole) == 1.0
    assert item_makers.score(found[0], f"{whole} {whole}") < 0.8
    assert not list(item_makers.make_headings(source(PAGES[: PAGES.index("# Pier")])))


def test_a_value_in_the_place_of_another_is_asked_for() -> None:
    """By a gap where it stands, or by the key of a fact; the former one stands nowhere in the item."""
    launch = source("We met. The launch of Orion is on 18 March.")
    (found,) = item_makers.make_superseding(launch, ["The launch of Orion is on 15 March."])
    assert found.question == "What holds now in the place of the gap? The launch of Orion is on ___ March."
    assert found.gold == ("18",)
    (fact,) = item_makers.make_superseding(source("12 kW", key="heat pump"), ["9 kW"])
    assert (fact.question, fact.gold) == ("What is heat pump now?", ("12 kW",))
    assert not list(item_makers.make_superseding(launch, []))
    assert not list(item_makers.make_superseding(launch, ["Gulls cry over the harbour."]))


def test_an_approved_answer_is_gold_if_it_says_something() -> None:
    """An answer that has no word beside the question's would be said by an echo."""
    found = item_makers.make_approved(source("Maro winds it.", name="m-1"), "Who winds it?")
    assert found is not None
    assert (found.kind, found.source, found.gold) == ("U", "m-1", ("Maro winds it.",))
    assert item_makers.make_approved(source("Maro."), "Is it Maro?") is None


FACT = StatedFact("The lamp of Holm Light was lit by Maro in 1889.", "1889")


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("When did the keeper first light the lamp?", True),
        ("When did the keeper first light the lamp", False),
        ("Was the lamp first lit in 1,889?", False),
        ("When was the lamp of Holm Light lit by Maro?", False),
        ("What happened then?", False),
        ("When did they\nlight the lamp?", False),
        (f"When did {'the keeper and ' * 12} Maro light it?", False),
        ("", False),
    ],
)
def test_a_question_tells_neither_its_answer_nor_its_sentence(question: str, does: bool) -> None:
    """Else its own words would find both; one that has none of the sentence asks for anything."""
    assert item_makers.check_question(question, FACT) is does


@pytest.mark.parametrize(
    ("text", "span", "has"),
    [
        ("It cost 1,889 crowns.", "1889", True),
        ("There are twelve lamps in the tower.", "12", True),
        ("There are 12 lamps in the tower.", "twelve", True),
        ("HOLM LIGHT is far.", "Holm Light", True),
        ("Holm is no Light.", "Holm Light", False),
        ("It cost 889 crowns.", "1889", False),
    ],
)
def test_a_text_has_a_span_in_another_form(text: str, span: str, has: bool) -> None:
    """Then an item about it is answered there."""
    assert item_makers.find_held(text, {span, "zebra"}) == ({span} if has else set())


@given(st.lists(st.sampled_from([*LAMP.split(), "1,250", "Skarn", "1250."]), min_size=1, max_size=80).map(" ".join))
def test_whatever_is_made_scores_by_its_gold(text: str) -> None:
    """The gold is worth all, the question nothing, and the same text makes the same items."""
    told = source(text)
    found = [*item_makers.make_retrieval(told, never), *item_makers.make_headings(told)]
    assert found == [*item_makers.make_retrieval(told, never), *item_makers.make_headings(told)]
    for each in found:
        assert item_makers.score_rank(each, [text]) == 1.0
        assert item_makers.score(each, each.question) == 0.0
    for fact in item_makers.facts_of(told):
        assert line_of(fact.span) in line_of(fact.sentence)


@dataclass
class Passages:
    """The passages of the corpus, and how many of them have a stem."""

    texts: dict[str, str]
    often: Counter[str]


@pytest.fixture(scope="module")
def passages() -> Passages:
    """The passages of questions that people asked."""
    if not CORPUS.exists():
        pytest.skip(f"there is no {CORPUS}")
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    texts = {row["context"]: row["title"] for row in rows}
    return Passages(texts, Counter(stem for text in texts for stem in set(stems(text))))


def test_passages_give_enough_items(passages: Passages) -> None:
    """Some three of each, with two words or three; of most passages at least one; none has its span."""
    made = [
        list(item_makers.make_retrieval(source(text, title=title), lambda stem: passages.often[stem]))
        for text, title in passages.texts.items()
    ]
    items = [each for several in made for each in several]
    assert len(items) / len(made) > 2.5
    assert sum(not several for several in made) <= len(made) / 10
    assert sum(len(words(each.question)) for each in items) / len(items) < 3
    for text, several in zip(passages.texts, made, strict=True):
        assert all(item_makers.score_rank(each, [text]) == 1.0 for each in several)
