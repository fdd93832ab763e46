"""The screen of `batos status`."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batos.cli.verbs.status import status_text
from batos.protocol.motion_documents import AlarmDocument
from batos.terminal.console import Console
from batos.terminal.layout import plain

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
FOUND: dict[str, Any] = {
    "server": {"pid": 4711, "started": "2026-11-21T07:25:00.000Z", "bind": "tcp://127.0.0.1:7717"},
    "queue": {"waiting": 3, "limit": 1000},
    "approvals": {"waiting": 2},
    "running": [
        {
            "id": "m-1",
            "state": "DELEGATING",
            "personas": ["BRICK"],
            "effort": "cycle",
            "since": "2026-11-21T09:29:48.000Z",
            "attempt": 1,
            "calls": 3,
            "user": "ada",
            "text": "How do I build a shed?",
        }
    ],
    "missions": {"done": 1200, "failed": 2},
    "counters": {
        "calls": 6000,
        "from_journal": 12,
        "prompt_tokens": 1_000_000,
        "answer_tokens": 90_000,
        "first_token": {"counts": [1, 1], "seconds": 3.0},
        "mission": {"counts": [2], "seconds": 20.0},
        "missions": {"BRICK": {"done": 700, "failed": 2}, "ROBIN": {"done": 500}, "none": {"failed": 1}},
    },
    "failures": [
        {
            "at": "2026-11-21T09:00:00.000Z",
            "mission": "m-0",
            "status": "failed",
            "reason": {"code": "timed_out", "message": "its deadline passed"},
        }
    ],
    "ollama": {
        "host": "http://127.0.0.1:11434",
        "version": "0.33.0",
        "loaded": [{"model": "batos-brick:1", "where": "card", "size": 4 << 30, "size_vram": 4 << 30}],
        "error": {"message": "Ollama lacks batos-babs:1", "remedy": "Run `batos genesis`."},
    },
    "models": {"BRICK": "batos-brick:1"},
    "image": {
        "uri": "file:///home/ada/live_image.fs?blobstorage_dir=/home/ada/blobs",
        "bytes": 3 << 20,
        "journal_bytes": 5 << 20,
    },
}


def test_who_runs_is_who_thinks() -> None:
    """The leader, both of two voices, all four at a council, nobody before it is known."""
    running = FOUND["running"][0]
    many = ["BRICK", "BABS"]
    four: tuple[dict[str, Any], ...] = (
        {"personas": many[:1]},
        {"personas": many},
        {"personas": many, "effort": "council"},
        {"personas": []},
    )
    told = status_text(
        {**FOUND, "running": [{**running, "id": f"m-{at}", **each} for at, each in enumerate(four)]}, NOW
    )
    lines = {line[:3]: line for line in told.splitlines()}
    both = [*many, "BRICK, BABS"]
    assert [[name for name in both if name in lines[f"m-{at}"]] for at in range(4)] == [["BRICK"], both, both, []]


def test_one_screen() -> None:
    """Server, image, daemon, queue, missions, who runs, totals, memory, failures; each in its line."""
    assert status_text(FOUND, NOW).splitlines() == [
        "server   tcp://127.0.0.1:7717, process 4711, up 2 h 5 min",
        "image    /home/ada/live_image.fs, 3.0 MiB, and a journal of 5.0 MiB",
        "ollama   http://127.0.0.1:11434, version 0.33.0",
        "         Ollama lacks batos-babs:1: Run `batos genesis`.",
        "queue    3 of 1,000 wait",
        "asked    2 questions wait for you: `batos approvals`",
        "missions 1,200 done, 2 failed",
        "running  state       personas  for   calls  question",
        "m-1      DELEGATING  BRICK     12 s  3      How do I build a shed?",
        "totals   6,000 calls, 1,000,000 prompt and 90,000 answer tokens, 12 answers from the journal",
        "average  to the first token 1.5 s, a mission 10.0 s",
        "brick    700 done, 2 failed",
        "robin    500 done",
        "unrouted 1 failed",
        "memory   batos-brick:1 is on the card, 4.0 GiB",
        "newest failures",
        "  m-0  30 min ago  timed_out: its deadline passed",
    ]


def test_background_work_has_a_line_for_each_job() -> None:
    """When it ran, when it runs next and why it failed; what this process does not do has none."""
    jobs = [
        {"name": "packing", "state": "resting", "last": None, "next": "2026-03-01T13:00:00+00:00", "reason": ""},
        {"name": "vectors", "state": "failed", "last": NOW.isoformat(), "next": None, "reason": "no room"},
        {"name": "methods", "state": "stopped", "last": None, "next": None, "reason": ""},
    ]
    told = [line for line in status_text({**FOUND, "jobs": jobs}, NOW).splitlines() if not line.startswith("m-1")]
    heading = next(number for number, line in enumerate(told) if line.startswith("jobs "))
    assert told[heading].split() == ["jobs", "state", "last", "run", "next", "failed", "with"]
    packing, vectors = (line.split() for line in told[heading + 1 : heading + 3])
    assert packing[:3] == ["packing", "resting", "-"]
    assert (vectors[0], vectors[1], vectors[-2:]) == ("vectors", "failed", ["no", "room"])
    assert not any(line.startswith("methods  ") for line in told[heading:])


def test_without_a_server() -> None:
    """That none runs is said first, with who has the image, or else what becomes of what waits; and what is wrong."""
    alone = {**FOUND, "server": None, "holder": "process 12"}
    assert status_text(alone, NOW).splitlines()[0] == "server   no server runs (batos serve); process 12 has the image"
    left = status_text({**alone, "holder": "", "missions": {"running": 1}}, NOW).splitlines()[0]
    assert left.endswith("what is queued or running waits for it, or for `batos resume`")
    assert status_text({**alone, "holder": ""}, NOW).splitlines()[0] == "server   no server runs (batos serve)"
    wrong = {
        "uri": "file:///i.fs",
        "error": {"message": "there is no mind in it yet", "remedy": "Run `batos genesis`."},
    }
    assert "         there is no mind in it yet: Run `batos genesis`." in status_text({**alone, "image": wrong}, NOW)


def test_what_became_of_intents_is_one_line() -> None:
    """Methods installed and retired, the guardian's verdicts, repairs, kills, and what the checks are worth."""
    counters = {
        "verdicts": {"accepted": 7, "refused": 2},
        "repairs": 2,
        "kills": {"time": 1, "memory": 1},
        "installs": 5,
        "retired": 1,
        "mutants": 40,
        "mutants_killed": 30,
    }
    told = status_text({**FOUND, "counters": counters}, NOW).splitlines()
    assert (
        "methods  5 installed, 1 retired; 7 accepted and 2 refused by the guardian; 2 repairs, 2 runs killed; "
        "checks kill 75% of mutants"
    ) in told
    assert not any(line.startswith("methods") for line in status_text(FOUND, NOW).splitlines())


def test_one_of_a_kind_is_told_as_one() -> None:
    """Beside many of another kind."""
    counters = {**FOUND["counters"], "embeds": 1, "from_journal": 1, "wasted": 2}
    assert "answer tokens, 1 answer from the journal, 1 embedding, 2 tokens wasted" in status_text(
        {**FOUND, "counters": counters}, NOW
    )


def test_a_server_of_which_little_is_known() -> None:
    """A screen of nothing is short; a daemon that is away is said to be; many missions still fit."""
    bare = {"queue": {"waiting": 0, "limit": 5}, "missions": {}, "ollama": {"host": "http://h:1", "version": None}}
    assert status_text(bare, NOW).splitlines() == [
        "ollama   http://h:1, which does not answer",
        "queue    0 of 5 wait",
        "missions none yet",
    ]
    many = {**FOUND, "running": FOUND["running"] * 50, "failures": FOUND["failures"] * 50}
    assert "and 42 more" in status_text(many, NOW)
    assert len(status_text(many, NOW).splitlines()) <= 40


def test_rates_are_a_table_with_a_column_for_each_window() -> None:
    """A line of which nothing happened in any window is left out; of a sample that is said."""
    window: dict[str, Any] = {
        "since": "2026-11-15", "missions": {"done": 1200, "failed": 2}, "looked_at": 500,
        "verdicts": {"passed": 480, "rejected": 20}, "sentences": {"not_carried": 3},
        "median": {"calls": 1.0, "tokens": 812.0, "seconds": 3.25}, "retries": 0, "failures": {"timed_out": 2},
        "rated": 2, "outcome": 0.5,
    }  # fmt: skip
    counted = {
        "calls": 6000, "tokens": 9, "from_journal": 0, "loads": 0, "spills": 1, "conflicts": 0, "made": 0, "refused": 0,
        "retired": 0, "first_token": 0.75,
    }  # fmt: skip
    windows = {"day": window, "week": {**window, "counted": counted}, "all": window}
    audit = {"at": "2026-11-20T07:08:09.000Z", "held": 17, "checks": 18}
    day = {"day": "2026-11-20", "missions": 9, "carried": False, "parts": {}, "cem": 0.61, "outcome": None, "undone": 0}
    told = status_text({**FOUND, "rates": {"windows": windows, "audit": audit, "cem": [day]}}, NOW)
    lines = {line.split("  ")[0].strip(): line for line in told.partition("newest failures")[2].splitlines()[2:]}
    assert lines["rates"].split() == ["rates", "today", "7", "days", "all"]
    assert "1,200 done, 2 failed" in lines["missions"]
    assert "480 passed, 20 rejected" in lines["verdicts"]
    assert "3 not carried" in lines["sentences"]
    assert "6,000 calls, 9 tokens" in lines["work"]
    assert "1 spills" in lines["trouble"]
    assert "+0.50 of 2 rated" in lines["outcome"]
    assert "run again" not in lines
    assert "methods" not in lines
    assert "of the newest 500 missions" in told
    assert "17 of 18 checks hold, the same since 2026-11-20T07:08 UTC" in told
    assert "2026-11-20 0.610" in told


@given(st.text())
def test_no_control_characters(text: str) -> None:
    """Whatever a question or a reason says, nothing of it moves a cursor."""
    said = io.StringIO()
    running = [{**FOUND["running"][0], "text": text, "state": text, "personas": [text]}]
    failures = [{"mission": text, "reason": {"code": text, "message": text}}]
    console = Console(said, said, as_json=False, has_colour=False)
    console.write(status_text({**FOUND, "running": running, "failures": failures}, NOW))
    assert plain(said.getvalue()) == said.getvalue()


def test_an_alarm_that_stands_is_a_line() -> None:
    """The newest one with what rose, its lever and its mission, and how many more there are."""
    alarm: AlarmDocument = {
        "figure": "gate.numbers", "day": "2026-11-30", "lever": "mind.form", "mission": "m-7", "answered": True,
        "facts": ["On 2026-11-30 there were 9 faults in numbers in 14 missions.", "Before, 0.5."], "standing": True,
    }  # fmt: skip
    beat = {"on": False, "alarms": [alarm, alarm]}
    (line,) = [each for each in status_text({**FOUND, "heartbeat": beat}, NOW).splitlines() if each[:5] == "alarm"]
    said = "gate.numbers: On 2026-11-30 there were 9 faults in numbers in 14 missions. Its lever is mind.form."
    assert line == f"alarm    {said} `batos show m-7`; 1 more: `batos heartbeat`"
    waiting: AlarmDocument = {**alarm, "mission": None, "answered": False, "lever": ""}
    told = status_text({**FOUND, "heartbeat": {"on": False, "alarms": [waiting]}}, NOW)
    assert "missions. ALFRED has not answered yet\n" in told
