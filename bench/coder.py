"""A coder's methods: simple tools and facets written by a model, through the product's own dialogue.

`syntax`, `accepted` and `right` are shares of the tools for which the first reply is Python, is accepted by the
guardian after it was read, and does what was asked, by calls of which the model never sees all. `made` are the methods
that passed the whole dialogue, `made_right` those of them that are right, and `wrong_passed` the number of the others.
With `--examples` the wish shows two calls with their results, as a person may; without them the model writes the
checks. The first twenty tools were used to choose the request: `--skip 20` asks for others.

Of the `facets` `accepted` is the share that passed the dialogue, `keeps_intent` the share of those whose prompts hold a
marker of the intent and the form that it asks for, and `attempts` the mean of the methods asked for. `--facet-data`
takes another's (bench/facets_side.py has the fields); the first twelve were used to choose the request.

    python bench/coder.py [--gguf FILE|smollm2 | --url URL] [--model NAME] [--form lean|full] [--examples]
                          [--seed N] [--n N] [--skip N] [--facets N] [--skip-facets N] [--facet-data FILE] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from batos.guardian.audit import Context, audit
from batos.guardian.parsing import parse
from batos.methods.generation import generation_limits
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.lean_request import spoken_checks
from batos.methods.generation.method_checks import REPLY, Check, Rehearsal, ScriptedHost
from batos.methods.generation.method_spec import Coder, MethodSpec, spec_of_intent
from batos.methods.generation.trial import Trial, TrialResult
from batos.methods.generation.written_source import WrittenSource, read_source
from batos.objects.method import Intent
from batos.protocol.errors import BatosError, DecisionInvalid
from batos.records.approval_subjects import Candidate
from batos.uvm import UVM
from facets_side import WantedFacet, facets_of
from report import Goal, report
from tools_side import TOOLS, WantedTool
from voice_side import daemon, parser_of, uvm_over

#: Goals of the lean form with a model of 135 million parameters.
SYNTAX, ACCEPTED, RIGHT = 0.9, 0.8, 0.4
#: Goals of facets.
FACETS_MADE, KEPT, ATTEMPTS = 0.8, 0.9, 1.5


@dataclass(slots=True)
class CoderTally:
    """The counts of one form."""

    asked: int = 0
    syntax: int = 0
    accepted: int = 0
    right: int = 0
    made: int = 0
    made_right: int = 0
    corrected: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return shares of what was asked, and means of the costs."""
        many = max(1, self.asked)
        shares = ("syntax", "accepted", "right", "made", "made_right", "corrected")
        means = ("calls", "prompt_tokens", "answer_tokens", "seconds")
        return {
            "asked": self.asked,
            **{name: round(getattr(self, name) / many, 4) for name in shares},
            "wrong_passed": self.made - self.made_right,
            **{name: round(getattr(self, name) / many, 2) for name in means},
        }


@dataclass(frozen=True, slots=True)
class FacetOutcome:
    """The outcome of a facet: the methods asked for, the source that was made, and the prompts that it sends."""

    attempts: int
    source: str = ""
    prompts: str = ""


@dataclass(frozen=True, slots=True)
class Workshop:
    """The dependencies of a generation with the coder that is measured."""

    uvm: UVM
    deps: GenerationDeps
    coder: Coder
    #: True if the wish shows calls with their results.
    shows: bool

    def specify(self, tool: WantedTool) -> MethodSpec:
        """Return the specification of a tool, as a mission that lacks it would make it."""
        examples = tuple(tool.examples) if self.shows else ()
        intent = Intent(tool.purpose, tool.signature, examples=examples, may_learn=True, kind="tool")
        with self.uvm.image.snapshot() as root:
            holder, kinds = root["brick_prototype_obj"], tuple(tool.kinds.split())
            made = spec_of_intent(root, holder, tool.selector, intent, args=kinds, digests={})
        return replace(made, coder=self.coder)


async def write(shop: Workshop, tool: WantedTool, tally: CoderTally) -> None:
    """Let the coder write a tool, and count what came of it."""
    wanted, checks = shop.specify(tool), tool.checks
    opened = generation_limits.current_round(shop.deps.journal, wanted.log("bench"))
    session = shop.deps.session(wanted, opened, lambda: None)
    began = time.perf_counter()
    made: Candidate | None = None
    try:
        made = await shop.deps.make(wanted, opened, session, {"missions": []})
    except BatosError as error:
        print(f"{wanted.selector}: {error.message[:160]}", file=sys.stderr, flush=True)
    tally.asked += 1
    tally.seconds += time.perf_counter() - began
    records = [each for each in shop.uvm.journal.read([opened.log]) if each.response]
    tally.calls += len(records)
    tally.prompt_tokens += session.cost.prompt_tokens
    tally.answer_tokens += session.cost.answer_tokens
    trial = Trial(wanted, shop.deps.cell, shop.deps.events)
    first = read(str((records[0].response or {}).get("text", "")), wanted) if records else WrittenSource("")
    tally.syntax += is_function(first.source)
    tally.corrected += bool(first.changes)
    tally.accepted += audit(first.source, Context(wanted.selector, tool.signature)).accepted
    tally.right += not (await judge(trial, first.source, checks)).faults
    if made is not None:
        faults = (await judge(trial, made.source, checks)).faults
        tally.made += 1
        tally.made_right += not faults
        if faults:
            print(f"{wanted.selector} passed and is wrong: {made.source}", file=sys.stderr, flush=True)


async def write_facet(shop: Workshop, facet: WantedFacet) -> FacetOutcome:
    """Let the coder write a facet; return its attempts, and the prompts of the method that was made."""
    intent = Intent(facet.intent, facet.signature, name=facet.title, may_learn=True, kind="facet")
    with shop.uvm.image.snapshot() as root:
        made = spec_of_intent(root, root["brick_prototype_obj"], facet.selector, intent, args=("str",), digests={})
    wanted = replace(made, coder=shop.coder)
    opened = generation_limits.current_round(shop.deps.journal, wanted.log("bench"))
    session = shop.deps.session(wanted, opened, lambda: None)
    candidate: Candidate | None = None
    try:
        candidate = await shop.deps.make(wanted, opened, session, {"missions": []})
    except BatosError as error:
        print(f"{facet.selector}: {error.message[:160]}", file=sys.stderr, flush=True)
    attempts = sum(bool(each.response) for each in shop.uvm.journal.read([opened.log]))
    if candidate is None:
        return FacetOutcome(attempts)
    calls = spoken_checks(wanted)
    tried = await Trial(wanted, shop.deps.cell, shop.deps.events).source(candidate.source, calls)
    host = ScriptedHost(calls[0].replies)
    if tried.program is not None:
        await Rehearsal(shop.deps.cell, wanted.given).outcome(tried.program, calls[0], host)
    return FacetOutcome(attempts, candidate.source, "\n".join(host.asked))


async def write_facets(shop: Workshop, wanted: Sequence[WantedFacet]) -> dict[str, float]:
    """Let the coder write facets; return the shares that were made and keep their intent, and the mean of attempts."""
    outcomes = []
    for facet in wanted:
        outcomes.append(await write_facet(shop, facet))
        print(f"{facet.selector}: {outcomes[-1].attempts} attempts\n{outcomes[-1].source}", file=sys.stderr, flush=True)
    many, made = max(1, len(outcomes)), sum(bool(each.source) for each in outcomes)
    kept = sum(facet.is_kept_in(each.prompts) for facet, each in zip(wanted, outcomes, strict=True))
    return {
        "asked": len(outcomes),
        "accepted": round(made / many, 4),
        "keeps_intent": round(kept / max(1, made), 4),
        "attempts": round(sum(each.attempts for each in outcomes) / many, 2),
    }


async def judge(trial: Trial, source: str, checks: Sequence[Check]) -> TrialResult:
    """Return what a source does with checks that nobody was shown."""
    return await trial.source(source, checks)


def read(text: str, wanted: MethodSpec) -> WrittenSource:
    """Return the source of a reply, of either form."""
    try:
        text = REPLY.parse(text).source if wanted.coder.form == "full" else text
    except DecisionInvalid:
        return WrittenSource("")
    return read_source(text, wanted.selector, wanted.signature)


def is_function(source: str) -> bool:
    """Test if a source is Python with a function in it."""
    try:
        parse(source)
    except (SyntaxError, ValueError):
        return False
    return "def " in source


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Let the coder write each tool in the form that is asked for."""
    tally = CoderTally()
    tools = TOOLS[:2] if given.quick else TOOLS[given.skip : given.skip + given.n]
    async with daemon(given) as url, uvm_over(url) as uvm:
        deps = uvm.method_runtime.generator.deps
        rows = {row.name: row for row in await deps.bridge.list()}  # type: ignore[attr-defined]
        name = given.model or next(iter(rows))
        deps.digests = {**deps.digests, name: rows[name].digest if name in rows else ""}
        options: Mapping[str, Any] = {"num_ctx": 4096, "temperature": 0.2, "seed": given.seed}
        shop = Workshop(uvm, deps, Coder(name, deps.digests[name], options, form=given.form), given.examples)
        for tool in tools:
            await write(shop, tool, tally)
            print(f"{tool.signature}: {json.dumps(tally.as_dict())}", file=sys.stderr, flush=True)
        wanted = facets_of(given.facet_data, given.skip_facets, 2 if given.quick else given.facets)
        spoken = await write_facets(shop, wanted)
    return {"form": given.form, "examples": given.examples, "model": name, **tally.as_dict(), "facets": spoken}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--model", default="", metavar="NAME", help="the coder; the first that the Ollama has")
    parser.add_argument("--form", choices=("lean", "full"), default="lean", help="the form of the request")
    parser.add_argument("--examples", action="store_true", help="the wish shows two calls with their results")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of the first reply")
    parser.add_argument("--facets", type=int, default=12, metavar="N", help="facets of the data")
    parser.add_argument("--skip-facets", type=int, default=0, metavar="N", help="facets left out before the first one")
    parser.add_argument("--facet-data", type=Path, default=None, metavar="FILE", help="another's facets, JSON a line")
    parser.set_defaults(n=20)
    given = parser.parse_args(arguments)
    values = asyncio.run(measure(given))
    goals = [
        Goal("first replies that are Python", values["syntax"], SYNTAX, "at_least"),
        Goal("first replies that the guardian accepts", values["accepted"], ACCEPTED, "at_least"),
        Goal("first replies that do what was asked", values["right"], RIGHT, "at_least"),
        Goal("methods that passed and are wrong", values["wrong_passed"], 0),
        Goal("facets that were made", values["facets"]["accepted"], FACETS_MADE, "at_least"),
        Goal("facets made that keep their intent", values["facets"]["keeps_intent"], KEPT, "at_least"),
        Goal("methods asked for a facet", values["facets"]["attempts"], ATTEMPTS),
    ]
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
