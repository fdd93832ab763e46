"""The printer: missions that are done, failed, cancelled, left undone, faulty; to people and to programs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.render.mission_documents import CALL, COST, LIFE, ended, mission, placed, printer

from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.render.mission_record import mission_text, prompts_text
from batos.protocol.errors import AnswerCut, ApprovalNeeded, BatosError, DecisionInvalid, Refused, Runaway
from batos.protocol.wire_messages import mission_error
from batos.terminal.console import Console
from batos.terminal.layout import plain


def test_a_mission_that_failed() -> None:
    """Message, remedy, what was spent, and how what was paid is not paid again."""
    told, said = printer()
    told.print_failure(ended("failed"), Refused("the budget is spent", remedy="Ask less."))
    assert said.getvalue().splitlines() == [
        "error: the budget is spent",
        "       Ask less.",
        "m-1 failed; 5 calls, 900 prompt and 120 answer tokens, 2.2 s in Ollama.",
        "`batos retry m-1` asks it again, and pays for no call twice.",
    ]


def test_a_failure_that_the_journal_repeats_is_no_advice_to_retry() -> None:
    """What failed by answers that were paid for fails by them again; one that was never kept can go better."""
    faults: tuple[tuple[BatosError, bool], ...] = (
        (DecisionInvalid("it is not JSON"), True),
        (AnswerCut(900, 100, 1000, 200), True),
        (Runaway("blanks", 64), False),
    )
    for error, repeats in faults:
        told, said = printer()
        told.print_failure(ended("failed", reason=error.as_dict()), error)
        assert ("`batos retry m-1` reads the same answers" in said.getvalue()) == repeats
        assert ("pays for no call twice" in said.getvalue()) != repeats


def test_what_met_nobody_is_asked_again_with_few_words() -> None:
    """Where the same can work later the verb that asks it again is named; where it cannot, there is none."""
    for retry in (True, False):
        told, said = printer()
        unpaid = {**COST, "prompt_tokens": 0, "answer_tokens": 0}
        reason = {
            "code": "ollama_unreachable",
            "message": "nothing listens there",
            "remedy": "Start it.",
            "retry": retry,
        }
        told.print_failure(ended("failed", cost=unpaid, reason=reason), Refused("nothing listens there"))
        assert ("\n`batos retry m-1` asks it again" in said.getvalue()) == retry


def test_no_retry_is_offered_of_what_the_image_does_not_have() -> None:
    """A dream that failed, or a question to the past, is none of its missions."""
    moment = {"at": "2026-11-28T09:00:00.000+00:00", "tid": "tid:0x1"}
    reason = {"code": "ollama_unreachable", "message": "nothing listens there", "remedy": "Start it.", "retry": True}
    for cost in (COST, {**COST, "prompt_tokens": 0, "answer_tokens": 0}):
        told, said = printer()
        told.print_failure(ended("failed", cost=cost, reason=reason, as_of=moment), Refused("nothing listens there"))
        assert ("m-1 failed" in said.getvalue(), "batos retry" in said.getvalue()) == (True, False)


def test_a_mission_that_was_cancelled() -> None:
    """What it is and what it cost; where nothing was paid there is nothing to save."""
    told, said = printer()
    told.print_cancellation(ended("cancelled", cost={**COST, "calls": 0, "from_journal": 2}))
    assert said.getvalue() == (
        "m-1 was cancelled; 900 prompt and 120 answer tokens, 2.2 s in Ollama, 2 answers from the journal.\n"
    )
    told, said = printer()
    told.print_cancellation(ended("cancelled", cost={**COST, "calls": 1, "prompt_tokens": 0, "answer_tokens": 0}))
    assert "batos retry" not in said.getvalue(), "a call that met nobody paid for nothing"


def test_a_mission_that_waits_for_the_daemon_says_so() -> None:
    """Its attempt ended in the state FAILED, and the mission did not: what it waits for is told."""
    told, said = printer(verbose=True)
    told.on_event("mission.state", {"mission": "m-1", "state": "FAILED"})
    reason = {"code": "ollama_unreachable", "message": "nothing listens there", "remedy": "Start it.", "retry": True}
    told.on_event("mission.status", {"mission": "m-1", "status": "waiting", "reason": reason})
    assert said.getvalue().splitlines() == ["  FAILED", "It waits, and is tried again: nothing listens there"]


def test_a_mission_that_waits_for_a_person_says_which() -> None:
    """Once, as the error of what is awaited, with the id and what to do; nothing is said to be tried again."""
    told, said = printer()
    reason = ApprovalNeeded("it waits for your approval: a-1", "a-1").as_dict()
    told.on_event("mission.status", {"mission": "m-1", "status": "waiting", "reason": reason})
    assert said.getvalue() == ""
    assert told.print_end(ended("waiting", reason=reason)) == 7
    assert said.getvalue().count("it waits for your approval: a-1") == 1
    assert "batos approve ID" in said.getvalue()
    error = mission_error(ended("waiting", reason=reason))
    assert isinstance(error, ApprovalNeeded)
    assert error.approval == "a-1"


def test_what_stands_still_is_not_asked_again() -> None:
    """A paused mission goes on by `resume`, with all that it paid for: no other mission is needed for that."""
    told, said = printer()
    assert told.print_end(ended("paused")) == 7
    assert "`batos resume m-1` lets it go on" in said.getvalue()
    assert "batos retry" not in said.getvalue()


@pytest.mark.parametrize("quiet", [False, True])
def test_a_spill_is_an_alarm(*, quiet: bool) -> None:
    """It is told to whoever wants the answer alone, too, once a runner; a sample is not."""
    told, said = printer(quiet=quiet)
    told.on_event("vram.sample", placed("card", 4 << 30))
    assert said.getvalue() == ""
    for _ in range(2):
        told.on_event("vram.spill", placed("spilled", 1 << 30))
    assert said.getvalue().count("warning: batos-robin:1 does not fit the card") == 1
    assert "batos budget" in said.getvalue()


def test_people_follow_each_step() -> None:
    """Who, how and why, each state, each facet; tokens as they come; what is retracted is said to be."""
    told, said = printer(stream=True, verbose=True)
    for event, keys in LIFE:
        told.on_event(event, keys)
    told.print_answer(mission())
    assert said.getvalue().splitlines()[:10] == [
        "m-1 accepted",
        "BRICK at effort cycle, confidence 0.50: a figure is asked for",
        "  SYNTHESIZING",
        "    tamland has no answer",
        "",
        "It cost nothing.",
        "This text is withdrawn: another follows.",
        "",
        "It cost 3.2 million crowns [1].",
        "",
    ]
    # What was streamed is not said again.
    assert said.getvalue().count("It cost 3.2 million crowns [1].") == 1


def test_the_screen_is_the_answer_its_sources_and_one_line() -> None:
    """Nothing is said of the steps; under the answer stand footnotes and a line that says where the rest is."""
    for stream in (True, False):
        told, said = printer(stream=stream)
        for event, keys in LIFE[:4]:
            told.on_event(event, keys)
        told.on_event(*LIFE[-1])
        told.print_answer(mission())
        assert said.getvalue().splitlines() == [
            "It cost 3.2 million crowns [1].",
            "",
            '[1] report.txt: "It cost 3.2 million crowns."',
            "BRICK, cycle · 5 calls · 0.0 s · batos show m-1",
        ]


@pytest.mark.parametrize("quiet", [False, True])
def test_what_the_model_was_not_shown_is_said(*, quiet: bool) -> None:
    """Also to who wants the answer alone: nothing is left out in silence."""
    told, said = printer(quiet=quiet)
    told.print_answer(
        mission(provenance={**mission()["provenance"], "omitted": {"passages": 205, "turns": 2, "parts": 0}})
    )
    line = "Not shown to the model, for lack of room: 205 passages of the files (1 shown), 2 earlier turns."
    assert line in said.getvalue().splitlines()


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_live_line_is_gone_when_the_answer_begins() -> None:
    """On a terminal a line stands while the mission runs, is not drawn into an answer, and comes back after it."""
    said = Screen()
    told = MissionPrinter(
        Console(said, said, as_json=False, has_colour=True), quiet=False, streams=True, shows_voices=False
    )
    told.begin("Ctrl-C stops it")
    told.on_event(*LIFE[1])
    told.tick()
    assert said.getvalue().rpartition("\r")[2].startswith("\x1b[JBRICK")
    told.on_event(*LIFE[4])
    before = said.getvalue()
    assert before.endswith("\r\x1b[1A\x1b[JIt cost")
    told.tick()
    assert said.getvalue() == before
    told.on_event(*LIFE[6])
    told.tick()
    assert said.getvalue().endswith("Ctrl-C stops it\n")


def test_a_terminal_marks_sentences_with_their_footnotes() -> None:
    """Once a document, and not where the model wrote the number; a pipe has the answer as it is."""
    cited = {"mission": "m-1", "path": "p", "document": 1, "sentence": "It cost nothing."}
    for colour, shown in ((True, "It cost nothing. [1] It was [2]."), (False, "It cost nothing. It was [2].")):
        said = Screen()
        told = MissionPrinter(
            Console(said, said, as_json=False, has_colour=colour), quiet=False, streams=True, shows_voices=False
        )
        told.on_event("mission.token", {"mission": "m-1", "path": "p", "text": "It cost nothing."})
        told.on_event("mission.citation", cited)
        told.on_event("mission.citation", cited)
        told.on_event("mission.token", {"mission": "m-1", "path": "p", "text": " It was [2]."})
        told.on_event("mission.citation", {**cited, "document": 2, "sentence": "It was [2]."})
        told.print_answer(mission(answer="It cost nothing. It was [2]."))
        assert shown in said.getvalue()
        assert said.getvalue().count("It cost nothing.") == 1


def test_only_a_terminal_has_a_live_line() -> None:
    """A pipe, a program and who wants the answer alone are shown nothing of it."""
    for quiet, as_json, colour in ((False, False, False), (True, False, True), (False, True, True)):
        said = io.StringIO()
        told = MissionPrinter(Console(said, said, as_json, colour), quiet, streams=False, shows_voices=False)
        assert not told.has_live_line
        if not colour:
            told.tick()
        assert said.getvalue() == ""


def test_what_broke_off_is_told_again() -> None:
    """A server that was lost and an attempt that is made again take back what was streamed, under no path."""
    told, said = printer(stream=True)
    told.on_event("mission.token", {"mission": "m-1", "path": "p", "text": "It cost "})
    told.on_event("mission.retracted", {"mission": "m-1"})
    told.on_event("connection.lost", {"endpoint": "tcp://127.0.0.1:7717"})
    told.on_event("connection.restored", {"endpoint": "tcp://127.0.0.1:7717"})
    told.on_event("mission.token", {"mission": "m-1", "path": "p", "text": "It cost 3.2 million crowns [1]."})
    told.print_answer(mission())
    assert said.getvalue().splitlines()[:4] == [
        "It cost ",
        "The stream broke off; the answer starts again from its beginning.",
        "The server is gone; the mission is in the image, and this command waits for the server.",
        "The server is back.",
    ]
    assert said.getvalue().count("It cost 3.2 million crowns [1].") == 1


def test_what_was_not_streamed_did_not_break_off() -> None:
    """Who is shown no tokens is told nothing of an attempt that is made again."""
    told, said = printer(stream=False)
    told.on_event("mission.token", {"mission": "m-1", "path": "p", "text": "It cost "})
    told.on_event("mission.retracted", {"mission": "m-1"})
    assert said.getvalue() == ""


def test_what_is_being_learnt_is_told() -> None:
    """Who waits for a mission that waits for a method sees which; programs hear all that happens to methods."""
    told, said = printer(verbose=True)
    told.on_event(
        "method.generating",
        {"mission": "m-1", "selector": "guide_facet_", "receiver": "x", "kind": "facet", "generation": "g"},
    )
    assert said.getvalue() == "    learning guide_facet_ ...\n"
    told, said = printer(as_json=True)
    told.on_event("guardian.verdict", {"selector": "guide_facet_", "accepted": True})
    assert json.loads(said.getvalue())["event"] == "guardian.verdict"


def test_what_genesis_made_before_the_mission_is_told() -> None:
    """A model that was made because the codex changed is a line, its stages are none; what is left out says why."""
    told, said = printer(stream=False)
    for step, status in (
        ("create batos-robin:0a0b", "writing manifest"),
        ("create batos-robin:0a0b", "success"),
        ("leave out babs/wide", "it is for 128 in"),
    ):
        told.on_event("genesis.step", {"step": step, "status": status})
    assert said.getvalue().splitlines() == ["create batos-robin:0a0b: done", "leave out babs/wide: it is for 128 in"]


def test_the_answer_is_whole_where_the_stream_was_not() -> None:
    """Where what was streamed is not the answer, or nothing was, the answer is written whole."""
    for stream in (True, False):
        told, said = printer(stream=stream, quiet=True)
        told.on_event(*LIFE[4])
        told.print_answer(mission())
        assert said.getvalue().endswith("It cost 3.2 million crowns [1].\n")


def test_programs_hear_every_event_and_one_document() -> None:
    """Each line is JSON: the events as they come, the document last; --quiet is the document alone."""
    told, said = printer(as_json=True)
    for event, keys in (*LIFE, ("genesis.step", {"step": "x", "status": "y"})):
        told.on_event(event, keys)
    told.print_answer(mission())
    heard = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [line.get("event") for line in heard] == [*(event for event, _ in LIFE), None]
    assert heard[-1] == {"v": 1, "ok": True, "data": mission()}
    told, said = printer(as_json=True, quiet=True)
    for event, keys in LIFE:
        told.on_event(event, keys)
    told.print_answer(mission())
    assert json.loads(said.getvalue())["data"] == mission()


@pytest.mark.parametrize("quiet", [True, False])
def test_programs_hear_of_failures(quiet: bool) -> None:
    """The document is the error, with --quiet it is alone; else the mission that failed comes before it."""
    told, said = printer(as_json=True, quiet=quiet)
    told.print_failure(ended("failed"), Refused("no", remedy="Ask less."))
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
    told, said = printer(stream=stream, quiet=quiet)
    for event, keys in LIFE:
        told.on_event(event, spoiled(keys, text))
    shown = spoiled(mission() if done else ended("running", reason={"message": "", "remedy": ""}), text)
    if done:
        told.print_answer(shown)
    told.print_failure(shown, Refused(text, remedy=text))
    told.print_cancellation(shown)
    calls = [spoiled({"path": "", "state": "", "model": "", "tokens": {}}, text) | CALL]
    shown["prompts"] = calls
    told.console.write(mission_text(shown, voices=True))
    told.console.write(prompts_text(calls))
    assert plain(said.getvalue()) == said.getvalue()


def test_how_a_mission_ended() -> None:
    """Done is 0; what failed has its reason's exit code; what stands still is 7; what was cancelled is 1."""
    told, said = printer()
    reason = {"code": "ollama_unreachable", "message": "nothing answers", "remedy": "Start it.", "retry": True}
    assert told.print_end(mission()) == 0
    assert told.print_end(ended("failed", reason=reason)) == 3
    assert [told.print_end(ended(status)) for status in ("paused", "waiting", "cancelled", "undone")] == [7, 7, 1, 1]
    assert told.print_end(ended("parked", reason={**reason, "code": "refused"})) == 4
    assert mission_error(ended("waiting", reason=reason)).message == "m-1 is waiting: nothing answers"

    assert "error: m-1 is undone\n" in said.getvalue()
