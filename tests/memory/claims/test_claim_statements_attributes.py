"""Facts: sentences that give a subject the value of an attribute and nothing more, in ten languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.claims.claim_statements import LONGEST, facts_in, read_attribute
from batos.memory.claims.restatements import assertions_of
from batos.memory.segmentation import sentence_spans

DATA = Path(__file__).parents[2] / "data"
#: A sentence on where somebody lives and one on where they moved, a name, and one that says more; by language.
SAID = {
    "English": (
        "My sister lives in Bremen.", "My sister moved to Hamburg.", "My cat is called Miso.",
        "My sister moved to Hamburg and I miss her.",
    ),
    "German": (
        "Meine Schwester wohnt in Bremen.", "Meine Schwester ist nach Hamburg gezogen.", "Meine Katze heißt Miso.",
        "Meine Schwester wohnt in Bremen, und ich bin traurig.",
    ),
    "French": (
        "Ma sœur habite à Brest.", "Ma sœur a déménagé à Lyon.", "Mon chat s'appelle Miso.",
        "Ma sœur a déménagé à Lyon et elle me manque.",
    ),
    "Spanish": (
        "Mi hermana vive en Lima.", "Mi hermana se mudó a Quito.", "Mi gato se llama Miso.",
        "Mi hermana se mudó a Quito y la echo de menos.",
    ),
    "Italian": (
        "Mia sorella abita a Roma.", "Mia sorella si è trasferita a Torino.", "Il mio gatto si chiama Miso.",
        "Mia sorella si è trasferita a Torino e mi manca.",
    ),
    "Portuguese": (
        "A minha irmã mora em Lisboa.", "A minha irmã mudou-se para Braga.", "O meu gato chama-se Miso.",
        "A minha irmã mudou-se para Braga e sinto a falta dela.",
    ),
    "Dutch": (
        "Mijn zus woont in Utrecht.", "Mijn zus is naar Gent verhuisd.", "Mijn kat heet Miso.",
        "Mijn zus is naar Gent verhuisd en ik mis haar.",
    ),
    "Russian": (
        "Моя сестра живёт в Москве.", "Моя сестра переехала в Казань.", "Мою кошку зовут Мисо.",
        "Моя сестра переехала в Казань, и мне грустно.",
    ),
    "Chinese": ("我姐姐住在柏林。", "我姐姐搬到汉堡了。", "我的猫叫米索。", "我姐姐搬到汉堡了，我很想她。"),
    "Japanese": (
        "姉はベルリンに住んでいます。", "姉はハンブルクに引っ越しました。", "私の猫はミソといいます。",
        "姉はハンブルクに引っ越して、とても寂しいです。",
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", SAID)
def test_a_fact_is_read_with_its_value(language: str) -> None:
    """Whole or not at all."""
    lives, moved, named, more = SAID[language]
    assert [getattr(read_attribute(each), "attribute", None) for each in (lives, moved, named)] == ["residence"] * 2 + [
        "name"
    ]
    assert (read_attribute(lives) or more)[-2] == language
    assert read_attribute(more) is None
    assert facts_in(more, [more]) == []


@pytest.mark.parametrize("language", SAID)
def test_a_later_residence_takes_the_place_of_an_earlier_one(language: str) -> None:
    """Of the same person; the same place again changes nothing."""
    (lives,), (moved,) = (list(assertions_of(each)) for each in SAID[language][:2])
    assert lives.gives_way(moved)
    assert not lives.gives_way(lives)
    (other,) = assertions_of("Anna moved to Hamburg.")
    assert not lives.gives_way(other)


@pytest.mark.parametrize(
    "text",
    [
        "Please note that my locker number is 4417.",
        "My locker number is 4417, please note it.",
        "FYI: my locker number is 4417.",
        "My locker number is 4417. My cat is called Miso.",
    ],
)
def test_a_message_may_ask_to_note_its_facts(text: str) -> None:
    """Each of its sentences has to be one."""
    assert facts_in(text, _sentences(text))
    assert facts_in(f"{text} What now?", _sentences(f"{text} What now?")) == []


@given(st.text(max_size=2 * LONGEST))
def test_no_text_is_an_error(text: str) -> None:
    """A value that is read stands in the text."""
    found = read_attribute(text)
    assert found is None or found.value in text


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def test_sentences_that_others_would_say() -> None:
    """Of eighty in ten languages no feeling, problem, wish or order is noted, and nearly all facts are."""
    rows = [json.loads(line) for line in (DATA / "told.jsonl").read_text(encoding="utf-8").splitlines()]
    noted = [row for row in rows if facts_in(row["text"], _sentences(row["text"]))]
    assert [row["text"] for row in noted if not row["noted"]] == []
    assert len(noted) >= 0.85 * sum(row["noted"] for row in rows)
