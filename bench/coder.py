"""A coder's methods: simple tools written by a model, through the product's own dialogue.

`syntax`, `accepted` and `right` are shares of the tools for which the first reply is Python, is accepted by the
guardian after it was read, and does what was asked, by checks that the model never sees. `made` are the methods that
passed the whole dialogue with checks by the model, and `made_right` those of them that are right.

    python bench/coder.py [--gguf FILE|smollm2 | --url URL] [--model NAME] [--form lean|full] [--n N] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batos.errors import BatosError, DecisionInvalid
from batos.guardian.audit import Context, audit
from batos.guardian.parsing import parse
from batos.image.candidates import Candidate
from batos.methods.generation import generation_log
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.coder_reply import REPLY
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import Coder, MethodSpec, spec_of_intent
from batos.methods.generation.trial import Trial, TrialResult
from batos.methods.generation.written_source import WrittenSource, read_source
from batos.objects.method import Intent
from batos.uvm import UVM
from report import Goal, report
from voice_side import daemon, parser_of, uvm_over

#: Goals of the lean form with a model of 135 million parameters.
SYNTAX, ACCEPTED, RIGHT = 0.9, 0.8, 0.4
#: Twenty tools: signature, purpose, kinds of the arguments, and calls with their results.
TOOLS: Sequence[tuple[str, str, str, Sequence[tuple[list[Any], Any]]]] = (
    ("count_words_(self, text)", "Return how many words the text has.", "str", ((["a b c"], 3), ([""], 0))),
    ("add_up_(self, numbers)", "Return the sum of the numbers.", "list", (([[1, 2, 3]], 6), ([[]], 0))),
    ("backwards_(self, items)", "Return the list of items in reverse order.", "list", (([[1, 2]], [2, 1]), ([[]], []))),
    (
        "fahrenheit_(self, celsius)",
        "Return the degrees Fahrenheit of so many degrees Celsius.",
        "int",
        (([100], 212), ([0], 32)),
    ),
    ("shout_(self, text)", "Return the text in upper case.", "str", ((["ab c"], "AB C"), (["x"], "X"))),
    ("largest_(self, numbers)", "Return the largest of the numbers.", "list", (([[1, 5, 2]], 5), ([[-1, -3]], -1))),
    ("mean_(self, numbers)", "Return the average of the numbers.", "list", (([[1, 2, 3]], 2), ([[4, 8]], 6))),
    ("is_even_(self, number)", "Return True if the number is even.", "int", (([4], True), ([3], False))),
    ("initials_(self, name)", "Return the initials of the name.", "str", ((["Ada Lovelace"], "AL"), (["Bob"], "B"))),
    ("count_vowels_(self, text)", "Return how many vowels the text has.", "str", ((["banana"], 3), (["xyz"], 0))),
    (
        "unique_(self, items)",
        "Return the different items in their order.",
        "list",
        (([[1, 2, 1]], [1, 2]), ([[3]], [3])),
    ),
    ("square_(self, number)", "Return the number times itself.", "int", (([3], 9), ([5], 25))),
    (
        "first_word_(self, text)",
        "Return the first word of the text.",
        "str",
        ((["hello you"], "hello"), (["one"], "one")),
    ),
    (
        "palindrome_(self, text)",
        "Return True if the text reads the same backwards.",
        "str",
        ((["anna"], True), (["ab"], False)),
    ),
    (
        "repeat_(self, text, times)",
        "Return the text repeated so many times.",
        "str int",
        ((["ab", 2], "abab"), (["x", 3], "xxx")),
    ),
    ("longest_(self, words)", "Return the longest of the words.", "list", (([["a", "bbb"]], "bbb"), ([["x"]], "x"))),
    ("seconds_(self, minutes)", "Return how many seconds so many minutes have.", "int", (([2], 120), ([0], 0))),
    ("join_(self, words)", "Return the words joined by a comma.", "list", (([["a", "b"]], "a,b"), ([["x"]], "x"))),
    ("factorial_(self, number)", "Return the factorial of the number.", "int", (([5], 120), ([1], 1))),
    ("area_(self, width, height)", "Return the area of a rectangle.", "int int", (([2, 3], 6), ([4, 5], 20))),
)


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
            **{name: round(getattr(self, name) / many, 2) for name in means},
        }


@dataclass(frozen=True, slots=True)
class Workshop:
    """The dependencies of a generation with the coder that is measured."""

    uvm: UVM
    deps: GenerationDeps
    coder: Coder

    def specify(self, signature: str, purpose: str, kinds: str) -> MethodSpec:
        """Return the specification of a tool, as a mission that lacks it would make it."""
        intent = Intent(purpose, signature, may_learn=True, kind="tool")
        selector = signature.partition("(")[0]
        with self.uvm.image.snapshot() as root:
            made = spec_of_intent(
                root, root["brick_prototype_obj"], selector, intent, args=tuple(kinds.split()), digests={}
            )
        return replace(made, coder=self.coder)


async def write(shop: Workshop, tool: tuple[str, str, str, Sequence[tuple[list[Any], Any]]], tally: CoderTally) -> None:
    """Let the coder write a tool, and count what came of it."""
    signature, purpose, kinds, cases = tool
    wanted = shop.specify(signature, purpose, kinds)
    checks = [Check(arguments, result=result) for arguments, result in cases]
    opened = generation_log.current(shop.deps.journal, wanted.log("bench"))
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
    tally.accepted += audit(first.source, Context(wanted.selector, signature)).accepted
    tally.right += not (await judge(trial, first.source, checks)).faults
    if made is not None:
        tally.made += 1
        tally.made_right += not (await judge(trial, made.source, checks)).faults


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
    tools = TOOLS[:2] if given.quick else TOOLS[: given.n]
    async with daemon(given) as url, uvm_over(url) as uvm:
        deps = uvm.method_runtime.generator.deps
        rows = {row.name: row for row in await deps.bridge.list()}  # type: ignore[attr-defined]
        name = given.model or next(iter(rows))
        deps.digests = {**deps.digests, name: rows[name].digest if name in rows else ""}
        options: Mapping[str, Any] = {"num_ctx": 4096, "temperature": 0.2, "seed": 1}
        shop = Workshop(uvm, deps, Coder(name, deps.digests[name], options, form=given.form))
        for tool in tools:
            await write(shop, tool, tally)
            print(f"{tool[0]}: {json.dumps(tally.as_dict())}", file=sys.stderr, flush=True)
    return {"form": given.form, "model": name, **tally.as_dict()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--model", default="", metavar="NAME", help="the coder; the first that the Ollama has")
    parser.add_argument("--form", choices=("lean", "full"), default="lean", help="the form of the request")
    given = parser.parse_args(arguments)
    values = asyncio.run(measure(given))
    goals = [
        Goal("first replies that are Python", values["syntax"], SYNTAX, "at_least"),
        Goal("first replies that the guardian accepts", values["accepted"], ACCEPTED, "at_least"),
        Goal("first replies that do what was asked", values["right"], RIGHT, "at_least"),
    ]
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
