"""Passages: verbatim spans of files that miss nothing but blanks, cut between sentences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import SHA, texts

from batos.memory.passages import PASSAGE, passages


@given(files=st.lists(texts, max_size=3))
def test_passages_are_verbatim_slices_that_miss_only_blanks(files: list[str]) -> None:
    """Each is a slice of its file at its place, no longer than the limit, and between them are nothing but blanks."""
    found = passages([(str(number), SHA, text) for number, text in enumerate(files)])
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    for number, text in enumerate(files):
        at = 0
        for each in (each for each in found if each.name == str(number)):
            assert text[each.start : each.start + len(each.text)] == each.text
            assert text[at : each.start].strip() == ""
            assert each.text == each.text.strip()
            assert 0 < len(each.text) <= PASSAGE
            at = each.start + len(each.text)
        assert text[at:].strip() == ""


@given(pages=st.lists(st.text("ab .\n", max_size=900), min_size=1, max_size=6))
def test_each_place_is_on_its_page(pages: list[str]) -> None:
    """The pages of a file are known to each of its passages; one without pages is on none."""
    for each in passages([("a.pdf", "0" * 64, "\f\n\n".join(pages))]):
        for place, letter in enumerate(each.text, each.start):
            before = sum(len(page) + 3 for page in pages[: each.page_at(place) - 1])
            if letter != "\f" and len(pages) > 1:
                assert before - 2 <= place < before + len(pages[each.page_at(place) - 1])  # an empty line is the next's
        assert (each.page_at(each.start) > 0) == (len(pages) > 1)


@given(
    sentences=st.lists(st.integers(2, 150).map(lambda size: "Word" + " word" * size + "."), min_size=1, max_size=60),
    gaps=st.data(),
)
def test_no_passage_begins_or_ends_inside_a_sentence(sentences: list[str], gaps: st.DataObject) -> None:
    """Sentences shorter than a passage stay whole, whether a paragraph is short or long."""
    text = ""
    for sentence in sentences:
        text += sentence + gaps.draw(st.sampled_from([" ", "\n", "\n\n"]))
    for each in passages([("a", SHA, text)]):
        assert each.text.startswith("Word ")
        assert each.text.endswith(".")


def test_a_sentence_just_as_long_as_a_passage_is_not_cut() -> None:
    """The limit is a length that still fits, also when the sentence's end is the last character that is looked at."""
    exact = "A" + "a" * (PASSAGE - 2) + "."
    assert [each.text for each in passages([("a", SHA, f"{exact} {exact} Short.")])] == [exact, exact, "Short."]


def test_abbreviations_do_not_end_a_sentence() -> None:
    """A point before a small letter is no end: the passage is cut at the sentence before it."""
    text = "First." + " This runs on, e.g. so, and on" * 60
    first = passages([("a", SHA, text)])[0].text
    assert not first.endswith("e.g.")


def test_full_width_marks_end_sentences_without_a_blank() -> None:
    """Chinese has no blank behind its full stop, and is cut there all the same."""
    text = "灯塔守护人每四小时给钟上一次发条。" * 200
    found = passages([("a", SHA, text)])
    assert len(found) > 1
    assert all(each.text.endswith("。") for each in found)


def test_lines_are_kept_whole_where_nothing_ends_a_sentence() -> None:
    """A table or a log is cut between lines, not inside them."""
    text = "\n".join(f"2026-11-21 entry {number} ok" for number in range(200))
    assert all(each.text.startswith("2026") and each.text.endswith("ok") for each in passages([("a", SHA, text)]))
