"""Documents of an answered mission: whose word each is, and which of them is evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.image.records import Brief
from batos.memory.exchanges import (
    IndexedDocument,
    documents_of,
    is_carried,
    is_from_memories,
    is_memorable,
    pack,
    unpack,
)
from batos.memory.records.memory_records import NewDocument
from batos.protocol.brief import MissionBrief

NOW = datetime(2026, 11, 26, tzinfo=UTC)
TEXT = "My cat is called Miso. What may she eat?"


def made(states: list[str], text: str = TEXT, answer: object = "Fish.", **value: Any) -> list[NewDocument]:
    """The documents of a mission whose answer's sentences have these states."""
    brief = Brief({"text": text, "user": "ann", **value}, "2026-11-25T10:00:00.000Z")
    slots = {
        "answer": answer,
        "lineage_trust": "external",
        "route": {"personas": ["BABS"]},
        "provenance": {"sentences": [{"state": each} for each in states], "gate": {"ok": True}},
    }
    return list(documents_of("m-1", brief, slots, NOW))


@given(st.lists(st.builds(IndexedDocument, st.text(), st.text(), st.just("model"), st.booleans()), max_size=4))
def test_packed_documents_are_unpacked_as_they_were(documents: list[IndexedDocument]) -> None:
    """Whatever characters they have."""
    assert unpack(pack(documents)) == documents


def test_a_statement_is_the_word_of_its_person_and_an_answer_has_the_class_of_its_lineage() -> None:
    """Both tell their mission and when they were said."""
    said, answered = made(["carried"], conversation="c-1")
    assert (said.kind, said.trust, said.speaker, said.source) == ("turn", "user", "ann", "m-1/said")
    assert [each.text for each in said.chunks] == ["My cat is called Miso."]
    assert (answered.kind, answered.trust, answered.persona, answered.source) == ("mission", "external", "BABS", "m-1")
    assert (answered.title, [each.text for each in answered.chunks]) == (TEXT, ["Fish."])
    for each in (said, answered):
        assert (each.mission, each.conversation, each.said_at) == ("m-1", "c-1", "2026-11-25T10:00:00.000Z")


@pytest.mark.parametrize(
    ("states", "is_evidence"),
    [
        (["carried"], True),
        (["carried", "not_checkable"], True),
        (["carried", "not_carried"], False),
        (["not_checkable"], False),
        ([], False),
    ],
)
def test_an_answer_is_evidence_only_if_documents_carry_it(states: list[str], is_evidence: bool) -> None:
    """A model never takes its own word for a fact."""
    assert made(states)[-1].is_evidence == is_evidence
    assert not is_carried({"sentences": [{"state": "carried"}], "gate": {"ok": False}})


@pytest.mark.parametrize(("memories", "is_evidence"), [((), True), ((1,), True), ((1, 2), False)])
def test_an_answer_from_memories_alone_is_no_evidence_beside_them(memories: tuple[int, ...], is_evidence: bool) -> None:
    """A wrong reading of a note must not stand in the place of the note."""
    recalled = [{"document": each, **({"memory": f"d-{each}"} if each in memories else {})} for each in (1, 2)]
    cited = [{"document": each} for each in (1, 2)]
    found = {"sentences": [{"state": "carried"}], "gate": {"ok": True}, "recalled": recalled, "citations": cited}
    assert is_carried(found)
    assert is_from_memories(found) is not is_evidence


def test_what_says_nothing_makes_no_document() -> None:
    """A plain question has no statement, and an answer that is no text is not kept."""
    assert [each.kind for each in made([], text="What may cats eat?")] == ["mission"]
    assert made([], text="What may cats eat?", answer=7) == made([], text="Why?", answer=" ") == []


def test_a_mission_without_memory_and_a_message_are_not_remembered() -> None:
    """A scope that is named is the memories' too."""
    brief = {"text": "Why?", "user": "ann"}
    assert is_memorable(MissionBrief.model_validate(brief))
    assert not is_memorable(MissionBrief.model_validate({**brief, "policy": {"memory": "none"}}))
    message = {"receiver": "traits_obj", "selector": "count_"}
    assert not is_memorable(MissionBrief.model_validate({**brief, "message": message}))
    assert made([], policy={"memory": "work"})[0].scope == "work"
    assert made([])[0].scope == "default"
