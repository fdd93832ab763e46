"""Cost of a council's prompts for a runner with one slot: tokens that it evaluates over the unique tokens of all.

Councils are run whole, by the product's own path, with the emulator as the daemon. A slot's cache is its last prompt:
of the next one the runner evaluates what comes after their longest common beginning. The unique tokens are those of a
trie over all prompts of one council, so 1.0 is the least that any order can cost, and the goal is a bound: at most 1.15
in either form of the prompts. Tokens are the emulator's: a mark of the chat format, else four bytes. Beside it stands
what the same calls would have cost in another order, or with the persona before everything else (in lean form it stands
there anyway).

    python bench/council.py [--form full|lean] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, TypeAlias

from batos.config import Settings
from batos.protocol.brief import as_file
from batos.uvm import UVM, open_uvm
from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.machine.pacing import Prefixes
from report import Goal, report

Tokens: TypeAlias = tuple[bytes, ...]
Message: TypeAlias = dict[str, str]

GOAL = 1.15
#: Billions of parameters below which a model gets the lean form: every model, or none.
LEAN_BELOW = {"full": 0.0, "lean": 1e6}
BYTES_A_TOKEN = 4
SHUFFLES = 20
_MARK = re.compile(r"<\|[^|<>\s]*\|>")

LAMP = """The keeper winds the clockwork every four hours, and trims the wick when the flame turns yellow. The oil is
carried up in cans of brass, 86 steps from the yard, since tin rusts in the salt air.

On nights of fog the bell is rung by hand, for the clockwork drives the lens and nothing else. A second keeper sleeps in
the room below the gallery; a wire runs from the lens to a small bell over the bed, and when the lens slows, it rings.
"""
MINUTES = "\n\n".join(
    f"Minutes of week {week}. The team of {3 + week % 4} met on Tuesday. Deployment {week} took {10 + 3 * week} "
    f"minutes and failed {week % 3} times, always at the step that copies the assets. Ines wants it automated; Karl "
    f"says that nobody has time before week {week + 6}. Decided: nothing. Mood: {'tired' if week % 2 else 'hopeful'}."
    for week in range(1, 13)
)

#: Each question with the files that it is asked beside.
QUESTIONS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("How do we keep the lamp burning through a night of fog, and who should do what?", {"lamp.txt": LAMP}),
    ("My sister wants to leave her job to open a bakery. How should we think about that together?", {}),
    ("Our deployments keep failing and the team is tired. What is going on here, and what now?", {"m.txt": MINUTES}),
    ("Wie bringen wir einen Verein mit 120 Mitgliedern dazu, in einem Jahr seine Satzung zu erneuern?", {}),
    ("What have these notes in common, and what would a stranger find odd?", {"lamp.txt": LAMP, "m.txt": MINUTES}),
)
QUICK = QUESTIONS[:1]


def tokens(text: str) -> Tokens:
    """Split a rendered prompt into tokens: each mark of the chat format, and between them four bytes a token."""
    found: list[bytes] = []
    at = 0
    for mark in (*_MARK.finditer(text), None):
        plain = text[at : mark.start() if mark else len(text)].encode()
        found += (plain[start : start + BYTES_A_TOKEN] for start in range(0, len(plain), BYTES_A_TOKEN))
        if mark:
            found.append(mark[0].encode())
            at = mark.end()
    return tuple(found)


def evaluate(prompts: Sequence[Tokens]) -> int:
    """Return what a runner with one slot evaluates of these prompts, one after another."""
    return sum(len(after) - common(before, after) for before, after in pairwise(((), *prompts)))


def unique(prompts: Iterable[Tokens]) -> int:
    """Return the nodes of a trie over the prompts: sorted, each adds what it does not share with the one before it."""
    return evaluate(sorted(prompts))


def common(one: Tokens, other: Tokens) -> int:
    """Return how many tokens two prompts have in common from their beginning."""
    alike = zip(one, other, strict=False)
    return next((at for at, (mine, its) in enumerate(alike) if mine != its), min(len(one), len(other)))


@dataclass(slots=True)
class Daemon:
    """The emulator that the councils think with, and what it makes of a prompt."""

    emulator: Emulator
    url: str

    def bodies_after(self, since: int) -> list[dict[str, Any]]:
        """Return the bodies of the chat requests after so many requests, in the order in which they were asked."""
        return [
            entry["body"] for entry in self.emulator.requests if entry["n"] > since and entry["path"] == "/api/chat"
        ]

    @property
    def request_count(self) -> int:
        """Return how many requests there were."""
        return max((int(entry["n"]) for entry in self.emulator.requests), default=0)

    async def render(self, body: Mapping[str, Any], messages: Sequence[Message] | None = None) -> str:
        """Return the text that the model reads for a request, or for the same request with other messages."""
        asked = {**body, "messages": messages or body["messages"], "stream": False, "_debug_render_only": True}
        return await asyncio.to_thread(_post, self.url.partition("//")[2], "/api/chat", asked)


def _post(address: str, path: str, body: Mapping[str, Any]) -> str:
    connection = HTTPConnection(address)
    try:
        connection.request("POST", path, json.dumps(body))
        return str(json.loads(connection.getresponse().read())["_debug_info"]["rendered_template"])
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Council:
    """A council: its prompts in the order in which they were asked, as rendered and in tokens."""

    texts: tuple[str, ...]
    prompts: tuple[Tokens, ...]
    #: The same calls with the persona in the system message, before what they share.
    persona_first: tuple[Tokens, ...]
    #: Prompt tokens as the daemon counted them, all calls together.
    counted: int

    @property
    def unique(self) -> int:
        """Return the number of tokens that any order evaluates once: the same for every layout compared here."""
        return unique(self.prompts)

    def shuffle_cost(self) -> float:
        """Return what the same calls cost on average in an order of chance."""
        chance = random.Random(0)
        return mean(evaluate(chance.sample(self.prompts, len(self.prompts))) for _ in range(SHUFFLES))

    def slot_cost(self) -> int:
        """Return what the emulator's own simulation evaluates: its runner remembers the last eight prompts, not one."""
        prefixes = Prefixes()
        return sum(
            prefixes.count_unread(text, len(prompt)) for text, prompt in zip(self.texts, self.prompts, strict=True)
        )


@asynccontextmanager
async def uvm_over_one_slot(folder: Path, parallel: int, form: str) -> AsyncIterator[tuple[UVM, Daemon]]:
    """Open a UVM after genesis that keeps so many calls of a mission under way, over a daemon with one slot."""
    emulator = Emulator(Options(parallel=1))
    async with emulator.serving() as url:
        settings = Settings(
            home=folder,
            user="bench",
            image="memory://bench",
            ollama_host=url,
            parallel=parallel,
            install="never",  # the calls of a council are counted, not those of who writes methods
            vram="48GiB",  # room for as many slots as are said to be there
            lean_parameters=LEAN_BELOW[form],
        )
        async with open_uvm(settings) as uvm:
            await uvm.readiness.genesis()
            yield uvm, Daemon(emulator, url)


async def council(uvm: UVM, daemon: Daemon, text: str, files: Mapping[str, str]) -> Council:
    """Ask one question of all four personas and return the council."""
    before = daemon.request_count
    attached = [as_file(name, content.encode()) for name, content in files.items()]
    shown = await uvm.missions.ask({"text": text, "effort": "council"}, attached)
    bodies = daemon.bodies_after(before)
    if len(bodies) != shown["cost"]["calls"]:
        raise RuntimeError(f"the mission counts {shown['cost']['calls']} calls and the daemon {len(bodies)}")
    personas = [
        f"{each.core_identity.strip()}\n\n{each.core_method.strip()}"
        for each in uvm.reconciler.codex().personas.values()
    ]
    texts = [await daemon.render(body) for body in bodies]
    moved = [await daemon.render(body, persona_first(body["messages"], personas)) for body in bodies]
    return Council(tuple(texts), tuple(map(tokens, texts)), tuple(map(tokens, moved)), shown["cost"]["prompt_tokens"])


def persona_first(messages: Sequence[Message], personas: Sequence[str]) -> list[Message]:
    """Return the same messages with what says who speaks at their head."""
    who = next((who for message in messages for who in personas if message["content"].startswith(who)), None)
    if who is None:
        return list(messages)  # a division is asked for in nobody's voice
    system, *others = messages
    stripped = [{**message, "content": message["content"].removeprefix(f"{who}\n\n")} for message in others]
    return [{**system, "content": f"{who}\n\n{system['content']}"}, *stripped]


async def councils(
    parallel: int, questions: Sequence[tuple[str, Mapping[str, str]]], form: str = "full"
) -> list[Council]:
    """Ask all questions, one after another, in one mind with prompts of this form."""
    found = []
    with tempfile.TemporaryDirectory(prefix="batos-bench-") as name:
        async with uvm_over_one_slot(Path(name), parallel, form) as (uvm, daemon):
            for text, files in questions:
                found.append(await council(uvm, daemon, text, files))
                told = evaluate(found[-1].prompts) / found[-1].unique
                print(f"{len(found[-1].prompts)} calls, {told:.3f}: {text}", file=sys.stderr, flush=True)
    return found


def figures_of(found: Sequence[Council], unordered: Sequence[Council]) -> dict[str, Any]:
    """Return the figures; each ratio is over the unique tokens of the same councils."""
    rows: list[dict[str, Any]] = [
        {
            "question": text,
            "files": len(files),
            "calls": len(each.prompts),
            "prompt_tokens": sum(map(len, each.prompts)),
            "evaluated": evaluate(each.prompts),
            "unique": each.unique,
            "ratio": round(evaluate(each.prompts) / each.unique, 4),
        }
        for (text, files), each in zip(QUESTIONS, found, strict=False)
    ]
    return {
        "evaluated_ratio": _ratio((evaluate(each.prompts) for each in found), found),
        "worst_ratio": max(row["ratio"] for row in rows),
        "calls": sum(len(each.prompts) for each in found),
        "evaluated_tokens": sum(evaluate(each.prompts) for each in found),
        "unique_tokens": sum(each.unique for each in found),
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
        "counted_by_daemon": sum(each.counted for each in found),
        "compared": {
            "without_turns": _ratio((evaluate(each.prompts) for each in unordered), unordered),
            "random_order": _ratio((each.shuffle_cost() for each in found), found),
            "persona_first": _ratio((evaluate(each.persona_first) for each in found), found),
            "persona_first_without_turns": _ratio((evaluate(each.persona_first) for each in unordered), unordered),
            "nothing_cached": _ratio((sum(map(len, each.prompts)) for each in found), found),
            "eight_prompts_remembered": _ratio((each.slot_cost() for each in found), found),
        },
        "questions": rows,
    }


def _ratio(costs: Iterable[float], found: Sequence[Council]) -> float:
    """Return the ratio of the first sum to the second."""
    return round(sum(costs) / sum(each.unique for each in found), 4)


async def measure(*, quick: bool, form: str) -> dict[str, Any]:
    """Measure the councils as they are, and once more with every call sent as soon as it could be."""
    questions = QUICK if quick else QUESTIONS
    found = figures_of(await councils(1, questions, form), await councils(8, questions, form))
    return {"form": form, **found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=("full", "lean"), default="full", help="the form of every prompt")
    parser.add_argument("--quick", action="store_true", help="one council: shape, not figures")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    given = parser.parse_args(arguments)
    values = asyncio.run(measure(quick=given.quick, form=given.form))
    goal = Goal("tokens evaluated over unique tokens of a council, one slot", values["evaluated_ratio"], GOAL)
    report(values, [goal], given.json)


if __name__ == "__main__":
    main()
