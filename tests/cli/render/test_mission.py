"""What is said of missions: route, cost, states, sources, the gate, where the models lay."""

from __future__ import annotations

from typing import Any

from tests.cli.render.mission_documents import BRIEF, COST, ended, mission, placed, printer

from batos.cli.render.mission import (
    cost_text,
    notes_text,
    partial_text,
    placements,
    route_text,
    state_text,
    states_text,
)
from batos.cli.render.mission_record import mission_text
from batos.protocol.mission_documents import RouteDocument
from batos.verbs.mission_verbs import ended_text


def test_all_that_is_known_of_an_answer() -> None:
    """Voices, sources, the gate, route, cost, states and the commit, each a line."""
    told, said = printer(verbose=True)
    told.print_answer(mission())
    assert said.getvalue().startswith("It cost 3.2 million crowns [1].\n")
    for line in (
        "facet    tamland, asked: What was paid? (answered)",
        "facet    guide, asked: By whom? (had no answer)",
        "facet    rogue, asked: Why? (failed: it was cut)",
        'source   [1] report.txt: "It cost 3.2 million crowns."',
        "gate     passed (2 checks)",
        "route    BRICK at effort cycle, confidence 0.50: a figure is asked for",
        "spent    5 calls, 900 prompt and 120 answer tokens, 2.2 s in Ollama",
        "states   IDLE > SYNTHESIZING > COMPLETE",
        "mission  m-1, commit tid:0x1",
    ):
        assert f"\n{line}\n" in said.getvalue()


def test_everybody_who_thinks_is_told() -> None:
    """One persona, two voices below a council, or all four; the leader first."""
    route: RouteDocument = {"personas": ["BABS"], "effort": "cycle", "confidence": 0.4, "reason": "why not"}
    assert route_text(route) == "BABS at effort cycle, confidence 0.40: why not"
    two: RouteDocument = {**route, "personas": ["BABS", "ALFRED"]}
    assert route_text(two) == "BABS, ALFRED at effort cycle, confidence 0.40: why not"
    assert route_text({**two, "effort": "council"}).startswith("BABS, ALFRED at effort council")
    message = notes_text(mission(route=route, states=[]), voices=False)
    assert "states" not in message


def test_what_was_left_out_and_where_to_go_on() -> None:
    """Passages and turns without room are counted, and a conversation says how it goes on."""
    provenance = {**mission()["provenance"], "omitted": {"passages": 1, "turns": 2}}
    shown = notes_text(mission(provenance=provenance, brief={**BRIEF, "conversation": "c-1"}), voices=True)
    assert "left out 1 passage and 2 turns, for lack of room" in shown
    provenance["omitted"] = {"passages": 2, "turns": 0}
    assert "left out 2 passages, for lack of room" in notes_text(mission(provenance=provenance), voices=False)
    assert "talk     c-1 (go on with --conversation last)" in shown
    assert "\n         3.2 million\n" in shown


def test_an_answer_that_the_gate_faults() -> None:
    """One line in plain words under it, never the order that a model is given; the oldest missions have that alone."""
    found = [{"check": "numbers", "what": "Correct it.", "told": f"not in your documents: {each}"} for each in "1234"]
    gate = {"ok": False, "state": "faulty", "revised": True, "checked": ["numbers"], "faults": found}
    faulty = mission(provenance={**mission()["provenance"], "gate": gate})
    notes = notes_text(faulty, voices=False)
    assert "gate     doubts after one revision:\n         not in your documents: 1\n" in notes
    for quiet in (False, True):
        told, said = printer(quiet=quiet)
        told.print_answer(faulty)
        line = "; ".join(f"not in your documents: {each}" for each in "123")
        assert f"\n{line}; and 1 more\n" in said.getvalue()
        assert "Correct it." not in said.getvalue()
    old = {**gate, "faults": [{"check": "cited", "what": "Cite it."}]}
    told, said = printer(quiet=True)
    told.print_answer(mission(provenance={**mission()["provenance"], "gate": old}))
    assert said.getvalue().endswith("\nCite it.\n")


def test_an_answer_of_which_nothing_could_be_checked() -> None:
    """Nothing is said to have passed, and no number of checks is told."""
    gate = {"ok": True, "state": "unchecked", "revised": False, "checked": ["length"], "faults": []}
    told = notes_text(mission(provenance={**mission()["provenance"], "gate": gate}), voices=False)
    assert "\ngate     nothing of this could be checked\n" in f"\n{told}"
    assert "passed" not in told


def test_how_one_answer_of_several_came_to_stand() -> None:
    """A vote says how many were asked, a selection among how many; a weave joins all, and the gate that had nothing to
    check says nothing."""
    winner = {"number": 1, "slot": "guide_facet_", "name": "The Guide"}
    vote = {"mode": "vote", "votes": [[1, 2]], "asked": 2, "of": 3, "candidates": 1, "winner": winner}
    select = {"mode": "select", "candidates": 3, "decided": "agreed", "winner": winner}
    gate = {"ok": True, "revised": False, "checked": [], "faults": []}
    for combined, line in (
        (vote, "\ncombined by vote, 2 of 3 parts asked: the answer of The Guide was chosen\n"),
        (select, "\ncombined by selection among 3 answers: the answer of The Guide was chosen\n"),
        ({"mode": "weave"}, ""),
    ):
        provenance = {**mission()["provenance"], "combined": combined, "gate": gate}
        shown = notes_text(mission(provenance=provenance), voices=False)
        assert line in shown
        assert ("combined" in shown) == bool(line)
        assert "gate " not in shown


def test_models_that_are_not_on_the_card() -> None:
    """A line for each, of an answered mission and of one that failed; of one that lies on the card nothing is said."""
    places = [placed("card", 4 << 30), placed("processor", 0), placed("spilled", 1 << 30)]
    shown = notes_text(mission(provenance={**mission()["provenance"], "placements": places}), voices=False)
    spilled = "memory   batos-robin:1 does not fit the card: 3.0 GiB of its 4.0 GiB run on the CPU\n"
    assert spilled in shown
    assert "\nmemory   batos-robin:1 runs on the CPU, 4.0 GiB\n" in shown
    assert "is on the card" not in shown
    apart = notes_text(
        mission(provenance={**mission()["provenance"], "placements": [placed("spilled", 0)]}), voices=False
    )
    assert "\nmemory   batos-robin:1 runs on the CPU, 4.0 GiB\n" in apart  # an embedder beside a model on the card
    assert spilled in mission_text(ended("failed", provenance={"placements": places}), voices=False)


def test_models_of_one_base_are_in_memory_once() -> None:
    """A council's four models are one runner on a small card, not four: it is a line, with who shares it."""
    names = ("batos-brick:1", "batos-robin:1", "batos-babs:1")
    (line,) = placements({"placements": [placed("spilled", 1 << 30) | {"model": name} for name in names]})
    assert line.startswith("memory   batos-brick:1 does not fit the card")
    assert line.endswith("; batos-robin:1, batos-babs:1 share its runner")


def test_states_of_what_was_cancelled() -> None:
    """Who stops a mission did not make it fail: its last state says so; how it stands is said in words."""
    states: Any = [{"state": each, "at": "2026-01-01T00:00:00Z"} for each in ("IDLE", "FAILED")]
    assert states_text({"status": "cancelled", "states": states}) == "IDLE > CANCELLED"
    assert states_text({"status": "failed", "states": states}) == "IDLE > FAILED"
    assert [ended_text(each) for each in ("done", "waiting")] == ["is done", "is waiting"]


def test_nothing_spent() -> None:
    """A mission that never began has no cost to tell."""
    assert cost_text({"id": "m-1"}) == "nothing was spent"
    none: Any = dict.fromkeys(COST, 0)
    assert cost_text({"cost": none}) == "nothing was spent"
    assert cost_text({"cost": none | {"calls": 1, "loads": 1}}) == "1 call, 1 load"
    assert cost_text({"cost": none | {"from_journal": 1}}) == "1 answer from the journal"


def test_states_and_parts_of_minds_within_a_mind() -> None:
    """A council's personas stand further to the right than the council, their facets further still."""
    assert (
        state_text({"state": "DELEGATING"}) == state_text({"state": "DELEGATING", "path": "council"}) == "  DELEGATING"
    )
    assert state_text({"state": "IDLE", "path": "council/brick"}) == "    BRICK IDLE"
    facet = {"path": "brick/delegating/guide#0", "persona": "BRICK", "facet": "guide_facet_", "known": True}
    assert partial_text(facet) == "    guide answered"
    assert partial_text({**facet, "path": f"council/{facet['path']}", "known": False}) == "      guide has no answer"
    assert partial_text({"path": "council/brick", "persona": "BRICK", "known": True}) == "    BRICK answered"
