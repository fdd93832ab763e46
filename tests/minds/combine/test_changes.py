"""What each call changed: shares computed from texts, and one entry for each call of every kind of mission."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, GOOD, QUESTION, TRIMS, WINDS, ask, candidate, kind, submit

from batos.gate.evidence_index import Citation
from batos.inference.ollama.bridge import ChatRequest
from batos.minds.combine import changes
from batos.protocol.errors import StreamCut

RISKS = f"{QUESTION} And what could go wrong?"


def test_a_parts_share_is_of_the_words_that_it_brings() -> None:
    """Small words and the question's own are nobody's."""
    part = "The keeper winds the clockwork and trims the wick."
    assert changes.share(part, "He winds the clockwork.", QUESTION) == (2, 4)
    assert changes.share(part, part, QUESTION) == (4, 4)
    assert changes.share("", part, QUESTION) == (0, 0)


@given(part=st.text(max_size=80), answer=st.text(max_size=80), question=st.text(max_size=40))
def test_a_share_is_never_more_than_the_whole(part: str, answer: str, question: str) -> None:
    """Whatever is said."""
    there, brought = changes.share(part, answer, question)
    assert 0 <= there <= brought


@given(before=st.text(max_size=80), after=st.text(max_size=80))
def test_changed_words_are_a_share(before: str, after: str) -> None:
    """Nothing changed is 0, nothing left is 1, and it is the same both ways."""
    assert 0 <= changes.changed_words(before, after) <= 1
    assert changes.changed_words(before, after) == changes.changed_words(after, before)
    assert changes.changed_words(before, before) == 0


def test_words_that_come_twice_count_twice() -> None:
    """Of four words one is another."""
    assert changes.changed_words("so it goes so", "so it goes on") == 0.25
    assert changes.changed_words("a", "b") == 1


def test_a_citation_is_kept_whole_or_in_part() -> None:
    """The same document, one quotation within the other, however it is typed."""
    final = [cited(1, f"{WINDS}, and {TRIMS}")]
    assert changes.count_kept([cited(1, WINDS.upper()), cited(1, TRIMS)], final) == 2
    assert changes.count_kept([cited(2, WINDS), cited(1, "the keep"), cited(1, "")], final) == 0


def cited(document: int, quote: str) -> Citation:
    """A citation of these words."""
    return Citation(document, 0, len(quote), quote)


def told(shown: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Path, what was done, and whether it changed anything."""
    return [(each["path"], each["did"], each["changed"]) for each in shown["provenance"]["changes"]]


async def test_a_cycle_has_an_entry_for_each_of_its_calls(mind: Mind) -> None:
    """Decomposing, each facet, weaving, revising, the protocol: in the order of the calls."""
    mind.script.woven = BAD
    shown = await ask(mind.uvm, RISKS)
    assert told(shown) == [
        ("brick/decomposing#0", "decomposing", True),
        ("brick/delegating/tamland#0", "facet", True),
        ("brick/delegating/guide#0", "facet", True),
        ("brick/delegating/rogues_gallery#0", "facet", True),
        ("brick/synthesizing#0", "weaving", True),
        ("brick/revising#0", "revising", True),
        ("brick/protocol/rogues_gallery#0", "rogues_gallery_protocol_", True),
    ]
    assert len(told(shown)) == shown["cost"]["calls"]
    assert [entry.path for entry in mind.uvm.journal.read([shown["id"]])] == [path for path, _, _ in told(shown)]
    what = {each["path"]: each["what"] for each in shown["provenance"]["changes"]}
    assert what["brick/decomposing#0"] == "3 sub-queries, 3 of them other than the question"
    assert what["brick/delegating/guide#0"].endswith("and 1 of its 1 citations stand in the answer")
    assert what["brick/revising#0"] == "faults 1 -> 0 (carried), 75 % of the words changed"
    assert what["brick/protocol/rogues_gallery#0"].startswith("applied, faults 0 -> 0, ")


async def test_a_reflex_has_none(mind: Mind) -> None:
    """Its one call is the answer."""
    assert (await ask(mind.uvm, effort="reflex"))["provenance"]["changes"] == []


async def test_what_has_no_part_in_the_answer_changed_nothing(mind: Mind) -> None:
    """A facet that failed, one without an answer, one whose words are not used, a protocol that is dropped."""
    replies: Iterator[Any] = iter([StreamCut("cut"), "The documents do not say it."])

    def respond(request: ChatRequest) -> Any:
        if kind(request) == "part":
            mind.script.part = next(replies, "Whales sing.")
        return mind.script(request)

    mind.bridge.respond = respond
    mind.script.woven = GOOD
    mind.script.changed = "In 1887 it did."
    shown = await ask(mind.uvm, RISKS)
    what = {each["path"]: (each["changed"], each["what"]) for each in shown["provenance"]["changes"]}
    assert what["brick/delegating/tamland#0"] == (False, "The Literal Engine: failed, stream_cut")
    assert what["brick/delegating/guide#0"] == (False, "The Guide: had no answer")
    assert what["brick/delegating/rogues_gallery#0"][0] is False
    assert what["brick/protocol/rogues_gallery#0"][0] is False
    assert what["brick/protocol/rogues_gallery#0"][1].startswith("dropped: 0 faults would be ")


async def test_a_protocol_that_fails_changed_nothing(mind: Mind) -> None:
    """Its reason is told."""
    mind.script.changed = StreamCut("cut")
    last = (await ask(mind.uvm, RISKS))["provenance"]["changes"][-1]
    assert not last["changed"]
    assert last["what"] == "failed, stream_cut; the answer is unchanged"


def by_facet(mind: Mind, **answers: str) -> None:
    """Each facet of BRICK answers otherwise."""

    def respond(request: ChatRequest) -> Any:
        if kind(request) in ("part", "ballot"):
            said = request.messages[-1]["content"]
            answer = next(answer for name, answer in answers.items() if name in said)
            mind.script.part = answer
        return mind.script(request)

    mind.bridge.respond = respond


async def test_selecting_has_its_two_calls(mind: Mind) -> None:
    """No decomposing; of the facets only the winner's changed the answer; the second order changed nothing here."""
    by_facet(mind, Tamland=f"{WINDS}.", Hitchhiker=f"So {TRIMS}.", caped="The oil is carried.")
    mind.script.choose = lambda request: next(
        number for number in (1, 2, 3) if candidate(request, number).startswith("So the wick")
    )
    shown = await ask(mind.uvm, policy={"combine": "select"})
    assert told(shown) == [
        ("brick/delegating/tamland#0", "facet", False),
        ("brick/delegating/guide#0", "facet", True),
        ("brick/delegating/rogues_gallery#0", "facet", False),
        ("brick/selecting#0", "selecting", True),
        ("brick/selecting#1", "selecting", False),
    ]
    assert shown["answer"] == f"So {TRIMS}."
    assert shown["cost"]["calls"] == 5
    assert [each["what"] for each in shown["provenance"]["changes"][-2:]] == [
        "named The Guide, of 3",
        "named The Guide in another order; The Guide was chosen: both orders named it",
    ]
    assert {each["query"] for each in shown["voices"]} == {QUESTION}


async def test_what_was_chosen_is_not_paid_twice(mind: Mind) -> None:
    """The second order's call is cut: asked again with that mission as ancestor, only this call is made."""
    by_facet(mind, Tamland=f"{WINDS}.", Hitchhiker=f"So {TRIMS}.", caped="The oil is carried.")
    respond, choices = mind.bridge.respond, iter(range(1, 9))

    def cut_once(request: ChatRequest) -> Any:
        return StreamCut("cut") if kind(request) == "choice" and next(choices) == 2 else respond(request)

    mind.bridge.respond = cut_once
    first = await submit(mind.uvm, policy={"combine": "select"})
    with pytest.raises(StreamCut):
        await mind.uvm.missions.run(first)
    shown = await ask(mind.uvm, policy={"combine": "select"}, ancestor=first)
    assert shown["cost"]["calls"] == 1
    assert shown["cost"]["from_journal"] == 4
    assert len(shown["provenance"]["changes"]) == 5


async def test_a_vote_stops_when_it_is_decided(mind: Mind) -> None:
    """Two facets say the same: the third is not asked, and two calls are all that the mission cost."""
    by_facet(mind, Tamland="86 steps.", Hitchhiker="There are 86.", caped="It is never asked.")
    shown = await ask(mind.uvm, "How many steps from the yard is the oil carried?", policy={"combine": "vote"})
    assert shown["cost"]["calls"] == 2
    assert shown["answer"] == "86 steps."
    assert [voice["facet"] for voice in shown["voices"]] == ["tamland_facet_", "guide_facet_"]
    assert told(shown) == [
        ("brick/delegating/tamland#0", "facet", True),
        ("brick/delegating/guide#0", "facet", True),
        ("brick/voting#0", "voting", False),
    ]
    assert shown["provenance"]["changes"][-1]["what"] == "2 of 2 votes for The Literal Engine, stopped after 2 of 3"


async def test_what_is_counted_is_the_first_statement(mind: Mind) -> None:
    """Long answers that differ can agree in what they say first, which is recorded as their gist."""
    long = f"{WINDS}. First the wick, then the oil, then the clockwork, and whoever is awake."
    by_facet(mind, Tamland=long, Hitchhiker=f"Sure! {WINDS}.", caped="It is never asked.")
    shown = await ask(mind.uvm, policy={"combine": "vote"})
    assert [voice["gist"] for voice in shown["voices"]] == [f"{WINDS}."] * 2
    assert shown["provenance"]["combined"]["votes"] == [[1, 2]]


async def test_without_a_majority_the_vote_is_selected_from(mind: Mind) -> None:
    """Three answers, three groups: facets and two choices."""
    by_facet(mind, Tamland="86 steps.", Hitchhiker="4 hours.", caped="1,200 cans.")
    shown = await ask(mind.uvm, policy={"combine": "vote"})
    assert shown["cost"]["calls"] == 5
    assert shown["provenance"]["combined"]["mode"] == "vote"
    voting = next(each for each in shown["provenance"]["changes"] if each["did"] == "voting")
    assert voting["what"] == "no majority: 3 votes for 3 answers"


@pytest.mark.parametrize("combine", ["weave", "select", "vote"])
async def test_a_council_tells_each_call_of_each_mind(mind: Mind, combine: str) -> None:
    """The calls of a persona's own cycle, then the persona; and every call of the mission has its entry."""
    shown = await ask(mind.uvm, effort="council", policy={"combine": combine}, budget={"calls": 60})
    paths = [path for path, _, _ in told(shown)]
    minds = [path for path, did, _ in told(shown) if did == "mind"]
    assert len(minds) == len(shown["voices"])
    steps = {"council/voting#0", *minds}
    assert {path for path in paths if path not in steps} == {
        entry.path for entry in mind.uvm.journal.read([shown["id"]])
    }
    assert shown["cost"]["calls"] == len([path for path in paths if path not in steps])
    assert shown["voices"][0]["persona"] == "BRICK"
    assert all(len(voice["voices"]) == 3 for voice in shown["voices"])
