"""Attribution: the sentences of evidence that carry an answer's, in any script, and those that nothing carries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate import checks, thresholds
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import SentenceVectors, answer_sentences, attribute, citations_of
from batos.gate.evidence_index import CONVERSATION, EvidenceIndex
from batos.gate.ground import Draft, Ground
from batos.memory.evidence import Evidence, Passage, Turn

SHA = "0" * 64
LIGHT = (
    "Hook Light was built of granite in 1804 by the engineer Robert Blair. In 1961 the harbour board automated"
    " the lamp. The keeper trims the wick at eight and fills the oil at nine."
)
BRIDGE = "The bridge of Arden carries the railway over the river. The bridge was opened in 1890 by Queen Mary."
OTHER = EvidenceIndex(Evidence((Passage(1, "b.txt", SHA, 0, "Quite different matters fill this."),)))
QUESTION = "When was the lamp of Hook Light automated?"


def evidence(*texts: str, start: int = 0) -> Evidence:
    return Evidence(tuple(Passage(number, "a.txt", SHA, start, text) for number, text in enumerate(texts, start=1)))


def only(answer: str, question: str, *texts: str) -> AttributedSentence:
    """Attribute an answer of one sentence."""
    [found] = attribute(answer, question, evidence(*texts)).sentences
    return found


words = st.sampled_from("lamp oil keeper storm wick tower 1804 灯台守 منارة Straße Anna harbour trim".split())
statements = st.lists(words, min_size=2, max_size=9).map(lambda said: " ".join(said).capitalize() + ".")
passages = st.lists(st.lists(statements, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=5)


@given(texts=passages, answer=st.lists(statements, min_size=1, max_size=4).map(" ".join), question=statements)
def test_quotes_are_slices_of_the_evidence_and_states_are_consistent(
    texts: list[str], answer: str, question: str
) -> None:
    """Every carrier and nearest sentence is its passage's text at its place; only carried sentences have carriers."""
    given_evidence = evidence(*texts, start=100)
    for each in attribute(answer, question, given_evidence).sentences:
        assert answer[each.start : each.end] == each.text
        assert (each.state == "carried") == bool(each.carriers) == (each.reason is None)
        assert not each.parts or each.state == "not_carried"
        for quoted in (*each.carriers, *each.parts, *filter(None, [each.nearest])):
            passage = given_evidence.find(quoted.document)
            assert passage is not None
            assert passage.text[quoted.start - 100 : quoted.end - 100] == quoted.quote
            assert 0 <= quoted.score <= 1


@given(texts=passages, question=statements, data=st.data())
def test_a_sentence_copied_from_the_evidence_is_carried_by_it(
    texts: list[str], question: str, data: st.DataObject
) -> None:
    """Whatever was asked, and whatever evidence stands beside."""
    index = EvidenceIndex(evidence(*texts))
    copied = data.draw(st.sampled_from(index.sentences))
    [found] = attribute(copied.quote, question, index).sentences
    assert found.state == "carried"
    assert found.carriers[0].quote.casefold().split() == copied.quote.casefold().split()
    assert found.carriers[0].score == 1


def test_a_clause_that_evidence_has_is_told_beside_one_that_it_has_not() -> None:
    """The sentence is not carried, and the sentence that carries a part of it is named with a lower score."""
    said = "In 1961 the harbour board automated the lamp, which had cost many pounds of tallow in winter before."
    found = only(said, QUESTION, LIGHT)
    assert (found.state, found.reason, found.carriers) == ("not_carried", "words", ())
    (part,) = found.parts
    assert part.quote == "In 1961 the harbour board automated the lamp."
    assert 0 < part.score < 1


def test_a_clause_that_is_little_of_its_sentence_has_no_part() -> None:
    """Who follows the citation of a sentence finds a third of it there, weighed by rarity."""
    said = "In 1961 the harbour board automated the lamp, which had cost many pounds of tallow in winter before"
    assert [each.score >= thresholds.CLAUSE_SHARE for each in only(f"{said}.", QUESTION, LIGHT).parts] == [True]
    more = "and frightened herring, mackerel, dolphins, cormorants, gannets, puffins and kittiwakes beyond measure"
    assert only(f"{said}, {more}.", QUESTION, LIGHT).parts == ()


@pytest.mark.parametrize(
    "said",
    [
        "In 1971 the harbour board automated the lamp, which had cost many pounds of tallow in winter before.",
        "The lamp of Hook Light, which was automated, was bought with pounds of tallow.",
    ],
)
def test_a_clause_with_another_number_or_of_the_questions_words_has_no_part(said: str) -> None:
    """What a part is cited for is held to the same numbers, and says more than was asked."""
    assert only(said, QUESTION, LIGHT).parts == ()


@given(answer=statements, question=statements)
def test_nothing_of_other_words_is_carried(answer: str, question: str) -> None:
    """Evidence without any word of an answer carries none of it."""
    assert attribute(answer, question, OTHER).select("carried") == ()


@given(texts=passages, answer=statements, question=statements)
def test_an_index_may_be_built_once(texts: list[str], answer: str, question: str) -> None:
    """An index that has answered other questions gives the same as a new one."""
    index = EvidenceIndex(evidence(*texts))
    attribute("Something else altogether.", "Another question?", index)
    assert attribute(answer, question, index) == attribute(answer, question, evidence(*texts))


@pytest.mark.parametrize(
    ("answer", "question", "text"),
    [
        ("The lamp was automated in 1961.", QUESTION, LIGHT),
        ("In 1961.", QUESTION, LIGHT),
        ("Robert Blair", "Who built Hook Light?", LIGHT),
        ("He trimmed it at eight.", "When does the keeper trim the wick?", LIGHT),
        ("In 1890.", "When was the tower of Arden painted?", "The tower of Arden is high. It was painted in 1890."),
        (
            "Die Lampe wurde 1961 automatisiert.",
            "Wann wurde die Lampe automatisiert?",
            "Der Turm ist aus Granit. Im Jahr 1961 hat das Hafenamt die Lampe automatisiert.",
        ),
        (
            "La lampe a été automatisée en 1961.",
            "Quand la lampe a-t-elle été automatisée ?",
            "La tour est en granit. En 1961, le port a automatisé la lampe.",
        ),
        (
            "灯台は1804年に花崗岩で建てられた。",
            "灯台はいつ建てられましたか。",
            "灯台は1804年に花崗岩で建てられました。ランプは油で燃えます。",
        ),
        (
            "بُنيت المنارة من الجرانيت عام 1804.",
            "متى بُنيت المنارة؟",
            "بنيت منارة هوك عام 1804 من الجرانيت. يعمل المصباح بالزيت.",
        ),
    ],
)
def test_a_true_sentence_is_carried(answer: str, question: str, text: str) -> None:
    """In its own words' order or another, whole or bare, in five languages."""
    found = only(answer, question, BRIDGE, text)
    assert found.state == "carried", found
    assert [carrier.document for carrier in found.carriers] == [2]


@pytest.mark.parametrize(
    ("answer", "question", "text", "reason"),
    [
        ("The lamp was automated in 1972.", QUESTION, LIGHT, "number"),
        ("The lamp was automated in 1890.", QUESTION, LIGHT, "number"),
        ("The lamp of Hook Light was automated by Queen Mary.", QUESTION, LIGHT, "question"),
        ("The lamp was painted green by sailors.", QUESTION, LIGHT, "words"),
        (
            "The wick is trimmed at nine.",
            "When is the wick trimmed?",
            "The wick is trimmed at eight, whatever the weather, out on the rock, and then, ashore, oil comes at nine.",
            "rival",
        ),
        (
            "Der Docht wird von Matrosen gemalt.",
            "Wer malt den Docht?",
            "Der Wärter kürzt den Docht um acht Uhr.",
            "words",
        ),
        (
            "La mèche est peinte par des marins.",
            "Qui peint la mèche ?",
            "Le gardien coupe la mèche à huit heures.",
            "words",
        ),
        ("灯台は木材で建てられた。", "灯台は何で建てられましたか。", "灯台は1804年に花崗岩で建てられました。", "words"),
        ("بُنيت المنارة من الخشب.", "مم بُنيت المنارة؟", "بنيت منارة هوك عام 1804 من الجرانيت.", "words"),
        ('The board says "the lamp was old and weak".', QUESTION, LIGHT, "quotation"),
    ],
)
def test_a_wrong_sentence_is_not_carried(answer: str, question: str, text: str, reason: str) -> None:
    """Another number, another matter's number, other words, a rival nearer to the question, words that nobody said."""
    found = only(answer, question, BRIDGE, text)
    assert (found.state, found.reason) == ("not_carried", reason)
    assert found.nearest is not None


def test_two_sentences_may_carry_one_together() -> None:
    """A sentence that joins two facts has both as carriers."""
    answer = "Hook Light was built of granite by Robert Blair, and the harbour board automated the lamp in 1961."
    found = only(answer, "What happened to Hook Light?", BRIDGE, LIGHT)
    assert found.state == "carried"
    assert [carrier.quote[:12] for carrier in found.carriers] in (
        ["Hook Light w", "In 1961 the "],
        ["In 1961 the ", "Hook Light w"],
    )


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Hello!", "greeting"),
        ("Would you like to know more about it?", "question"),
        ("You should visit the rock in summer.", "advice"),
        ("The document does not say who painted it.", "nothing_found"),
        ("And so on.", "no_content"),
        ("Here is what the papers tell:", "lead_in"),
        ("```\nlamp = 1961\n```", "code"),
    ],
)
def test_some_sentences_are_not_checkable(sentence: str, reason: str) -> None:
    """They stand beside a sentence that is carried, and take nothing from it."""
    found = attribute(f"In 1961 the board automated the lamp.\n\n{sentence}", QUESTION, evidence(LIGHT, BRIDGE))
    assert [(each.state, each.reason) for each in found.sentences] == [("carried", None), ("not_checkable", reason)]
    assert found.carried_share == 1


def test_advice_that_names_a_new_number_or_name_is_checked() -> None:
    """A claim does not become advice by its first words."""
    assert only("You should know that it was built in 1777.", QUESTION, LIGHT).state == "not_carried"
    assert only("You can see the rock from Arnheim.", QUESTION, LIGHT).state == "not_carried"


def test_an_answer_in_another_language_is_not_checked_by_words() -> None:
    """German words cannot be found in an English document; what can be is carried all the same."""
    found = only("Die Lampe ist seit vielen Jahren automatisch und der Turm ist rot.", QUESTION, LIGHT)
    assert (found.state, found.reason) == ("not_checkable", "language")


def test_without_evidence_nothing_is_checked() -> None:
    """An answer to a plain question rests on nothing."""
    found = attribute("The lamp was automated in 1961.", QUESTION, Evidence())
    assert [(each.state, each.reason) for each in found.sentences] == [("not_checkable", "no_evidence")]
    assert found.carried_share is None


PAINTER = "Who painted the tower?"


def test_the_conversation_carries_what_no_document_says() -> None:
    """Its sentences are document 0 and no citation; a document that says the same goes before them."""
    turn = Turn("m", PAINTER, "Anna Hale painted the tower in 1999.", "grounded", 1)
    talk = replace(evidence(LIGHT), turns=(turn,))
    found = attribute("Anna Hale painted it.", PAINTER, talk)
    assert [carrier.document for carrier in found.sentences[0].carriers] == [CONVERSATION]
    assert citations_of(found) == ()
    both = replace(evidence(LIGHT, "Anna Hale painted the tower in 1999."), turns=(turn,))
    assert [each.document for each in citations_of(attribute("Anna Hale painted it.", PAINTER, both))] == [2]


def test_a_sum_that_the_answer_shows_needs_no_document() -> None:
    """The result of a written sum is no number that a document must have."""
    text = "The harbour fund gave 20 pounds for oil. The church fund gave 22 pounds for oil."
    answer = "The funds gave 20 + 22 = 42 pounds for oil."
    assert only(answer, "How many pounds did the funds give for oil?", text).reason != "number"


def test_vectors_carry_what_is_said_in_other_words() -> None:
    """A sentence that shares too few words is carried by one whose vector is alike, if its numbers are there."""
    index = EvidenceIndex(evidence(LIGHT, BRIDGE))
    vectors = [[1.0, 0.0] if "automated" in each.quote else [0.0, 1.0] for each in index.sentences]
    for answer, state in (
        ("In 1961 somebody made the beacon work by itself.", "carried"),
        ("In 1975 somebody made the beacon work by itself.", "not_carried"),
    ):
        assert attribute(answer, QUESTION, index).sentences[0].state == "not_carried"
        given_vectors = SentenceVectors([[0.9, 0.1] for _ in answer_sentences(answer)], vectors)
        assert attribute(answer, QUESTION, index, vectors=given_vectors).sentences[0].state == state


ROWS = "\n".join(f"| Kelby-{n} | {n % 7} | {200 + n} |" for n in range(100, 160))
HEAD = "All sums are in thousands of crowns.\n| village | wells | deficit |"


@pytest.mark.parametrize(
    ("head", "text"),
    [(f"Villages of Vell\n{HEAD}", ROWS), ("", f"{HEAD}\n|---|---|---|\n{ROWS}".replace("\n", "\n\n", 1))],
)
@pytest.mark.parametrize(
    "answer",
    [
        "Kelby-149: 2 wells, deficit 349.",
        "The deficit of Kelby-149 is 349.",
        "Kelby-149: a deficit of 349 thousand crowns.",
    ],
)
def test_a_row_carries_what_the_names_of_its_columns_say(head: str, text: str, answer: str) -> None:
    """Also where the part that was remembered has the row alone, and the caption and the names as its head."""
    shown = Evidence((Passage(1, "a.md", SHA, 900, text, head=head),))
    [found] = attribute(answer, "What about Kelby-149?", shown).sentences
    assert [each.quote for each in found.carriers] == ["| Kelby-149 | 2 | 349 |"]
    assert checks.judge(Draft(answer, Ground("What about Kelby-149?", shown))).verdict.faults == ()
