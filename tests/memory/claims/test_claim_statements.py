"""Statements: a sentence each, behind the label of who speaks; a fact and a labelled text are whole."""

from __future__ import annotations

from batos.memory.claims.claim_statements import ClaimText, family, parts_of_key, statements_of, telling, values


def test_a_turn_is_its_sentences() -> None:
    """The first one begins with the label, which is no word of it."""
    text = "[Ana (Sales)]: It is red. It was blue."
    told = statements_of(ClaimText(1, "turn", text))
    assert [(each.text, text[each.start : each.end]) for each in told] == [
        ("It is red.", "[Ana (Sales)]: It is red."),
        ("It was blue.", "It was blue."),
    ]
    assert told[0].label == "Ana (Sales)"
    assert [each.label for each in statements_of(ClaimText(1, "turn", "Ana (Sales): It is red."))] == ["Ana (Sales)"]


def test_facts_and_restricted_texts_are_whole() -> None:
    """A label tells for whom a text is, or that it no longer holds."""
    assert len(statements_of(ClaimText(1, "fact", "It is red. It is big.", key="lamp"))) == 1
    (told,) = statements_of(ClaimText(1, "turn", "[CONFIDENTIAL: board]: It is 9. It is secret."))
    assert (told.is_restricted, told.is_invalid) == (True, False)
    assert statements_of(ClaimText(1, "turn", "[OBSOLETE] It is 9."))[0].is_invalid


def test_words_that_tell_and_values() -> None:
    """Small words tell nothing; numbers and names are values."""
    assert telling("The lamp is at the 9 harbours.") == {"lamp", "9", "harbou"}
    assert values("The keel goes to Bremen for 75 euros.") == {"bremen", "75"}
    assert values("Lamps burn.") == frozenset()


def test_keys_have_families_and_parts() -> None:
    """An ending of a version is not part of a key, and neither is the mark of an identifier."""
    assert family("Price_v2") == family("price-updated") == "price"
    assert parts_of_key("F-LAUNCH-DATE-V2") == ["launch", "date"]
