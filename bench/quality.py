"""Answers to questions with their passage, by a bare call and by missions, from the same model.

An answer is right if a gold answer stands in it (SQuAD's normalisation) and it has at most 60 words; an answer that a
rule made of quotes counts in `by_rule` and never as right. `carried` is the share of an answer's sentences that the
passage carries (gate/attribution), of those that can be checked. Citations are looked at in right answers:
`citation_precision` is the share that overlaps the sentence of the gold answer, `citation_recall` the share of the
answers with such a citation. `wasted` is a share of the tokens. A mission that has no answer after --deadline seconds
is cancelled and has failed.

The arm `memory` asks as `reflex` does, without a file: all passages of the data were remembered before, once. Its
`right` is compared with that of `reflex`.

The questions differ much: SmolLM2-135M has fewer of the first 40 of the file right than of the next 120. Runs are
compared by the same questions, and --skip measures on others.

    python bench/quality.py [--gguf FILE|smollm2 | --url URL] [--data FILE] [--n N] [--skip N] [--arms A,B]
                            [--deadline S] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import string
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from batos.gate.attribution import attribute
from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.memory.evidence import Evidence
from batos.memory.known_texts import Incoming
from batos.memory.passages import passages
from batos.memory.segmentation import sentence_spans
from batos.protocol.brief import DEFAULT_SCOPE, NO_MEMORY, as_file
from batos.protocol.errors import BatosError
from batos.protocol.mission_documents import MissionDocument
from batos.uvm import UVM
from report import Goal, report
from voice_side import AttachedQuestion, daemon, parser_of, questions_of, rows_of, uvm_over

ARMS = ("bare", "reflex", "cycle", "council", "memory")
MOST_WORDS = 60
OVERDUE, GRACE = "overdue", 20.0
RIGHT, FAILED, WASTED, REMEMBERED = 1.15, 0, 0.02, 0.95
MEMORY = "memory"
PRECISION, RECALL = 0.9, 0.8
BARE_SYSTEM = "Answer the question from the text in one sentence."
BARE_USER = "Text:\n{}\n\nQuestion: {}"
BARE_OPTIONS = {"num_ctx": 4096, "num_predict": 120, "temperature": 0, "seed": 1}
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True, slots=True)
class AnswerWithCost:
    """An answer with what it cost; `quotes` are the words of its citations."""

    text: str
    quotes: tuple[str, ...] = ()
    by_rule: bool = False
    failed: str = ""
    calls: int = 1
    tokens: int = 0
    wasted: int = 0
    seconds: float = 0.0
    first_token: float | None = None


class Listener:
    """A subscriber that notes when each mission's first words came, and which answers a rule made."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.by_rule: set[str] = set()

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        """Note an event."""
        if event == "mission.token":
            self.first.setdefault(keys["mission"], time.perf_counter())
        elif event == "mission.rule" and keys["decision"] == "answer":
            self.by_rule.add(keys["mission"])


def normalise(text: str) -> str:
    """Return a text as SQuAD compares answers: small letters, no punctuation, no articles, single blanks."""
    plain = "".join(each for each in text.lower() if each not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def is_right(answer: str, gold: Sequence[str]) -> bool:
    """Test if one of the gold answers stands in an answer that is short enough."""
    said = f" {normalise(answer)} "
    return len(answer.split()) <= MOST_WORDS and any(f" {normalise(each)} " in said for each in gold)


def find_carried(answer: str, asked: AttachedQuestion) -> list[bool]:
    """Return for each sentence of an answer that can be checked if the passage carries it."""
    evidence = Evidence(passages([("text.txt", "0" * 64, asked.context)]))
    found = attribute(answer, asked.text, evidence).sentences
    return [each.state == "carried" for each in found if each.state != "not_checkable"]


def overlaps(quote: str, asked: AttachedQuestion) -> bool:
    """Test if a quotation shares words with the sentence in which the gold answer stands."""
    at = asked.context.find(quote)
    if at < 0 or not quote.strip():
        return False
    gold = [
        (start, end)
        for start, end in sentence_spans(asked.context)
        if any(start <= each < end for each in asked.starts)
    ]
    return any(at < end and start < at + len(quote) for start, end in gold)


@dataclass(slots=True)
class Arm:
    """The answers of one arm, in the order of the questions."""

    questions: Sequence[AttachedQuestion]
    answers: list[AnswerWithCost] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the arm's figures; None where nothing was there to be measured."""
        pairs = list(zip(self.questions, self.answers, strict=False))
        right = [(asked, each) for asked, each in pairs if not each.by_rule and is_right(each.text, asked.answers)]
        hits = [[overlaps(quote, asked) for quote in each.quotes] for asked, each in right]
        lines = [line for asked, each in pairs for line in find_carried(each.text, asked)]
        tokens = sum(each.tokens for each in self.answers)
        first = [each.first_token for each in self.answers if each.first_token is not None]
        return {
            "right": _share(len(right), len(pairs)),
            "by_rule": _share(sum(each.by_rule for each in self.answers), len(pairs)),
            "answer_words": median([len(each.text.split()) for each in self.answers] or [0]),
            "failed": sum(bool(each.failed) for each in self.answers),
            "carried": _share(sum(lines), len(lines)),
            "citation_precision": _share(sum(map(sum, hits)), sum(map(len, hits))),
            "citation_recall": _share(sum(map(any, hits)), len(hits))
            if any(each.quotes for _, each in pairs)
            else None,
            "calls": sum(each.calls for each in self.answers),
            "tokens": tokens,
            "wasted": _share(sum(each.wasted for each in self.answers), tokens),
            "seconds": round(median([each.seconds for each in self.answers] or [0.0]), 3),
            "first_token_seconds": round(median(first), 3) if first else None,
            "failures": sorted({each.failed for each in self.answers if each.failed}),
        }


def _share(many: int, of: int) -> float | None:
    return round(many / of, 4) if of else None


async def ask_bare(bridge: Bridge, model: str, asked: AttachedQuestion) -> AnswerWithCost:
    """Ask the model itself, in one call without a mission."""
    began = time.perf_counter()
    first: list[float] = []
    user = BARE_USER.format(asked.context, asked.text)
    messages = ({"role": "system", "content": BARE_SYSTEM}, {"role": "user", "content": user})
    request = ChatRequest(model, messages, dict(BARE_OPTIONS))
    try:
        answer = await bridge.think(request, lambda piece: first.append(time.perf_counter()))
    except BatosError as error:
        return AnswerWithCost("", failed=error.code, seconds=time.perf_counter() - began)
    tokens = answer.prompt_tokens + answer.answer_tokens
    begun = first[0] - began if first else None
    return AnswerWithCost(answer.text, tokens=tokens, seconds=time.perf_counter() - began, first_token=begun)


async def run_until(uvm: UVM, mission: str, deadline: float) -> tuple[MissionDocument, str]:
    """Run a mission; return its report and the code of its failure, "" if it is done.

    A mission that is not done after `deadline` seconds is cancelled, and left alone after `GRACE` more.
    """
    run = asyncio.create_task(uvm.missions.run(mission))
    done, _ = await asyncio.wait([run], timeout=deadline)
    if not done:
        cancel = asyncio.create_task(uvm.missions.cancel(mission))
        await asyncio.wait([run, cancel], timeout=GRACE)
        run.cancel()
        cancel.cancel()
        await asyncio.gather(run, cancel, return_exceptions=True)
        return uvm.readings.mission(mission), OVERDUE
    try:
        return run.result(), ""
    except BatosError as error:
        return uvm.readings.mission(mission), error.code


async def ask_mission(uvm: UVM, heard: Listener, asked: AttachedQuestion, arm: str, deadline: float) -> AnswerWithCost:
    """Ask the product, by its own path, with the passage as a file or from memory."""
    began = time.perf_counter()
    policy = {} if arm == MEMORY else {"policy": {"memory": NO_MEMORY}}
    brief = {"text": asked.text, "effort": "reflex" if arm == MEMORY else arm, **policy}
    files = [] if arm == MEMORY else [as_file("text.txt", asked.context.encode())]
    mission = await uvm.missions.submit(brief, files)
    shown, failed = await run_until(uvm, mission, deadline)
    cost, first = shown["cost"], heard.first.get(mission)
    citations = (shown.get("provenance") or {}).get("citations", ())
    return AnswerWithCost(
        str(shown.get("answer") or ""),
        tuple(each["quote"] for each in citations),
        by_rule=mission in heard.by_rule,
        failed=failed,
        calls=cost["calls"],
        tokens=cost["prompt_tokens"] + cost["answer_tokens"],
        wasted=cost["wasted"],
        seconds=time.perf_counter() - began,
        first_token=first - began if first else None,
    )


async def remember_passages(uvm: UVM, rows: Sequence[AttachedQuestion]) -> None:
    """Remember each passage of the data once, under its place among them."""
    passages_ = dict.fromkeys(each.context for each in rows)
    given = [
        Incoming(uvm.settings.asker, DEFAULT_SCOPE, f"passage {number}", f"passage {number}", "text/plain", text,
                 hashlib.sha256(text.encode()).hexdigest(), "external")
        for number, text in enumerate(passages_, start=1)
    ]  # fmt: skip
    await uvm.document_store.remember(given)


async def measure(given: argparse.Namespace, questions: Sequence[AttachedQuestion]) -> dict[str, Any]:
    """Ask every question of every arm, one after another."""
    arms = {name: Arm(questions) for name in given.arms.split(",")}
    heard = Listener()
    async with daemon(given) as url, uvm_over(url, heard) as uvm, Bridge(url) as bridge:
        model = uvm.reconciler.codex().model_for("BABS")
        if MEMORY in arms:
            await remember_passages(uvm, rows_of(given))
        for number, asked in enumerate(questions, start=1):
            for name, arm in arms.items():
                answered = (
                    await ask_bare(bridge, model, asked)
                    if name == "bare"
                    else await ask_mission(uvm, heard, asked, name, given.deadline)
                )
                arm.answers.append(answered)
                mark = "right" if is_right(answered.text, asked.answers) else answered.failed or "wrong"
                shown = " ".join(answered.text.split())[:120]
                print(f"{number} {name}: {mark}, {answered.seconds:.1f} s: {shown}", file=sys.stderr, flush=True)
    return {"n": len(questions), "arms": {name: arm.as_dict() for name, arm in arms.items()}}


def goals_of(arms: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Return the goals of the arms that were measured; a share of the bare arm's is none where that has none."""
    found = [Goal(f"missions that failed: {name}", arm["failed"], FAILED) for name, arm in arms.items()]
    found += [Goal(f"wasted tokens: {name}", arm["wasted"], WASTED) for name, arm in arms.items()]
    for name, arm in arms.items():
        if arm["citation_recall"] is not None:
            found.append(Goal(f"citation precision: {name}", arm["citation_precision"], PRECISION, "at_least"))
            found.append(Goal(f"citation recall: {name}", arm["citation_recall"], RECALL, "at_least"))
    bare = arms.get("bare", {}).get("right")
    if bare and "reflex" in arms:
        found.append(
            Goal("right by reflex over right by a bare call", arms["reflex"]["right"] / bare, RIGHT, "at_least")
        )
    attached = arms.get("reflex", {}).get("right")
    if attached and MEMORY in arms:
        share = arms[MEMORY]["right"] / attached
        found.append(Goal("right from memory over right with the file", share, REMEMBERED, "at_least"))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="A,B", help=f"of {', '.join(ARMS)}")
    parser.add_argument("--deadline", type=float, default=180.0, metavar="S", help="seconds that a mission may take")
    given = parser.parse_args(arguments)
    unknown = set(given.arms.split(",")) - set(ARMS)
    if unknown:
        parser.error(f"there is no arm {', '.join(sorted(unknown))}: one of {', '.join(ARMS)}")
    values = asyncio.run(measure(given, questions_of(given)))
    report(values, goals_of(values["arms"]), given.json)


if __name__ == "__main__":
    main()
