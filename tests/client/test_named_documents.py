"""Results by name and type, over the documents that they are."""

from __future__ import annotations

import json
from dataclasses import asdict

from batos.client.named_documents import CitedSource, Mission, MissionCost, MissionLine, MissionRoute, Token
from batos.inference import cost

DOCUMENT = {
    "id": "m-1",
    "status": "done",
    "brief": {"text": "why?", "conversation": "c-1"},
    "answer": "Because.",
    "cost": {"calls": 2, "seconds": 1.5, "of_a_later_version": 7},
    "route": {"personas": ["BRICK"], "effort": "cycle", "confidence": 0.9, "reason": "asked", "scores": {}},
    "provenance": {
        "citations": [
            {
                "document": 1,
                "name": "a.txt",
                "quote": "Be.",
                "span": [3, 6],
                "sentence": "Because.",
                "score": 1.0,
                "sha256": "0" * 64,
            }
        ]
    },
}


def test_a_mission_is_its_document_with_names() -> None:
    """What most programs read has a name and a type; everything else is there by its key, and it is plain JSON."""
    mission = Mission(DOCUMENT)
    assert (mission.id, mission.done, mission.text, mission.conversation) == ("m-1", True, "why?", "c-1")
    assert mission.answer == "Because."
    assert mission.cost == MissionCost(calls=2, seconds=1.5)
    assert mission.route == MissionRoute(("BRICK",), "cycle", 0.9, "asked")
    assert mission.sources == (CitedSource("a.txt", "Be.", (3, 6), "Because.", 1.0, "0" * 64),)
    assert mission["provenance"]["citations"][0]["document"] == 1
    assert json.loads(json.dumps(mission)) == DOCUMENT


def test_what_is_not_there_yet_is_none() -> None:
    """A mission that has just been accepted has no answer, route, reason or source, and has cost nothing."""
    mission = Mission({"id": "m-1", "status": "queued", "brief": {"text": "why?"}})
    assert (mission.answer, mission.route, mission.reason, mission.conversation) == (None, None, None, None)
    assert (mission.sources, mission.cost, mission.done) == ((), MissionCost(), False)


def test_a_line_has_names() -> None:
    """A line of a list has its id, status, text and user."""
    line = MissionLine({"id": "m-1", "status": "failed", "text": "why?", "user": "ada"})
    assert (line.id, line.status, line.text, line.user) == ("m-1", "failed", "why?", "ada")


def test_a_token_is_a_text() -> None:
    """It prints as what it says; a retraction is empty."""
    assert (Token("wor") + Token("ds"), Token("a").retracted) == ("words", False)
    assert (Token(retracted=True), Token(retracted=True).retracted) == ("", True)


def test_what_a_mission_spent_has_every_name_that_the_kernel_counts() -> None:
    """A client loads nothing of the kernel, so its cost is written again: by the same names, and learning beside."""
    shown = asdict(MissionCost())
    assert shown.pop("learning") == {"calls": 0, "tokens": 0}
    assert shown == cost.Cost().as_dict()
