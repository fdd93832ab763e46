"""The screen under an answer: footnotes, what is missing, what waits for somebody, and the one line."""

from __future__ import annotations

from typing import Any

from tests.cli.render.mission_documents import COST, mission, placed

from batos.cli.render.mission_printer import footnotes, screen_lines, summary_line, unseen_lines


def provenance(**changes: Any) -> Any:
    """What an answer came of, with changes."""
    return {**mission()["provenance"], **changes}


def test_a_document_has_one_footnote() -> None:
    """With the sentences that were quoted, each once, no more than three, long ones shortened, on one line."""
    quotes = ["One.", "One.", "Two\nlines.", "x" * 300, "Four.", "Five."]
    cited = [{"document": 1, "quote": each} for each in quotes]
    (line,) = footnotes(provenance(citations=cited))
    assert line == f'[1] report.txt: "One."; "Two lines."; "{"x" * 237}..."; and 2 more'
    assert not list(footnotes(provenance(citations=[])))


def test_what_had_no_room() -> None:
    """Passages with how many were shown, turns and shortened parts; nothing where all had room."""
    assert not list(unseen_lines(provenance()))
    (line,) = unseen_lines(provenance(omitted={"passages": 1, "turns": 1, "parts": 2}))
    assert line == (
        "Not shown to the model, for lack of room: "
        "1 passage of the files (1 shown), 1 earlier turn, the end of 2 parts."
    )


def test_what_a_person_is_to_know_stands_under_the_answer() -> None:
    """What waits for an approval, a model that does not fit the card; what the gate doubts is a line of its own."""
    faulty = provenance(
        citations=[],
        gate={"ok": False, "revised": True, "checked": ["cited"], "faults": [{"check": "cited", "what": "Cite it."}]},
        generated=[{"outcome": "asked", "selector": "guide_facet_", "approval": "a-1"}, {"outcome": "failed"}],
        placements=[placed("spilled", 1 << 30), placed("card", 4 << 30)],
    )
    assert screen_lines(mission(provenance=faulty), voices=False) == [
        "guide_facet_ waits for your approval: batos approvals a-1",
        "memory   batos-robin:1 does not fit the card: 3.0 GiB of its 4.0 GiB run on the CPU",
    ]
    assert not screen_lines(mission(provenance=provenance(citations=[])), voices=False)


def test_however_many_methods_wait_they_are_one_line() -> None:
    """Three are counted, and the list that has them all is named."""
    asked = [{"outcome": "asked", "selector": f"{each}_facet_", "approval": f"a-{each}"} for each in "xyz"]
    assert screen_lines(mission(provenance=provenance(citations=[], generated=asked)), voices=False) == [
        "3 methods wait for your approval: batos approvals"
    ]


def test_voices_that_were_asked_for() -> None:
    """Each part with its answer stands above the footnotes."""
    lines = screen_lines(mission(), voices=True)
    assert lines[:2] == ["facet    tamland, asked: What was paid? (answered)", "         3.2 million"]
    assert lines[-1].startswith("[1] report.txt")


def test_the_one_line() -> None:
    """Who, effort, calls, what the journal gave, the time from the first state to the last, where the rest is."""
    states = [{"state": "IDLE", "at": f"2026-01-01T00:00:{second:02}Z"} for second in (0, 14)]
    assert summary_line(mission(states=states), "batos show last") == "BRICK, cycle · 5 calls · 14 s · batos show last"
    message = mission(
        route={"personas": [], "effort": None}, states=[], cost={**COST, "calls": 0, "from_journal": 1, "seconds": 0.25}
    )
    assert summary_line(message, "") == "0 calls · 1 answer from the journal · 0.2 s"
