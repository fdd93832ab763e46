"""How missions are told: done, failed, cancelled, left undone, faulty; to people and to programs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.errors import ApprovalNeeded, Refused
from batos.front.telling.console import Console, plain
from batos.front.telling.mission import Teller, cost_text, notes_text, partial_text, route_text, state_text, why
from batos.front.telling.shown import mission_text, prompts_text

COST = {
    "calls": 5,
    "embeds": 0,
    "prompt_tokens": 900,
    "answer_tokens": 120,
    "seconds": 2.25,
    "from_journal": 0,
    "wasted": 0,
}
STATES = [{"state": each, "at": "2026-01-01T00:00:00Z"} for each in ("IDLE", "SYNTHESIZING", "COMPLETE")]
BRIEF: dict[str, Any] = {
    "text": "What did it cost?",
    "user": "ada",
    "attachments": [{"name": "report.txt", "media_type": "text/plain", "sha256": "ab" * 32}],
}


def mission(**changes: Any) -> dict[str, Any]:
    """A mission that is done, as a report has it, with changes."""
    done: dict[str, Any] = {
        "id": "m-1",
        "status": "done",
        "brief": BRIEF,
        "accepted_at": "2026-01-01T00:00:00Z",
        "trust": {"brief": "user", "answer": "model", "lineage": "external"},
        "states": STATES,
        "answer": "It cost 3.2 million crowns [1].",
        "voices": [
            {"name": "tamland", "query": "What was paid?", "answer": "3.2 million", "known": True},
            {"name": "guide", "query": "By whom?", "answer": "", "known": False},
            {"name": "rogue", "query": "Why?", "answer": "", "known": False, "failure": {"message": "it was cut"}},
        ],
        "route": {"personas": ["BRICK"], "effort": "cycle", "confidence": 0.5, "reason": "a figure is asked for"},
        "cost": COST,
        "tid": "tid:0x1",
        "provenance": {
            "recalled": [{"document": 1, "name": "report.txt", "trust": "external", "sha256": "ab" * 32}],
            "citations": [{"document": 1, "quote": "It cost 3.2 million crowns."}],
            "omitted": {"passages": 0, "turns": 0},
            "gate": {"ok": True, "revised": False, "checked": ["length", "cited"], "faults": []},
            "models": {"batos-brick:0123456789ab": "cd" * 32},
            "read_at": "tid:0x0",
        },
    }
    return {**done, **changes}


def ended(status: str) -> dict[str, Any]:
    """A mission without an answer."""
    kept = ("id", "brief", "accepted_at", "states", "cost")
    return {**{name: mission()[name] for name in kept}, "status": status, "trust": {"brief": "user"}}


def teller(*, as_json: bool = False, quiet: bool = False, stream: bool = False) -> tuple[Teller, io.StringIO]:
    """A teller whose two streams are one."""
    said = io.StringIO()
    return Teller(Console(said, said, as_json, colour=False), quiet, stream, voices=False), said


def test_a_mission_that_is_done() -> None:
    """The answer, then voices, sources, the gate, route, cost, states and the commit."""
    told, said = teller()
    told.answer(mission())
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


def test_who_was_near_is_not_said_to_think() -> None:
    """Below a council the leader thinks alone: those whose scores were close are named as such."""
    route = {"personas": ["BABS", "ALFRED", "BRICK"], "effort": "cycle", "confidence": 0.4, "reason": "why not"}
    assert route_text(route) == "BABS at effort cycle, confidence 0.40: why not (near: ALFRED, BRICK)"
    assert route_text({**route, "effort": "council"}).startswith("BABS, ALFRED, BRICK at effort council")
    message = notes_text(mission(route=route, states=[]), voices=False)
    assert "states" not in message


def test_what_was_left_out_and_where_to_go_on() -> None:
    """Passages and turns without room are counted, and a conversation says how it goes on."""
    provenance = {**mission()["provenance"], "omitted": {"passages": 1, "turns": 2}}
    shown = notes_text(mission(provenance=provenance, brief={**BRIEF, "conversation": "c-1"}), voices=True)
    assert "left out 1 passage and 2 turns, for want of room" in shown
    provenance["omitted"] = {"passages": 2, "turns": 0}
    assert "left out 2 passages, for want of room" in notes_text(mission(provenance=provenance), voices=False)
    assert "talk     c-1 (go on with --conversation last)" in shown
    assert "\n         3.2 million\n" in shown


def test_an_answer_that_the_gate_faults() -> None:
    """It stands with its faults beside it; who wants the answer alone is told that there are some."""
    gate = {"ok": False, "revised": True, "checked": ["cited"], "faults": [{"check": "cited", "what": "Cite it."}]}
    faulty = mission(provenance={**mission()["provenance"], "gate": gate})
    assert "gate     still faulty after one revision:\n         Cite it." in notes_text(faulty, voices=False)
    told, said = teller(quiet=True)
    told.answer(faulty)
    assert said.getvalue().endswith("The gate still finds faults in this: batos show m-1\n")


def test_a_mission_that_failed() -> None:
    """Message, remedy, what was spent, and how what was paid is not paid again."""
    told, said = teller()
    told.failed(ended("failed"), Refused("the budget is spent", remedy="Ask less."))
    assert said.getvalue().splitlines() == [
        "error: the budget is spent",
        "       Ask less.",
        "m-1 is failed; 5 calls, 900 prompt and 120 answer tokens, 2.2 s in Ollama.",
        "Ask again with --ancestor m-1 and what was paid for is not paid twice.",
    ]


def test_a_mission_that_was_cancelled() -> None:
    """What it is and what it cost; where nothing was paid there is nothing to save."""
    told, said = teller()
    told.cancelled({**ended("cancelled"), "cost": {**COST, "calls": 0, "from_journal": 2}})
    assert said.getvalue() == (
        "m-1 is cancelled; 0 calls, 900 prompt and 120 answer tokens, 2.2 s in Ollama, 2 answers from the journal.\n"
    )
    told, said = teller()
    told.cancelled({**ended("cancelled"), "cost": {**COST, "calls": 1, "prompt_tokens": 0, "answer_tokens": 0}})
    assert "--ancestor" not in said.getvalue(), "a call that met nobody paid for nothing"


def test_a_mission_that_waits_for_the_daemon_says_so() -> None:
    """Its attempt ended in the state FAILED, and the mission did not: what it waits for is told."""
    told, said = teller()
    told.hear("mission.state", {"mission": "m-1", "state": "FAILED"})
    reason = {"code": "ollama_unreachable", "message": "nothing listens there", "remedy": "Start it.", "retry": True}
    told.hear("mission.status", {"mission": "m-1", "status": "waiting", "reason": reason})
    assert said.getvalue().splitlines() == ["  FAILED", "It waits, and is tried again: nothing listens there"]


def test_a_mission_that_waits_for_a_person_says_which() -> None:
    """Once, as the error of what is awaited, with the id and what to do; nothing is said to be tried again."""
    told, said = teller()
    reason = ApprovalNeeded("it waits for your approval: a-1", "a-1").as_dict()
    told.hear("mission.status", {"mission": "m-1", "status": "waiting", "reason": reason})
    assert said.getvalue() == ""
    assert told.ended({**ended("waiting"), "reason": reason}) == 7
    assert said.getvalue().count("it waits for your approval: a-1") == 1
    assert "batos approve ID" in said.getvalue()
    error = why({**ended("waiting"), "reason": reason})
    assert isinstance(error, ApprovalNeeded)
    assert error.approval == "a-1"


def test_what_stands_still_is_not_asked_again() -> None:
    """A paused mission goes on by `resume`, with all that it paid for: no other mission is needed for that."""
    told, said = teller()
    assert told.ended(ended("paused")) == 7
    assert "`batos resume m-1` lets it go on" in said.getvalue()
    assert "--ancestor" not in said.getvalue()


def test_how_one_answer_of_several_came_to_stand() -> None:
    """A vote says how many were asked, a selection among how many; a weave joins all, and the gate that had nothing to
    check says nothing."""
    winner = {"number": 1, "slot": "guide_facet_", "name": "The Guide"}
    vote = {"mode": "vote", "votes": [[1, 2]], "asked": 2, "of": 3, "candidates": 1, "winner": winner}
    select = {"mode": "select", "candidates": 3, "decided": "agreed", "winner": winner}
    gate = {"ok": True, "revised": False, "checked": [], "faults": []}
    for combined, line in (
        (vote, "\ncombined by vote, 2 of 3 parts asked: that of The Guide stands\n"),
        (select, "\ncombined by selection among 3 answers: that of The Guide stands\n"),
        ({"mode": "weave"}, ""),
    ):
        provenance = {**mission()["provenance"], "combined": combined, "gate": gate}
        shown = notes_text(mission(provenance=provenance), voices=False)
        assert line in shown
        assert ("combined" in shown) == bool(line)
        assert "gate " not in shown


def test_a_mission_read_back() -> None:
    """One that failed shows reason and remedy; one that nobody works on says so; a done one has it all."""
    reason = {"code": "refused", "message": "the budget is spent", "remedy": "Ask less.", "retry": False}
    failed = mission_text({**ended("failed"), "reason": reason}, voices=False)
    assert "reason   the budget is spent\nremedy   Ask less.\n" in failed
    assert "undone" not in failed
    for status, said in (
        ("queued", "stands   no server runs; `batos resume` or `batos serve` runs it"),
        ("running", "stands   the process that ran it has ended; `batos resume` goes on with it"),
    ):
        undone = mission_text(ended(status), voices=False)
        assert f"status   {status}" in undone
        assert said in undone
        assert "spent    5 calls" in undone
        assert "undone" not in mission_text(ended(status), voices=False, served=True)
    assert "states   none" in mission_text({**ended("queued"), "states": []}, voices=False)
    done = mission_text(mission(), voices=False)
    for line in (
        "file     report.txt (abababababab)",
        "asked    2026-01-01T00:00:00Z by ada",
        "model    batos-brick:0123456789ab (cdcdcdcdcdcd)",
        "trust    model, lineage external",
    ):
        assert line in done


def placed(where: str, vram: int) -> dict[str, Any]:
    """Where a model of 4 GiB lies."""
    return {"model": "batos-robin:1", "runner": "batos-brick:1", "where": where, "size": 4 << 30, "size_vram": vram}


def test_where_the_models_lay() -> None:
    """A line for each that was looked at, of an answered mission and of one that failed."""
    places = [placed("card", 4 << 30), placed("processor", 0), placed("spilled", 1 << 30)]
    shown = notes_text(mission(provenance={**mission()["provenance"], "placements": places}), voices=False)
    assert "\nmemory   batos-robin:1 is on the card, 4.0 GiB\n" in shown
    assert "\nmemory   batos-robin:1 runs on the CPU, 4.0 GiB\n" in shown
    spilled = "memory   batos-robin:1 does not fit the card: 3.0 GiB of its 4.0 GiB run on the CPU\n"
    assert spilled in shown
    assert spilled in mission_text({**ended("failed"), "provenance": {"placements": places}}, voices=False)


def test_models_of_one_base_are_in_memory_once() -> None:
    """A council's four models are one runner on a small card, not four: it is a line, with who shares it."""
    places = [{**placed("card", 4 << 30), "model": name} for name in ("batos-brick:1", "batos-robin:1", "batos-babs:1")]
    shown = notes_text(mission(provenance={**mission()["provenance"], "placements": places}), voices=False)
    assert shown.count("4.0 GiB") == 1
    assert "memory   batos-brick:1 is on the card, 4.0 GiB; batos-robin:1, batos-babs:1 share its runner\n" in shown


@pytest.mark.parametrize("quiet", [False, True])
def test_a_spill_is_an_alarm(*, quiet: bool) -> None:
    """It is told to whoever wants the answer alone, too, once a runner; a sample is not."""
    told, said = teller(quiet=quiet)
    told.hear("vram.sample", placed("card", 4 << 30))
    assert said.getvalue() == ""
    for _ in range(2):
        told.hear("vram.spill", placed("spilled", 1 << 30))
    assert said.getvalue().count("warning: batos-robin:1 does not fit the card") == 1
    assert "batos budget" in said.getvalue()


def test_nothing_spent() -> None:
    """A mission that never began has no cost to tell."""
    assert cost_text({"id": "m-1"}) == "nothing was spent"


def test_prompts() -> None:
    """Each call with its path, its messages and the answer, also one that has none yet."""
    call = {"path": "brick/weave#0", "state": "done", "model": "m", "tokens": {}, "response": {"text": "Yes."}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}]
    shown = prompts_text([{**call, "messages": messages}, {**call, "messages": [], "response": None}])
    assert "--- system\nBe brief.\n--- user\nIs it?\n--- answer\nYes." in shown
    assert shown.endswith("--- answer\nNone")


LIFE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mission.accepted", {"mission": "m-1"}),
    ("mission.routed", {"mission": "m-1", **mission()["route"]}),
    ("mission.state", {"mission": "m-1", "state": "SYNTHESIZING"}),
    ("mission.partial", {"mission": "m-1", "path": "p", "facet": "tamland_facet_", "known": False}),
    ("mission.token", {"mission": "m-1", "path": "p", "text": "It cost "}),
    ("mission.token", {"mission": "m-1", "path": "p", "text": "nothing."}),
    ("mission.retracted", {"mission": "m-1", "path": "p"}),
    ("mission.token", {"mission": "m-1", "path": "p", "text": "It cost 3.2 million crowns [1]."}),
)


def test_people_follow_it() -> None:
    """Who, how and why, each state, each facet; tokens as they come; what is retracted is said to be."""
    told, said = teller(stream=True)
    for event, keys in LIFE:
        told.hear(event, keys)
    told.answer(mission())
    assert said.getvalue().splitlines()[:10] == [
        "m-1 accepted",
        "BRICK at effort cycle, confidence 0.50: a figure is asked for",
        "  SYNTHESIZING",
        "    tamland has no answer",
        "",
        "It cost nothing.",
        "The gate found a fault in this; it is being revised.",
        "",
        "It cost 3.2 million crowns [1].",
        "",
    ]
    # What was streamed is not said again.
    assert said.getvalue().count("It cost 3.2 million crowns [1].") == 1


def test_what_broke_off_is_told_again() -> None:
    """A server that was lost and an attempt that is made again take back what was streamed, under no path."""
    told, said = teller(stream=True)
    told.hear("mission.token", {"mission": "m-1", "path": "p", "text": "It cost "})
    told.hear("mission.retracted", {"mission": "m-1"})
    told.hear("connection.lost", {"endpoint": "tcp://127.0.0.1:7717"})
    told.hear("connection.restored", {"endpoint": "tcp://127.0.0.1:7717"})
    told.hear("mission.token", {"mission": "m-1", "path": "p", "text": "It cost 3.2 million crowns [1]."})
    told.answer(mission())
    assert said.getvalue().splitlines()[:6] == [
        "",
        "It cost ",
        "This broke off; the answer is told again from its beginning.",
        "The server is gone; the mission is in the image, and this waits for it to come back.",
        "The server is back.",
        "",
    ]
    assert said.getvalue().count("It cost 3.2 million crowns [1].") == 1


def test_what_was_not_streamed_did_not_break_off() -> None:
    """Who is shown no tokens is told nothing of an attempt that is made again."""
    told, said = teller(stream=False)
    told.hear("mission.token", {"mission": "m-1", "path": "p", "text": "It cost "})
    told.hear("mission.retracted", {"mission": "m-1"})
    assert said.getvalue() == ""


def test_what_is_being_learnt_is_told() -> None:
    """Who waits for a mission that waits for a method sees which; programs hear all that happens to methods."""
    told, said = teller()
    told.hear("method.generating", {"mission": "m-1", "selector": "guide_facet_", "receiver": "x", "generation": "g"})
    assert said.getvalue() == "    learning guide_facet_ ...\n"
    told, said = teller(as_json=True)
    told.hear("guardian.verdict", {"selector": "guide_facet_", "accepted": True})
    assert json.loads(said.getvalue())["event"] == "guardian.verdict"


def test_what_genesis_made_before_the_mission_is_told() -> None:
    """A model that was made because the codex changed is a line, its stages are none; what is left out says why."""
    told, said = teller(stream=False)
    for step, status in (
        ("create batos-robin:0a0b", "writing manifest"),
        ("create batos-robin:0a0b", "success"),
        ("leave out babs/wide", "it is for 128 in"),
    ):
        told.hear("genesis.step", {"step": step, "status": status})
    assert said.getvalue().splitlines() == ["create batos-robin:0a0b: done", "leave out babs/wide: it is for 128 in"]


def test_the_answer_is_whole_where_the_stream_was_not() -> None:
    """Where what was streamed is not the answer, or nothing was, the answer is written whole."""
    for stream in (True, False):
        told, said = teller(stream=stream, quiet=True)
        told.hear(*LIFE[4])
        told.answer(mission())
        assert said.getvalue().endswith("It cost 3.2 million crowns [1].\n")


def test_programs_hear_every_event_and_one_document() -> None:
    """Each line is JSON: the events as they come, the document last; --quiet is the document alone."""
    told, said = teller(as_json=True)
    for event, keys in (*LIFE, ("genesis.step", {"step": "x", "status": "y"})):
        told.hear(event, keys)
    told.answer(mission())
    heard = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line.get("event") for line in heard] == [*(event for event, _ in LIFE), None]
    assert heard[-1] == {"v": 1, "ok": True, "data": mission()}
    told, said = teller(as_json=True, quiet=True)
    for event, keys in LIFE:
        told.hear(event, keys)
    told.answer(mission())
    assert json.loads(said.getvalue())["data"] == mission()


@pytest.mark.parametrize("quiet", [True, False])
def test_programs_hear_of_failures(quiet: bool) -> None:
    """The document is the error, with --quiet it is alone; else the mission that failed comes before it."""
    told, said = teller(as_json=True, quiet=quiet)
    told.failed(ended("failed"), Refused("no", remedy="Ask less."))
    *before, document = [json.loads(line) for line in said.getvalue().splitlines()]
    assert (document["ok"], document["error"]["code"]) == (False, "refused")
    assert [line["mission"]["status"] for line in before] == ([] if quiet else ["failed"])


HOSTILE = st.text(st.sampled_from("a \n\x00\x07\r\x1b[]2J;\x7f\x85\x9b\u202e\u2066")) | st.text(max_size=20)


def spoiled(value: Any, text: str) -> Any:
    """The value with every string in it replaced, keys kept."""
    if isinstance(value, Mapping):
        return {key: each if key in {"status", "effort", "at"} else spoiled(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [spoiled(each, text) for each in value]
    return text if isinstance(value, str) else value


@given(text=HOSTILE, stream=st.booleans(), quiet=st.booleans(), done=st.booleans())
def test_no_text_of_a_model_reaches_the_terminal_raw(text: str, *, stream: bool, quiet: bool, done: bool) -> None:
    """Whatever stands in a mission, in every place where there is text, no control character is told."""
    told, said = teller(stream=stream, quiet=quiet)
    for event, keys in LIFE:
        told.hear(event, spoiled(keys, text))
    shown = spoiled(mission() if done else {**ended("running"), "reason": {"message": "", "remedy": ""}}, text)
    if done:
        told.answer(shown)
    told.failed(shown, Refused(text, remedy=text))
    told.cancelled(shown)
    calls = [spoiled({"path": "", "state": "", "model": "", "tokens": {}}, text) | CALL]
    told.console.write(mission_text({**shown, "prompts": calls}, voices=True))
    told.console.write(prompts_text(calls))
    assert plain(said.getvalue()) == said.getvalue()


CALL: dict[str, Any] = {"messages": [{"role": "user", "content": "\x1b[2J"}], "response": {"text": "\x1b[2J"}}


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


def test_how_a_mission_ended() -> None:
    """Done is 0; what failed has its reason's exit code; what stands still is 7; what was cancelled is 1."""
    told, said = teller()
    reason = {"code": "ollama_unreachable", "message": "nothing answers", "remedy": "Start it.", "retry": True}
    assert told.ended(mission()) == 0
    assert told.ended({**ended("failed"), "reason": reason}) == 3
    assert [told.ended(ended(status)) for status in ("paused", "waiting", "cancelled", "undone")] == [7, 7, 1, 1]
    assert told.ended({**ended("parked"), "reason": {**reason, "code": "refused"}}) == 4
    assert why({**ended("waiting"), "reason": reason}).message == "m-1 is waiting: nothing answers"

    assert "error: m-1 is undone\n" in said.getvalue()


def test_what_was_asked_is_read_back_whole() -> None:
    """Persona, effort, deadline, budget, policy and message stand in it; times of states; a line for each call."""
    wishes = {
        "persona": "BRICK",
        "deadline": "2026-01-01T00:05:00.000Z",
        "priority": 0,
        "budget": {"calls": 5},
        "policy": {"combine": "vote"},
        "message": {"receiver": "genesis_obj", "selector": "log_", "arguments": ["a", 1]},
    }
    states = [{"state": each, "at": f"2026-01-01T00:00:0{second}Z"} for second, each in enumerate(("IDLE", "COMPLETE"))]
    call = {"path": "brick/synthesizing#0", "state": "done", "tokens": {"prompt": 12, "answer": 3}, "model": "m"}
    shown = mission_text(
        mission(brief={**BRIEF, **wishes}, states=states, prompts=[{**call, "response": {"total_seconds": 1.25}}]),
        voices=False,
    )
    for line in (
        "persona  BRICK",
        "deadline 2026-01-01T00:05:00.000Z",
        "priority 0",
        "budget   calls 5",
        "policy   combine vote",
        'message  receiver genesis_obj, selector log_, arguments ["a", 1]',
        "took     IDLE 1.0 s",
        "brick/synthesizing#0  done   12      3       1.2      m",
    ):
        assert f"\n{line}" in shown
