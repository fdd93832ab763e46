"""Names: what a part is called by, and where texts of any script mention a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.mentions import key_of, mentions, names_in, names_of, opening_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ada Brandt (born 1901) was a keeper.", "Ada Brandt"),
        ("The Holm Light, built in 1848.", "Holm Light"),
        ('"Skarn Rock" is a reef.', "Skarn Rock"),
        ("Nils Brandt war Wärter.", "Nils Brandt"),
        ("it burns gas and is loud.", ""),
        ("Oil", ""),
        ("灯塔，建于1848年。", "灯塔"),
        ("", ""),
    ],
)
def test_a_text_opens_with_the_name_of_its_subject(text: str, name: str) -> None:
    """Before the first verb, comma or bracket; small letters open with none."""
    assert opening_name(text) == name


@pytest.mark.parametrize(
    ("title", "heading", "names"),
    [
        ("Skarn (island)", "", {"skarn island", "skarn"}),
        ("Tromso, Norway", "", {"tromso norway", "tromso"}),
        ("The", "", set()),
        ("1848", "", set()),
        ("", "Lights > The Lamp", {"the lamp"}),
        ("灯塔", "", {"灯塔"}),
        ("Brandt's Notes", "", {"brandt notes"}),
    ],
)
def test_a_part_is_called_by_its_title_and_heading(title: str, heading: str, names: set[str]) -> None:
    """With and without what stands in brackets or behind a comma; a number or a common word is no name."""
    assert names_of(title, heading, "x", True) == names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Is Holm Light's keeper Ada?", ["holm light"]),
        ("holm light", []),
        ("Holm (Light)", ["holm light"]),
        ("Holm, and then Light", ["holm"]),
        ("这座灯塔有三十米高", ["灯塔"]),
        ("HOLM LIGHT", ["holm light"]),
        ("Straße", ["strasse"]),
    ],
)
def test_mentions_are_found_in_any_script(text: str, found: list[str]) -> None:
    """The longer of two names, in capitals too, in scripts without blanks, and across a mark."""
    assert [each.name for each in mentions(text, {"holm light", "holm", "灯塔", "strasse"})] == found


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_may_be_looked_through(name: str, text: str) -> None:
    """A name's place is within the text, and the text there has the name."""
    key = key_of(name)
    for found in mentions(f"{text} {name} {text}", {key}):
        assert found.name == key
        assert key_of(f"{text} {name} {text}"[found.start : found.end]) == key


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("Lamps burn at Holm Light.", ["holm light"]),
        ("The Bank of Tarn is shut.", ["bank of tarn"]),
        ("In Tarn, Norway, Ada met Ada.", ["tarn", "norway", "ada"]),
        ("Convention 169 holds since May 1989.", ["convention 169", "may 1989"]),
        ("Tarn of the sea", []),
        ("In 1848 it was lit.", []),
        ("Nach Tromsø fährt Åse.", ["tromsø", "åse"]),
        ("这座灯塔有三十米高", []),
        ("", []),
    ],
)
def test_capitals_say_names(sentence: str, names: list[str]) -> None:
    """Rows of them, with small words within; a number alone, a common word or the first word of all is none."""
    assert names_in(sentence) == names


@given(st.text(max_size=80))
def test_names_are_in_their_sentence(sentence: str) -> None:
    """Each as names are compared, and each once."""
    found = names_in(sentence)
    assert len(found) == len(set(found))
    assert all(each in key_of(sentence) for each in found)
