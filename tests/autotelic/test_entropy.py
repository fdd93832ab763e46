"""The entropy metric: each part is a share, and none is raised by what is cheapest: echo, salad, more of the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batos.autotelic import entropy
from batos.autotelic.entropy import AnswerFacts, SentenceFacts, content
from batos.protocol.motion_documents import EntropyPart

QUESTION = "When was the lamp of the lighthouse lit?"
EVIDENCE = "The lamp of the lighthouse was lit in 1889."

texts = st.sampled_from(
    ["", QUESTION, EVIDENCE, "In 1889.", "Gulls cry over the harbour.", "Oil is dear this year.", "Hello!", "1889"]
)
sentences = st.builds(
    lambda words, state, evidence: SentenceFacts(content(words), state, content(evidence)),
    texts, st.sampled_from(["carried", "not_carried", "not_checkable"]), texts,
)  # fmt: skip
answers = st.builds(
    lambda question, said, passed, parts, queries, share: AnswerFacts(
        content(question), tuple(said), passed, tuple(map(content, parts)), queries, round(queries * share)
    ),
    texts, st.lists(sentences, max_size=5), st.booleans(), st.lists(texts, max_size=4), st.integers(0, 4),
    st.floats(0, 1),
)  # fmt: skip


def said(text: str, state: str = "carried", evidence: str = EVIDENCE) -> SentenceFacts:
    """A sentence of an answer."""
    return SentenceFacts(content(text), state, content(evidence))


def answer(*parts: SentenceFacts, passed: bool = True, voices: tuple[str, ...] = ()) -> AnswerFacts:
    """An answer to the question."""
    return AnswerFacts(content(QUESTION), parts, passed, tuple(map(content, voices)))


@settings(deadline=None)
@given(answers, st.none() | st.floats(0, 1), st.lists(st.floats(0, 1), max_size=3))
def test_every_part_is_a_share(judged: AnswerFacts, consistency: float | None, earlier: list[float]) -> None:
    """Or not defined, whatever the answer is."""
    parts = (entropy.relevance(judged, consistency), entropy.diversity(judged), entropy.novelty(judged, earlier))
    assert all(each is None or 0 <= each <= 1 for each in parts)


@settings(deadline=None)
@given(answers)
def test_an_answer_with_a_fault_is_worth_nothing(judged: AnswerFacts) -> None:
    """Neither relevant nor new."""
    faulty = judged._replace(passed=False)
    assert entropy.relevance(faulty) == 0
    assert entropy.novelty(faulty, []) in (0, None)


def test_a_short_answer_has_the_words_of_its_evidence() -> None:
    """ "In 1889." is as relevant as the sentence that says so, and the question said back is not relevant at all."""
    whole, short = entropy.relevance(answer(said(EVIDENCE))), entropy.relevance(answer(said("In 1889.")))
    echo = entropy.relevance(answer(said("The lamp of the lighthouse was lit.", "not_carried", "")))
    assert whole == short == pytest.approx(1.0)
    assert echo == 0


def test_what_says_the_question_back_is_left_out() -> None:
    """An echo beside the answer neither raises nor lowers it; what no document carries lowers it."""
    bare = entropy.relevance(answer(said("In 1889.")))
    echoed = answer(said("The lamp of the lighthouse was lit.", "carried", QUESTION), said("In 1889."))
    stuffed = answer(said("In 1889."), *[said("Gulls cry over the harbour.", "not_carried", "")] * 3)
    assert entropy.relevance(echoed) == bare
    assert (entropy.relevance(stuffed) or 0) < (bare or 0) / 2


def test_without_anything_to_carry_it_nothing_is_measured() -> None:
    """A greeting, or an answer without documents, has no relevance, diversity or novelty, rather than none of it."""
    spoken = answer(said("Hello!", "not_checkable", ""), voices=("Hello!", "Good day!"))
    assert (entropy.relevance(spoken), entropy.diversity(spoken), entropy.novelty(spoken, [])) == (None, None, None)


def test_diversity_needs_several_voices_in_the_answer() -> None:
    """None of one voice; nothing where one voice says all, or all say the same; drift beyond the cap adds nothing."""
    lamp, oil = "The lamp was lit in 1889.", "Oil cost 3 crowns a barrel."
    assert entropy.diversity(answer(said(lamp))) is None
    assert entropy.diversity(answer(said(lamp), said(lamp), voices=(lamp, lamp))) == 0
    assert entropy.diversity(answer(said(lamp), said(oil), voices=(f"{lamp} {oil}", "Gulls cry."))) == 0
    both = answer(said(lamp), said(oil), voices=(lamp, oil))
    assert entropy.diversity(both) == pytest.approx(1.0)
    lost = answer(said(lamp), said(oil, "not_carried", ""), voices=(lamp, oil))
    assert entropy.diversity(lost) == 0


def test_novelty_is_of_what_documents_carry() -> None:
    """Words at random are new and worth nothing; the same answer again is not new."""
    assert entropy.novelty(answer(said("Zebras hum sideways.", "not_carried", "")), []) == 0
    assert entropy.novelty(answer(said(EVIDENCE)), [1.0, 0.2]) == 0
    assert entropy.novelty(answer(said(EVIDENCE)), [0.2]) == pytest.approx(0.8)


def test_an_unanswered_part_of_a_question_lowers_relevance() -> None:
    """Each sub-question counts like the words of the question."""
    divided = answer(said(EVIDENCE))._replace(queries=2, unanswered=1)
    assert (entropy.relevance(divided) or 0) < (entropy.relevance(answer(said(EVIDENCE))) or 0)


@given(st.floats(0, 1e6), st.floats(0, 100))
def test_structure_is_a_share_that_grows_with_use_alone(missions: float, used: float) -> None:
    """More uses in as many missions are more; missions without any use are less."""
    found = entropy.structure(used, missions)
    if missions == 0:
        assert found is None
    else:
        assert found is not None
        assert 0 <= found <= 1
        assert found <= (entropy.structure(used + 1, missions) or 0)
        assert found >= (entropy.structure(used, missions + 1) or 0)


@given(st.dictionaries(st.sampled_from(sorted(entropy.WEIGHTS)), st.floats(0, 1)))
def test_the_sum_is_between_its_parts(parts: dict[EntropyPart, float]) -> None:
    """Parts that are not defined have no weight."""
    found = entropy.composite(entropy.parts_of({**parts}, decimals=17))
    values = list(parts.values())
    if found is None:
        assert not values
    else:
        assert min(values) - 1e-9 <= found <= max(values) + 1e-9
