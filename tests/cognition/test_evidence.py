"""Passages and recall: verbatim spans that miss nothing, and what fits chosen by what matches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cognition.conftest import Mind
from tests.cognition.minds import GOOD, LAMP, ask

from batos.cognition.aside import LIGHT, aside
from batos.cognition.brief import as_file
from batos.cognition.evidence import (
    MOST_DOCUMENTS,
    MOST_PASSAGES,
    PASSAGE,
    VIEW_SHARE,
    Evidence,
    Passage,
    Past,
    Summary,
    Turn,
    passages,
    rank,
    recall,
    scores,
    terms,
    words,
)

SHA = "0" * 64

blanks = st.sampled_from([" ", "\n", "\n\n", "\r\n\r\n", "\t", "\u3000", "\n \n"])
pieces = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.sampled_from(["Die Straße ist naß.", "灯塔守护人。", "Он спит!", "दीपक जलता है।", "x" * 2_000, "e\u0301", "🗼"]),
    blanks,
)
texts = st.lists(pieces, max_size=40).map("".join)


def passage(text: str, number: int = 1) -> Passage:
    """A passage of a file."""
    return Passage(number, "a.txt", SHA, 0, text)


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


@given(text=texts)
def test_words_are_folded_and_terms_cover_scripts_without_blanks(text: str) -> None:
    """Every term is a word or a pair of characters of one; a word without blanks inside is found by its pairs."""
    found = words(text)
    assert all(word == word.casefold() for word in found if word.isascii())
    assert all(any(term in word for word in found) for term in terms(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Straße Ⅷ", ["strasse", "viii"]),
        ("कैसे करूँ", ["कैसे", "करूँ"]),
        ("灯塔的灯", ["灯塔的灯"]),
        ("e\u0301te\u0301", ["été"]),
        ("", []),
    ],
)
def test_words_of_several_scripts(text: str, found: list[str]) -> None:
    """Compatible forms are one, and marks of Indic scripts do not cut a word."""
    assert words(text) == found


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How often is the clockwork wound?", "The clockwork is wound every four hours."),
        ("Wie heißt die STRASSE?", "Die Straße heißt Am Leuchtturm."),
        ("灯塔有多高？", "这座灯塔有三十米高。"),
        ("Где спит смотритель?", "Смотритель спит под галереей."),
    ],
)
def test_the_passage_with_the_words_comes_first(query: str, wanted: str) -> None:
    """Among passages about other things the one that shares the query's words is ranked first, in any script."""
    others = ["The sea is grey.", "Das Meer ist grau.", "大海是灰色的。", "Море серое.", "Oil and brass."]
    found = rank([passage(text) for text in (*others, wanted)], query)
    assert found[0].text == wanted


@given(found=st.lists(st.text("ab ", min_size=1, max_size=9), max_size=8), query=st.text("abc ", max_size=9))
def test_ranking_is_a_stable_permutation(found: list[str], query: str) -> None:
    """Nothing is lost or made; ties keep their order; a passage without any of the words scores 0."""
    given_ = [passage(text, number) for number, text in enumerate(found)]
    ranked = rank(given_, query)
    assert sorted(each.number for each in ranked) == list(range(len(found)))
    by_score = dict(zip([each.number for each in given_], scores(given_, query), strict=True))
    keys = [(-by_score[each.number], each.number) for each in ranked]
    assert keys == sorted(keys)
    for each in given_:
        assert (by_score[each.number] > 0) == bool(set(terms(query)) & set(terms(each.text)))


def _size(evidence: Evidence) -> int:
    """Bytes of all that is shown."""
    said = sum(each.size for each in evidence.turns) + sum(each.size for each in evidence.view)
    return said + sum(each.size for each in evidence.passages)


turn_lists = st.lists(
    st.integers(1, 90).map(lambda size: Turn(f"m-{size}", "q" * size, "a" * size, "model")), max_size=5
)


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """A conversation with a view of its older turns, and perhaps an exchange that is replied to: one of it, or not."""
    spans = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 300)), max_size=4))
    view: list[Summary] = []
    for turns, size in spans:
        first = view[-1].last + 1 if view else 1
        view.append(Summary(first, first + turns - 1, "s" * size, "model"))
    past = Past.of(draw(turn_lists), tuple(view))
    known = [Turn("m-else", "q", "a", "user"), *past.newest(), *([Turn("m-old", "q", "a", "user", 1)] if view else [])]
    return replace(past, meant=draw(st.sampled_from([None, *known])))


@given(
    found=st.lists(st.integers(1, 900).map(lambda size: "w" * size), max_size=20),
    past=pasts(),
    room=st.integers(0, 6_000),
)
def test_recall_stays_within_its_room_and_counts_what_it_left_out(found: list[str], past: Past, room: int) -> None:
    """What is shown takes no more than the room; every turn is shown, stood for or counted; the newest are kept."""
    candidates = [passage(text, number) for number, text in enumerate(found, start=1)]
    evidence = recall(candidates, past, "w", room)
    assert _size(evidence) <= room
    assert len(evidence.passages) + evidence.omitted_passages == len(candidates)
    assert [each.number for each in evidence.passages] == list(range(1, len(evidence.passages) + 1))
    told = {each.position for each in evidence.turns if each.position}
    for summary in evidence.view:
        told |= set(range(summary.first, summary.last + 1))
    assert len(told) + evidence.omitted_turns == past.count
    assert evidence.view == past.view[len(past.view) - len(evidence.view) :]
    meant = past.meant is not None and past.meant.size <= (room // 2 if candidates else room)
    assert (evidence.turns[-1:] == (past.meant,)) == meant or past.meant in evidence.turns[-1:]
    rest = evidence.turns[:-1] if meant else evidence.turns
    newest = [each for each in past.newest() if not (meant and past.meant and each.mission == past.meant.mission)]
    assert list(rest) == list(reversed(newest[: len(rest)]))


def test_turns_are_loaded_until_the_room_is_used_up() -> None:
    """However long the conversation: one turn more than has room is looked at, and what is left out is counted."""
    looked: list[int] = []

    def newest() -> Iterator[Turn]:
        for position in range(10_000, 0, -1):
            looked.append(position)
            yield Turn(f"m-{position}", "q" * 50, "a" * 50, "model", position)

    evidence = recall((), Past(10_000, newest), "", 1_000)
    assert [each.position for each in evidence.turns] == list(range(9_994, 10_001))
    assert looked[-1] == 9_993
    assert evidence.omitted_turns == 10_000 - 7


def test_summaries_have_a_share_that_turns_do_not_take() -> None:
    """With many turns the newest summary still has its place; with few the view is shown whole."""
    view = tuple(Summary(number, number, "s" * 200, "model") for number in range(1, 6))
    many = [Turn(f"m-{number}", "q" * 40, "a" * 40, "model") for number in range(100)]
    room = 3_000
    crowded = recall((), Past.of(many, view), "", room)
    assert crowded.view
    assert sum(each.size for each in crowded.view) <= room // VIEW_SHARE + many[0].size
    assert sum(each.size for each in crowded.turns) >= room - room // VIEW_SHARE - many[0].size - 2 * 16
    assert recall((), Past.of(many[:2], view), "", room).view == view


@given(text=st.text(max_size=200))
def test_a_summary_never_closes_its_own_block(text: str) -> None:
    """Whatever the text, the mark that ends the block is not in it, and the block says what it is."""
    block = Summary(3, 7, text, "external", by_model=False).block()
    opening, _, rest = block.partition("\n<")
    assert opening == "First sentences, taken by the machine, of turns 3 to 7:"
    mark = rest.partition('digest="')[2].partition('"')[0]
    assert mark not in text
    assert rest.endswith(f"\n{text}\n</earlier {mark}>")
    assert Summary(3, 3, text, "user").block().startswith("Summary, made by the machine, of turn 3:")


def test_all_passages_are_shown_if_they_fit() -> None:
    """A file that fits is shown whole, whether it matches the question or not."""
    candidates = passages([("a", SHA, "One.\n\n" + "x" * 1_190 + "\n\nTwo.")])
    evidence = recall(candidates, Past(), "nothing of it", 10_000)
    assert [each.text for each in evidence.passages] == [each.text for each in candidates]


def test_of_too_many_passages_those_that_match_are_shown() -> None:
    """Irrelevant passages are not used as filling, and more than a few do not help."""
    lines = [f"Line {number} about {'lamps' if number % 3 == 0 else 'nothing'}." for number in range(300)]
    candidates = [passage(line, number) for number, line in enumerate(lines, start=1)]
    evidence = recall(candidates, Past(), "lamps", 10_000)
    assert len(evidence.passages) == MOST_PASSAGES
    assert all("lamps" in each.text for each in evidence.passages)
    assert len(recall(candidates, Past(), "whales", 10_000).passages) == MOST_PASSAGES


def test_a_citation_can_number_every_passage_that_is_shown() -> None:
    """However large the window, no more documents are shown than a citation's schema can name."""
    candidates = [passage("w", number) for number in range(1, 400)]
    assert max(each.number for each in recall(candidates, Past(), "w", 10**6).passages) <= MOST_DOCUMENTS


@given(excess=st.integers(-5, 5_000))
def test_lightening_drops_weak_passages_then_summaries_then_old_turns(excess: int) -> None:
    """At least so many bytes go, or all; each kind goes only when none of the one before is left, the oldest first."""
    found = tuple(passage(f"{'lamp ' * number} and the sea " * 4, number) for number in range(1, 6))
    turns = tuple(Turn(f"m-{number}", "q" * 99, "a" * 99, "model") for number in range(3))
    view = (Summary(1, 4, "s" * 300, "model"), Summary(5, 6, "s" * 100, "model"))
    evidence = Evidence(found, turns, view=view)
    left = evidence.lightened("lamp", excess)
    assert _size(evidence) - _size(left) >= min(excess, _size(evidence))
    assert left.view == view or not left.passages
    assert left.turns == turns or not left.view
    assert left.view == view[len(view) - len(left.view) :]
    assert left.turns == turns[len(turns) - len(left.turns) :]
    kept = {each.number for each in left.passages}
    weakest_first = [each.number for each in reversed(rank(found, "lamp"))]
    assert kept == set(weakest_first[len(found) - len(kept) :])
    assert left.omitted_passages == len(found) - len(left.passages)
    gone = sum(each.turns for each in view[: len(view) - len(left.view)])
    assert left.omitted_turns == len(turns) - len(left.turns) + gone


async def test_a_large_file_never_holds_the_loop(mind: Mind) -> None:
    """A megabyte of text is read, cut, ranked and judged without holding the loop: the loop watch looks on."""
    text = "\n\n".join(f"Paragraph {number} tells of the sea, the wind and the oil." for number in range(18_000))
    assert len(text) > 1_000_000
    long = as_file("long.txt", f"{text}\n\n{LAMP.data.decode()}".encode())
    mind.script.woven = {**GOOD, "citations": []}
    shown = await ask(mind.uvm, "How does the keeper wind the clockwork every four hours?", (long,))
    assert shown["status"] == "done"
    assert shown["provenance"]["omitted"]["passages"] > 500
    assert "clockwork every four hours" in mind.bridge.history[0].messages[1]["content"]


async def test_heavy_work_goes_aside_and_light_work_stays() -> None:
    """Above the limit another thread does it; below it is done at once; an error comes back as it was raised."""
    here = threading.current_thread()
    assert await aside(LIGHT, threading.current_thread) is here
    assert await aside(LIGHT + 1, threading.current_thread) is not here

    def breaks() -> None:
        raise KeyError("x")

    for size in (0, LIGHT + 1):
        with pytest.raises(KeyError):
            await aside(size, breaks)
