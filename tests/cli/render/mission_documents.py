"""Missions as reports have them, their events, and a printer that writes to a text: for the tests of this folder."""

from __future__ import annotations

import io
from typing import Any

from batos.cli.render.mission_printer import MissionPrinter
from batos.terminal.console import Console

COST: Any = {
    "calls": 5,
    "embeds": 0,
    "prompt_tokens": 900,
    "answer_tokens": 120,
    "seconds": 2.25,
    "waited": 0.0,
    "loads": 0,
    "from_journal": 0,
    "wasted": 0,
}
STATES: Any = [{"state": each, "at": "2026-01-01T00:00:00Z"} for each in ("IDLE", "SYNTHESIZING", "COMPLETE")]
BRIEF: dict[str, Any] = {
    "text": "What did it cost?",
    "user": "ada",
    "attachments": [{"name": "report.txt", "media_type": "text/plain", "sha256": "ab" * 32}],
}


def mission(**changes: Any) -> Any:
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


def ended(status: str, **changes: Any) -> Any:
    """A mission without an answer, with changes."""
    kept = ("id", "brief", "accepted_at", "states", "cost")
    return {**{name: mission()[name] for name in kept}, "status": status, "trust": {"brief": "user"}, **changes}


def printer(
    *, as_json: bool = False, quiet: bool = False, stream: bool = False, verbose: bool = False
) -> tuple[MissionPrinter, io.StringIO]:
    """A printer whose two streams are one."""
    said = io.StringIO()
    return MissionPrinter(
        Console(said, said, as_json, has_colour=False), quiet, stream, shows_voices=False, verbose=verbose
    ), said


def placed(where: str, vram: int) -> Any:
    """Where a model of 4 GiB lies."""
    return {"model": "batos-robin:1", "runner": "batos-brick:1", "where": where, "size": 4 << 30, "size_vram": vram}


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


CALL: dict[str, Any] = {"messages": [{"role": "user", "content": "\x1b[2J"}], "response": {"text": "\x1b[2J"}}
