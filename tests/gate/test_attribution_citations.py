"""Citations that are computed: verbatim by construction, and what is open follows from them."""

from __future__ import annotations

import pytest
from tests.minds.scripted import DOCUMENT, QUESTION, TRIMS, WINDS

from batos.gate import attribution
from batos.gate.attribution import attribute
from batos.gate.quotations import Quotation
from batos.memory.evidence import Evidence, Passage

#: A passage that does not begin where its file does.
LAMP = Evidence((Passage(3, "lamp.txt", "a" * 64, 10, DOCUMENT),))
FILE = " " * 10 + DOCUMENT


def test_a_citation_has_the_files_own_words_at_its_place() -> None:
    """The sentence that carries is cited once, for the sentence of the answer that it carries best."""
    found = attribution.citations_of(attribute(f"{WINDS}. Because {TRIMS}.", QUESTION, LAMP))
    (cited,) = attribution.in_files(found, LAMP)
    start, end = cited["span"]
    assert FILE[start:end] == cited["quote"]
    assert (cited["document"], cited["name"], cited["sha256"]) == (3, "lamp.txt", "a" * 64)
    assert cited["sentence"] == f"{WINDS}."
    assert attribution.in_files(found, Evidence()) == []


def test_a_clause_that_a_document_carries_is_cited_and_makes_the_answer_known() -> None:
    """The rest of its sentence is a fault all the same; the score tells that only a part is carried."""
    found = attribute(f"{WINDS}, while whales sing of krill below the northern ice.", QUESTION, LAMP)
    (cited,) = attribution.citations_of(found)
    assert found.sentences[0].state == "not_carried"
    assert cited.quote.startswith(WINDS)
    assert cited.score < 1
    assert attribution.is_known(found, LAMP)


def test_words_that_a_method_quotes_are_located() -> None:
    """They are cited as the file has them, and not at all where no document has them."""
    found = attribution.locate_citation(Quotation(3, f"“{WINDS}”"), LAMP)
    assert found is not None
    assert FILE[found.start : found.end] == found.quote == WINDS
    assert attribution.locate_citation(Quotation(3, "The moon"), LAMP) is None
    assert attribution.locate_citation(Quotation(9, WINDS), LAMP) is None


@pytest.mark.parametrize(
    ("answer", "nothing", "known"),
    [
        (f"{WINDS}.", False, True),
        (f"{WINDS}. Whales sing.", False, True),
        ("Whales sing.", False, False),
        ("The documents do not say it.", True, False),
        (f"The documents do not say it. {WINDS}.", False, True),
        ("Hello!", False, True),
    ],
)
def test_what_is_open_follows(answer: str, nothing: bool, known: bool) -> None:
    """An answer that only says that nothing was found finds nothing; one that no document carries is not known."""
    found = attribute(answer, QUESTION, LAMP)
    assert attribution.finds_nothing(found) is nothing
    assert attribution.is_known(found, LAMP) is known


def test_without_documents_an_answer_is_known() -> None:
    """There is nothing that could carry it."""
    assert attribution.is_known(attribute("Whales sing.", QUESTION, Evidence()), Evidence())


@pytest.mark.parametrize(
    ("answer", "gist"),
    [
        ("86 steps. And more.", "86 steps."),
        ("Sure! The answer is: 86 steps. And more.", "86 steps."),
        ("", ""),
    ],
)
def test_the_gist_is_the_first_statement(answer: str, gist: str) -> None:
    """What only announces it is left out."""
    assert attribution.gist_of(answer, attribute(answer, "How many steps?", Evidence())) == gist


def test_each_sentence_is_listed_with_its_state() -> None:
    """Its place in the answer, and the reason where nothing carries it."""
    answer = f"{WINDS}. Whales sing. Hello!"
    listed = attribution.list_sentences(attribute(answer, QUESTION, LAMP))
    assert [each["state"] for each in listed] == ["carried", "not_carried", "not_checkable"]
    assert [each.get("reason") for each in listed] == [None, "words", "greeting"]
    assert [answer[slice(*each["span"])] for each in listed] == [f"{WINDS}.", "Whales sing.", "Hello!"]
