"""Words as a classifier: it learns what it is given, says the same when read back, and names the words that tell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.routing import lexical
from batos.routing.lexical import HEAD, TAIL, Lesson, Triggers, features, looked_at

LESSONS = (
    Lesson("ROBIN", ("lonely", "孤独"), ("I feel lost today.", "My heart is heavy.")),
    Lesson("BRICK", ("how to",), ("How do I fix this loop?", "The loop raises a TypeError.")),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(text=TEXTS)
def test_words_read_back_say_the_same(text: str) -> None:
    """What is kept as bytes is the classifier that it was."""
    made = lexical.learn(LESSONS)
    again = lexical.unpack(made.labels, made.packed_model["features"], made.packed_model["counts"])
    assert again.packed_model == made.packed_model
    assert again.logs(text) == made.logs(text)


@given(text=TEXTS)
def test_no_feature_holds_a_line_end(text: str) -> None:
    """Features are kept a line each."""
    assert not any("\n" in feature for feature in features(text))


def test_words_learn_what_they_are_given() -> None:
    """Unknown forms of known words, and the shape of a text, speak for who has seen them."""
    made = lexical.learn(LESSONS)
    assert made.logs("loops and looping")[1] > made.logs("loops and looping")[0]
    assert made.logs("my heart")[0] > made.logs("my heart")[1]
    assert lexical.learn(LESSONS) is made


def test_telling_words_are_the_leaders_own() -> None:
    """Named are words that the leader's exemplars have and the others' have not."""
    made = lexical.learn(LESSONS)
    assert "loop" in made.telling("The loop of my heart", "BRICK")
    assert "heart" in made.telling("The loop of my heart", "ROBIN")
    assert made.telling("zzz", "ROBIN") == []


def test_triggers_are_whole_words_where_words_have_blanks() -> None:
    """`lonely` is not in `lonelyish`; a Chinese trigger may stand anywhere."""
    triggers = Triggers(LESSONS)
    assert triggers.find("I am so lonely, tell me how to go on", "ROBIN") == ["lonely"]
    assert triggers.find("lonelyish", "ROBIN") == []
    assert triggers.find("我感到很孤独啊", "ROBIN") == ["孤独"]
    assert triggers.find("I am so lonely", "BRICK") == []


def test_of_a_long_text_the_ends_are_looked_at() -> None:
    """The middle of a long text is left out."""
    assert looked_at("a" * HEAD + "b" * 9_000 + "c" * TAIL) == "a" * HEAD + " " + "c" * TAIL
