"""An answer that grows: each sentence is attributed once, when it ends, however the pieces are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth, least_seconds

from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attributor, GrowingAttribution, answer_sentences, attribute
from batos.gate.evidence_index import EvidenceIndex
from batos.memory.evidence import Evidence, Passage

LIGHT = "Hook Light was built of granite in 1804 by Robert Blair. In 1961 the harbour board automated the lamp."
QUESTION = "When was the lamp of Hook Light automated?"
INDEX = EvidenceIndex(Evidence((Passage(1, "a.txt", "0" * 64, 0, LIGHT),)))
SENTENCES = (
    "The lamp was automated in 1961.",
    "Robert Blair built it of granite in 1804!",
    "Whales sing below the ice.",
    "灯台守が磨く。",
    "Der Turm wurde von Robert Blair aus Granit gebaut, und die Lampe ist seit 1961 automatisch.",
    'It says "the harbour board sold the lamp" in 1961.',
    "From 1804 to 1961 are 157 years.",
    "1804 + 157 = 1961.",
    "```\nlamp. on.\n```",
)

answers = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5).map("\n".join)


@given(answer=answers, data=st.data())
def test_each_sentence_is_returned_once_in_order(answer: str, data: st.DataObject) -> None:
    """Its place is that in the whole answer, and nothing is left at the end."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    growing = GrowingAttribution(Attributor(QUESTION, INDEX))
    found: list[AttributedSentence] = []
    for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True):
        found += growing.add(answer[start:end])
        assert all(each.end <= end for each in found)
    found += growing.finish()
    assert [(each.start, each.end) for each in found] == answer_sentences(answer)
    assert [each.text for each in found] == [answer[each.start : each.end] for each in found]


@given(answer=answers, data=st.data())
def test_the_whole_is_read_as_if_none_of_it_was_read_before(answer: str, data: st.DataObject) -> None:
    """A language, a sum or a quotation that a later sentence brings changes what was said of an earlier one."""
    attributor = Attributor(QUESTION, INDEX)
    growing = GrowingAttribution(attributor)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True):
        growing.add(answer[start:end])
    growing.finish()
    assert attributor.attribute(answer) == attribute(answer, QUESTION, INDEX)


def test_a_sentence_is_told_as_the_next_one_begins() -> None:
    """Not before: a point may stand in a number, and more of the sentence may come."""
    growing = GrowingAttribution(Attributor(QUESTION, INDEX))
    assert growing.add("The lamp was automated in 1961") == ()
    assert growing.add(".") == ()
    assert growing.add(" ") == ()
    (ended,) = growing.add("Whales")
    assert [each.quote for each in ended.carriers] == ["In 1961 the harbour board automated the lamp."]
    (last,) = growing.finish()
    assert (last.text, last.state, growing.finish()) == ("Whales", "not_carried", ())


def test_a_sentence_behind_a_greeting_is_completed_by_the_question() -> None:
    """As in the whole answer: what comes first is what could be checked first."""
    growing = GrowingAttribution(Attributor(QUESTION, INDEX))
    found = [*growing.add("Hello! "), *growing.add("In 1961. "), *growing.add("Bye."), *growing.finish()]
    whole = attribute("Hello! In 1961. Bye.", QUESTION, INDEX).sentences
    assert tuple(found) == whole


def test_a_sentence_takes_no_longer_than_the_whole_answer_at_once() -> None:
    """The search for where sentences end is counted: it is not made for each word."""
    words = " ".join(f"The lamp number {each} was automated in 1961 by the board." for each in range(60)).split()

    def add_all(_: int) -> None:
        growing = GrowingAttribution(Attributor(QUESTION, INDEX))
        for word in words:
            growing.add(f" {word}")

    whole = least_seconds(lambda _: attribute(" ".join(words), QUESTION, INDEX), 1)
    assert least_seconds(add_all, 1) < 60 * whole


def test_a_stream_takes_time_by_its_length() -> None:
    """A sentence is read with what stands near it, and not with all that was heard before."""

    def add_all(size: int) -> None:
        growing = GrowingAttribution(Attributor(QUESTION, INDEX))
        for each in range(size):
            growing.add(f"The lamp number {each} was automated in 1961 by the board. ")

    assert growth(add_all, 50) < MOST
