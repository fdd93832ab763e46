"""The choice of a tool by rule: what wants none gets none, in four languages, and a ranking that no order changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.tools.catalogue import ALL, LAMP, NEWS, ORDERS, TODAY, TRAINS, WEATHER, WIKI

from batos.agency.toolbox import Tool
from batos.minds.tools.choice import asks_for_look, carries, choose, shown_tools


@pytest.mark.parametrize(
    "question",
    [
        "Write a poem about the weather.",
        "Good morning! How are you?",
        "What is 17 times 4?",
        "Translate the news into French.",
        "Schreib ein Gedicht über Züge.",
        "Was hältst du vom Wetter?",
        "Raconte-moi une blague sur les trains.",
        "Que penses-tu de la pluie ?",
        "Cuéntame un chiste.",
        "¿Crees que debo tomar el tren?",
        "Book me a train from Kiel to Ulm.",
        "",
    ],
)
def test_what_wants_no_tool_gets_none(question: str) -> None:
    """A text, an opinion, a greeting, a sum, and an order that no tool carries out."""
    assert choose(question, ALL, TODAY).candidates == ()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Will it rain in Bath tomorrow?", WEATHER.name),
        ("Wie wird das Wetter am Freitag in Jena?", WEATHER.name),
        ("Quel temps fera-t-il demain à Brest ?", WEATHER.name),
        ("¿Va a llover mañana en Gijón?", WEATHER.name),
        ("When does a train leave from Kiel to Ulm?", TRAINS.name),
        ("Wo steht die Bestellung 4711?", ORDERS.name),
        ("Look up Ada Lovelace in Wikipedia.", WIKI.name),
        ("Was gibt es Neues in den Nachrichten über den Streik?", NEWS.name),
        ("Allume la lampe du salon.", LAMP.name),
        ("Read https://example.org/a and sum it up.", "web.fetch_"),
    ],
)
def test_a_tool_that_leads_is_taken_unasked(question: str, name: str) -> None:
    """Tools that are described in English are found in four languages."""
    found = choose(question, ALL, TODAY)
    assert found.is_clear, found
    assert found.candidates[0].name == name


def test_the_tools_of_one_look_up_do_not_keep_its_search_from_leading() -> None:
    """A folder that is named is searched at once: that its files can be read and listed too is no choice."""
    words = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    place = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    folder = [
        Tool(f"notes.{name}", f"{does} files of notes, a folder of the user", parameters, "look_up", local=True)
        for name, does, parameters in (("search_", "Search", words), ("read_", "Read", place), ("list_", "List", {}))
    ]
    found = choose("Look up in my notes who serviced the boiler.", folder, TODAY)
    assert (found.candidates[0].name, found.is_clear) == ("notes.search_", True)


def test_an_order_is_needed_to_change_something() -> None:
    """A question never switches a lamp; a polite order does."""
    assert LAMP not in choose("Is the lamp in the hall on?", ALL, TODAY).candidates
    assert choose("Could you switch the lamp in the hall on?", ALL, TODAY).candidates[0] is LAMP


def test_an_argument_that_is_not_there_leaves_the_tool_out() -> None:
    """Without a number no order is looked for, without an address nothing is fetched."""
    assert ORDERS not in choose("What is the status of my order?", ALL, TODAY).candidates
    assert all(each.name != "web.fetch_" for each in choose("Fetch the page of the club.", ALL, TODAY).candidates)


def test_what_is_known_needs_no_tool_unless_it_is_asked_for() -> None:
    """Evidence that carries a question spares the call, but not a look that somebody asks for."""
    assert choose("Who built the tower?", ALL, TODAY, "carried").candidates == ()
    assert choose("Look up who built the tower.", ALL, TODAY, "carried").candidates


def test_a_question_of_fact_is_looked_up_where_nothing_carries_it() -> None:
    """Who looks things up begins with the first look-up; anyone else asks a model first."""
    found = choose("Who built the tower of Skagen?", ALL, TODAY)
    assert not found.is_clear
    assert {each.name for each in found.candidates} == {NEWS.name, WIKI.name}
    assert choose("Who built the tower of Skagen?", ALL, TODAY, "look_up").is_clear


@given(st.permutations(ALL), st.sampled_from(["Will it rain in Bath?", "Who built the tower?", "Look up trains."]))
def test_the_order_of_tools_changes_nothing(tools: list, question: str) -> None:  # type: ignore[type-arg]
    """The choice is one of the tools and the question alone."""
    assert choose(question, tools, TODAY) == choose(question, ALL, TODAY)


@given(st.text(max_size=200), st.integers(1, 8))
def test_any_text_gets_a_choice_of_so_many(question: str, most: int) -> None:
    """No text breaks the rules, and no more tools are shown than may be."""
    assert len(choose(question, ALL, TODAY, most=most).candidates) <= most


def test_small_models_are_shown_few_tools() -> None:
    """Two below a billion parameters, three below seven, five at eight, eight above; three where it is not known."""
    assert [shown_tools(size) for size in (0.5, 1.5, 3.2, 8.0, 14.0, 0.0)] == [2, 3, 3, 5, 8, 3]


def test_a_text_carries_a_question_by_its_words() -> None:
    """Most of what a question names stands in one text, not in several together."""
    assert carries("Who built the tower of Skagen?", ["Jens Holm built the tower of Skagen in 1887."])
    assert not carries("Who built the tower of Skagen?", ["He built it.", "The tower.", "Skagen is far."])


def test_a_look_is_asked_for_by_words_or_an_address() -> None:
    """`Look up`, `latest` and an address ask for it; a plain question does not."""
    assert asks_for_look("What is the latest version?")
    assert asks_for_look("Was steht auf https://example.org?")
    assert not asks_for_look("Who trims the wick?")
