"""Decisions of a model: divisions of questions and votes on them, by missions of the product's own path.

A mission that divides is cancelled as soon as its parts would be asked. `usable` counts the missions that went on,
`by_model` the divisions that are the model's own, `alike` those of them with two parts alike.

    python bench/decisions.py [--gguf FILE|smollm2 | --url URL] [--data FILE] [--n N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from batos.brief import as_file
from batos.errors import BatosError
from batos.minds.calls import degenerate
from batos.uvm import UVM
from report import Goal, report
from voice_side import AttachedQuestion, daemon, parser_of, questions_of, uvm_over

PERSONA = "BABS"
USABLE, BY_MODEL, ALIKE = 1.0, 0.5, 0


@dataclass(slots=True)
class Tally:
    """The outcomes of one kind of decision."""

    asked: int = 0
    usable: int = 0
    by_model: int = 0
    alike: int = 0
    calls: int = 0
    tokens: int = 0
    #: The reasons for which a rule decided, with how often each was one.
    whys: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the shares of what was asked, and the sums."""
        many = max(1, self.asked)
        return {
            "asked": self.asked,
            "usable": round(self.usable / many, 4),
            "by_model": round(self.by_model / many, 4),
            "alike": self.alike,
            "calls": self.calls,
            "tokens": self.tokens,
            "whys": self.whys,
        }


class Rules:
    """A subscriber that notes each mission's decisions by rule, and knows when its parts are asked."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        self.dividing: dict[str, asyncio.Event] = {}

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        """Note an event."""
        mission = keys.get("mission", "")
        if event == "mission.rule":
            self.why[mission] = keys["why"]
        over = event == "mission.state" and keys["state"] in ("DELEGATING", "FAILED")
        if over or event in ("mission.failed", "mission.done"):
            self.dividing.setdefault(mission, asyncio.Event()).set()


async def divide(uvm: UVM, rules: Rules, asked: AttachedQuestion, tally: Tally) -> None:
    """Ask a question until it is divided, and count what came of it."""
    brief = {"text": asked.text, "persona": PERSONA, "effort": "cycle"}
    mission = await uvm.missions.submit(brief, [as_file("text.txt", asked.context.encode())])
    run = asyncio.create_task(uvm.missions.run(mission))
    await rules.dividing.setdefault(mission, asyncio.Event()).wait()
    try:
        shown = await uvm.missions.cancel(mission)
    except BatosError:
        shown = uvm.readings.mission(mission)
    await asyncio.gather(run, return_exceptions=True)
    records = [each for each in uvm.journal.read([mission]) if "/decomposing#0" in each.path and each.response]
    tally.asked += 1
    tally.calls += len(records)
    tally.tokens += sum(sum(each.tokens.values()) for each in records)
    went_on = any(each["state"] == "DELEGATING" for each in shown["states"])
    tally.usable += went_on
    if mission in rules.why:
        tally.whys[rules.why[mission]] = tally.whys.get(rules.why[mission], 0) + 1
    elif went_on and records:
        parts = [str(text) for text in json.loads(text_of(records[-1].response)).values()]
        tally.by_model += 1
        tally.alike += any(degenerate.alike(one, other) for one, other in combinations(parts, 2))
        print(f"{asked.text}\n    {parts}", file=sys.stderr, flush=True)


def text_of(response: Mapping[str, Any] | None) -> str:
    """Return the text of a journaled answer."""
    return str((response or {}).get("text", ""))


async def vote(uvm: UVM, asked: AttachedQuestion, tally: Tally) -> None:
    """Put a question to the vote; it is the model's own decision if there was a majority or its choice stood."""
    brief = {"text": asked.text, "persona": PERSONA, "effort": "cycle", "policy": {"combine": "vote"}}
    mission = await uvm.missions.submit(brief, [as_file("text.txt", asked.context.encode())])
    try:
        shown = await uvm.missions.run(mission)
    except BatosError as error:
        shown = uvm.readings.mission(mission)
        tally.whys[error.code] = tally.whys.get(error.code, 0) + 1
    tally.asked += 1
    tally.calls += shown["cost"]["calls"]
    tally.tokens += shown["cost"]["prompt_tokens"] + shown["cost"]["answer_tokens"]
    if shown["status"] != "done":
        return
    combined = shown["provenance"].get("combined", {})
    tally.usable += 1
    tally.by_model += bool(combined.get("majority")) or combined.get("decided") in ("agreed", "named")


async def measure(given: argparse.Namespace, questions: Sequence[AttachedQuestion]) -> dict[str, Any]:
    """Ask every question twice: once to be divided, once to be voted on."""
    divisions, votes = Tally(), Tally()
    rules = Rules()
    async with daemon(given) as url, uvm_over(url, rules) as uvm:
        for number, asked in enumerate(questions, start=1):
            await divide(uvm, rules, asked, divisions)
            if number <= given.votes:
                await vote(uvm, asked, votes)
            print(f"{number} of {len(questions)}: {divisions.as_dict()}", file=sys.stderr, flush=True)
    many = divisions.asked + votes.asked
    return {
        "usable": round((divisions.usable + votes.usable) / max(1, many), 4),
        "by_model": round(divisions.by_model / max(1, divisions.asked), 4),
        "alike": divisions.alike,
        "calls": divisions.calls + votes.calls,
        "tokens": divisions.tokens + votes.tokens,
        "divisions": divisions.as_dict(),
        "votes": votes.as_dict(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--votes", type=int, default=8, metavar="N", help="questions that are also voted on")
    given = parser.parse_args(arguments)
    values = asyncio.run(measure(given, questions_of(given)))
    goals = [
        Goal("decisions that let a mission go on", values["usable"], USABLE, "at_least"),
        Goal("divisions that are the model's own", values["by_model"], BY_MODEL, "at_least"),
        Goal("divisions with two parts alike", values["alike"], ALIKE),
    ]
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
