"""Decisions of a model: divisions of questions, votes and selections, by missions of the product's own path.

A question of two things is two questions of the file about one passage, joined by "and"; the questions as they are hold
one thing each. A mission that divides is cancelled as soon as its parts would be asked. `usable` counts the missions
that went on, `by_model` those decisions that are the model's own, `unasked` the divisions that a rule decided without a
call, `alike` the divisions with two parts alike. `by_model` and `alike` of the whole are those of questions of two
things. Of votes and selections `right` is the share of right answers, `first_right` that of the first part's answers,
and `any_right` the share of questions for which some part had a right answer. --form asks a model in the form that its
size would not give it.

    python bench/decisions.py [--gguf FILE|smollm2 | --url URL] [--data FILE] [--n N] [--skip N] [--votes N]
                              [--form auto|full|lean] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from batos.minds.calls import decisions
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError
from batos.uvm import UVM
from quality import is_right
from report import Goal, report
from voice_side import AttachedQuestion, daemon, parser_of, questions_of, rows_of, uvm_over

PERSONA = "BABS"
USABLE, BY_MODEL, ALIKE = 1.0, 0.5, 0
#: The settings that give every model one form.
FORMS: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "full": {"lean_parameters": 0, "lean_window": 0},
    "lean": {"lean_parameters": 1e6},
}
#: Ways of combining, of which a mission each is asked for the same question.
CHOICES = ("vote", "select")


@dataclass(slots=True)
class Tally:
    """The outcomes of one kind of decision; `shares` counts what is told as a share of `asked`."""

    asked: int = 0
    shares: dict[str, int] = field(default_factory=lambda: {"usable": 0, "by_model": 0})
    alike: int = 0
    calls: int = 0
    tokens: int = 0
    #: The reasons for which a rule decided, with how often each was one.
    whys: dict[str, int] = field(default_factory=dict)

    def add(self, **found: bool) -> None:
        """Count each finding that is true."""
        for name, is_so in found.items():
            self.shares[name] = self.shares.get(name, 0) + is_so

    def excuse(self, why: str) -> None:
        """Count a reason."""
        self.whys[why] = self.whys.get(why, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """Return the shares of what was asked, and the sums."""
        many = max(1, self.asked)
        return {
            "asked": self.asked,
            **{name: round(count / many, 4) for name, count in self.shares.items()},
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
    went_on = any(each["state"] == "DELEGATING" for each in shown["states"])
    own = went_on and bool(records) and mission not in rules.why
    tally.asked += 1
    tally.calls += len(records)
    tally.tokens += sum(sum(each.tokens.values()) for each in records)
    tally.add(usable=went_on, by_model=own, unasked=went_on and not records)
    if mission in rules.why:
        tally.excuse(rules.why[mission])
    elif own:
        parts = [str(text) for text in json.loads(text_of(records[-1].response)).values()]
        tally.alike += any(decisions.alike(one, other) for one, other in combinations(parts, 2))
        print(f"{asked.text}\n    {parts}", file=sys.stderr, flush=True)


def text_of(response: Mapping[str, Any] | None) -> str:
    """Return the text of a journaled answer."""
    return str((response or {}).get("text", ""))


async def choose(uvm: UVM, asked: AttachedQuestion, combine: str, tally: Tally) -> None:
    """Let parts compete; the decision is the model's own if there was a majority or its choice stood."""
    brief = {"text": asked.text, "persona": PERSONA, "effort": "cycle", "policy": {"combine": combine}}
    mission = await uvm.missions.submit(brief, [as_file("text.txt", asked.context.encode())])
    try:
        shown = await uvm.missions.run(mission)
    except BatosError as error:
        shown = uvm.readings.mission(mission)
        tally.excuse(error.code)
    tally.asked += 1
    tally.calls += shown["cost"]["calls"]
    tally.tokens += shown["cost"]["prompt_tokens"] + shown["cost"]["answer_tokens"]
    done = shown["status"] == "done"
    combined = shown["provenance"].get("combined", {}) if done else {}
    decided = str(combined.get("decided", ""))
    said = [is_right(each["answer"], asked.answers) for each in (shown.get("voices") or ())]
    tally.add(
        usable=done,
        by_model=bool(combined.get("majority")) or decided in ("agreed", "named"),
        right=done and is_right(str(shown["answer"]), asked.answers),
        first_right=bool(said and said[0]),
        any_right=any(said),
    )
    tally.excuse("majority" if combined.get("majority") else decided or "no decision")


def join(given: argparse.Namespace, questions: Sequence[AttachedQuestion]) -> list[AttachedQuestion]:
    """Return each question joined with the next one of the file about the same passage; those without one are left
    out.
    """
    beside: dict[str, list[AttachedQuestion]] = defaultdict(list)
    for each in rows_of(given):
        beside[each.context].append(each)
    found = []
    for each in questions:
        others = beside[each.context]
        other = others[(others.index(each) + 1) % len(others)]
        if other != each:
            head, then = each.text.rstrip("?. "), other.text[:1].lower() + other.text[1:]
            found.append(AttachedQuestion(f"{head} and {then}", each.context, (), ()))
    return found or list(questions)


async def measure(given: argparse.Namespace, questions: Sequence[AttachedQuestion]) -> dict[str, Any]:
    """Ask the questions to be divided, joined and as they are, and some of them to be voted on and selected from."""
    two, one, choices = Tally(), Tally(), {name: Tally() for name in CHOICES}
    rules = Rules()
    async with daemon(given) as url, uvm_over(url, rules, **FORMS[given.form]) as uvm:
        for tally, asked in ((two, join(given, questions)), (one, questions)):
            for number, each in enumerate(asked, start=1):
                await divide(uvm, rules, each, tally)
                print(f"{number} of {len(asked)}: {tally.as_dict()}", file=sys.stderr, flush=True)
        for each in questions[: given.votes]:
            for name, tally in choices.items():
                await choose(uvm, each, name, tally)
    every = [two, one, *choices.values()]
    many = sum(each.asked for each in every)
    return {
        "usable": round(sum(each.shares["usable"] for each in every) / max(1, many), 4),
        "by_model": two.as_dict()["by_model"],
        "alike": two.alike,
        "calls": sum(each.calls for each in every),
        "tokens": sum(each.tokens for each in every),
        "form": given.form,
        "divisions": {"two": two.as_dict(), "one": one.as_dict()},
        "votes": choices["vote"].as_dict(),
        "selections": choices["select"].as_dict(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--votes", type=int, default=8, metavar="N", help="questions that are also voted on")
    parser.add_argument("--form", choices=sorted(FORMS), default="auto", help="the form of the prompts")
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
