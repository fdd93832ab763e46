"""Quotations: found where they stand word for word, and nowhere else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.minds.scripted import DOCUMENT

from batos.gate.quotations import locate
from batos.memory.evidence import Evidence
from batos.memory.passages import passages

word = st.text(st.characters(categories=["L", "N"], exclude_characters="ⅷ"), min_size=1, max_size=9)
sentences = st.lists(word, min_size=3, max_size=40)

EVIDENCE = Evidence(passages([("lamp.txt", "a" * 64, f"{'Nothing here. ' * 90}\n\n{DOCUMENT}")]))


@given(said=sentences, data=st.data(), join=st.sampled_from([" ", "\n", "  ", "\u00a0"]))
def test_every_verbatim_span_is_found(said: list[str], data: st.DataObject, join: str) -> None:
    """Any run of whole words is located, with other blanks too, and what is located says the same."""
    start = data.draw(st.integers(0, len(said) - 1))
    end = data.draw(st.integers(start + 1, len(said)))
    found = locate(join.join(said[start:end]), " ".join(said))
    assert found is not None
    assert " ".join(said)[slice(*found)].split() == said[start:end]


@given(said=sentences, other=word, data=st.data())
def test_a_span_with_one_changed_word_is_never_found(said: list[str], other: str, data: st.DataObject) -> None:
    """One word replaced by one that the text does not have: the quotation stands nowhere."""
    forms = {unicodedata.normalize(form, each) for each in said for form in ("NFC", "NFD")}
    assume(not any(other in form or unicodedata.normalize("NFC", other) in form for form in forms))
    at = data.draw(st.integers(0, len(said) - 1))
    changed = [*said[:at], other, *said[at + 1 :]]
    assert locate(" ".join(changed), " ".join(said)) is None


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("the keeper's lamp", "It is the keeper’s lamp."),
        ("“the keeper’s lamp”", "It is the keeper's lamp."),
        ("...the lamp burns...", "Here the lamp burns on."),
        ("4-6 hours", "It takes 4–6 hours."),
        ('he said "no" twice', "And he said „no“ twice."),
        ("Straße am Café", "Die Straße am Cafe\u0301 ist lang."),
        ("灯塔守护人", "每个灯塔守护人都知道。"),
        ("wait... what", "He said: wait… what is it?"),
        ("1,200 cans", "The oil of 1,200\ncans is there."),
        ("the clockwork turns", "See: the clock-\nwork turns."),
        ("a well-known tower", "It is a well-\nknown tower."),
        ("the clockwork", "It is the clock\u00adwork."),
        ("每四小时给钟上一次发条", "他每四小时给钟\n上一次发条。"),
        ("‘the lamp’", "It is the lamp."),
    ],
)
def test_typography_may_differ(quote: str, text: str) -> None:
    """Kinds of quotes, dashes, accents, dots and blanks are no difference."""
    assert locate(quote, text) is not None


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("he lamp", "The lamp burns."),
        ("the lam", "See the lamp."),
        ("The Lamp", "See the lamp."),
        ("", "Anything."),
        ("\x1f", "Anything."),
        ("...", "Anything..."),
        ("lamp burns", "The lamp, it burns."),
        ("20 cans", "There are 120 cans."),
        ("200 cans", "There are 1,200 cans and 200 cats."),
        ("the lamp … the oil", "the lamp burns the oil"),
        ("120 steps", "There are 1\n20 steps."),
        ("nowhere", "It is now\nhere."),
        ("120 steps", "There are 1-\n20 steps."),
    ],
)
def test_letters_words_and_digits_may_not(quote: str, text: str) -> None:
    """Half a word, another case, a word left out, or nothing at all is no quotation."""
    assert locate(quote, text) is None
