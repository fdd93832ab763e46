"""Forms of words: every form finds the others, of any language of the table, and words of another stem stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.segmentation import stems
from batos.memory.words_by_language import stems_of_forms, wanted_words, without_ending

roots = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=9)
endings = st.sampled_from(["", "s", "ed", "ing"])


@given(roots, endings, endings)
def test_words_with_one_bare_form_find_each_other(root: str, one: str, other: str) -> None:
    """What `without_ending` makes one word of has stems that the forms of either name."""
    first, second = root + one, root + other
    if without_ending(first) == without_ending(second) and wanted_words(first).forms and wanted_words(second).forms:
        held = stems_of_forms(first)
        own = next(stems(first))
        assert next(stems(second)) in held or (len(held) == 1 and next(iter(held)) == own)


@given(st.text(max_size=30))
def test_a_word_is_a_form_of_itself(text: str) -> None:
    """Each stem of any text is held by that text."""
    words = wanted_words(text)
    assert words.find_in(text) == frozenset(words.forms)


@pytest.mark.parametrize(
    ("asked", "noted"),
    [
        ("Was kosten die Garagen?", "Die Garage kostet 65 Euro."),
        ("Welche Verträge hat das Haus?", "Vertrag über Häuser"),
        ("Combien coûtent les loyers ?", "Le loyer coûte cher."),
        ("¿Cuándo cambiaron el freno?", "El taller cambió los frenos."),
        ("Quando scadono le fatture?", "La fattura scade domani."),
        ("Who is planning trips?", "She planned a trip."),
        ("Which cities carried it?", "The city carries it."),
        ("Сколько стоили книги?", "Эта книга стоила дорого."),
    ],
)
def test_a_question_finds_another_form(asked: str, noted: str) -> None:
    """At least two words of each question stand in the note, in another form."""
    assert len(wanted_words(asked).find_in(noted)) >= 2


@pytest.mark.parametrize(
    ("asked", "noted"), [("note", "not"), ("rent", "renew"), ("hat", "have"), ("48", "480"), ("lamp", "lantern")]
)
def test_words_of_another_stem_stay_apart(asked: str, noted: str) -> None:
    """A short beginning makes no form, and a number has none."""
    assert not wanted_words(asked).find_in(noted)
