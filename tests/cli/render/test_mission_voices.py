"""The voices beside an answer: facets, personas with their facets beneath, and what each call changed."""

from __future__ import annotations

import io
from typing import Any

from tests.cli.render.mission_documents import mission

from batos.cli.render.mission import changes_lines, notes_text, voices_lines
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.render.mission_record import mission_text
from batos.minds.parts.protocols import CHANGING
from batos.terminal.console import Console


def facet(name: str, answer: str = "", **more: Any) -> Any:
    """A facet's voice."""
    return {"facet": f"{name}_facet_", "name": name, "query": "Why?", "answer": answer, "known": bool(answer), **more}


COUNCIL: Any = [
    {
        "persona": "BRICK",
        "name": "BRICK",
        "query": "What was paid?",
        "answer": "3.2 million.\nIt was much.",
        "known": True,
        "faults": [{"check": "numbers", "what": "Which?"}],
        "voices": [facet("guide", "3.2 million"), facet("tamland", failure={"message": "it was cut"})],
    },
    {"persona": "ROBIN", "name": "ROBIN", "query": "", "answer": "", "known": False, "faults": [], "voices": []},
]
CHANGES: Any = [
    {"path": "brick/decomposing#0", "did": "decomposing", "changed": True, "what": "3 sub-queries"},
    {"path": "brick/selecting#1", "did": "selecting", "changed": False, "what": "named the same"},
]


def test_a_council_shows_personas_with_their_facets_beneath() -> None:
    """Persona, what it was asked, whether it answered, its answer; then its facets, further in."""
    assert list(voices_lines(COUNCIL, whole=True)) == [
        "persona  BRICK, asked: What was paid? (answered; the gate found 1 fault)",
        "         3.2 million.\n         It was much.",
        "  facet    guide, asked: Why? (answered)",
        "           3.2 million",
        "  facet    tamland, asked: Why? (failed: it was cut)",
        "persona  ROBIN (had no answer)",
    ]


def test_an_answer_that_no_document_carries_is_told_as_an_answer() -> None:
    """It is there to be read: only that nothing carries it is told of it."""
    unknown = facet("guide", "3.2 million")
    unknown["known"] = False
    (line,) = voices_lines([unknown], whole=False)
    assert line == "facet    guide, asked: Why? (answered; no document carries it)"


def test_without_the_answers_one_line_a_voice() -> None:
    """Who was asked what, and what came of it."""
    assert len(list(voices_lines(COUNCIL, whole=False))) == 4


def test_what_each_call_changed_is_a_line_each() -> None:
    """Its path (which sample only where there are several), whether it changed anything, and what."""
    assert list(changes_lines({"changes": CHANGES})) == [
        "changed  brick/decomposing: 3 sub-queries",
        "same     brick/selecting#1: named the same",
    ]
    assert list(changes_lines({})) == []


def test_changes_stand_under_an_answer_only_with_voices() -> None:
    """An answer has them where the voices are asked for; a mission that is read back always, and once."""
    found = mission(provenance={**mission()["provenance"], "changes": CHANGES})
    line = "changed  brick/decomposing: 3 sub-queries"
    assert line in notes_text(found, voices=True)
    assert line not in notes_text(found, voices=False)
    assert mission_text(found, voices=True).count(line) == mission_text(found, voices=False).count(line) == 1


def test_a_protocol_is_told_as_one() -> None:
    """What was streamed is taken back for a key protocol: nobody is told of a fault that there is not."""
    said = io.StringIO()
    printer = MissionPrinter(
        Console(said, said, as_json=False, has_colour=False), quiet=False, streams=True, shows_voices=False
    )
    printer.on_event("mission.token", {"mission": "m-1", "path": "brick/synthesizing#0", "text": "So it is."})
    printer.on_event("mission.retracted", {"mission": "m-1", "path": "brick/protocol/lantern#0", "reason": CHANGING})
    assert "fault" not in said.getvalue()
    assert "key protocol" in said.getvalue()
