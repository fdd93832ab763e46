"""Sixteen missions at once that change the same slot of a persona, beside the same missions one after another.

A facet of the persona is a method that counts its uses in a slot and asks the model, so that the commits of missions
that run side by side meet: who comes second thinks again on the newer image, with its paid answers from the journal.
Three kinds of method are run. `apart` counts in no slot: nothing meets, and its wall is what the others are compared
with. `counting` counts, and its prompt does not say what it counted: no call may be made again. `telling` counts and
tells the model the number: as often as another mission has committed, its prompt is another one, and it and the weave
of its answer are asked again, and nothing else.

The calls are counted from the emulator's log. Ideal are those of the same missions one after another, and with them the
requests of `telling` that differ from every earlier one of their mission. Each mission's question has a word of its own
in it, by which a request's mission is known.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from batos.config import Settings
from batos.events import Events
from batos.server.dispatch.method_changes import redefine
from batos.uvm import UVM, open_uvm
from batos.verbs.method_verbs import MethodRedefineArgs
from ollama_emulator.emulator import Emulator, Options
from report import Goal, report

MISSIONS: Final = 16
SLOT: Final = "brick_prototype_obj.guide_facet_"
LATENCY_MS: Final = 300.0
_COUNT: Final = "    self.visits = getattr(self, 'visits', 0) + 1\n    self._p_changed = True\n"
#: The body of the facet's method in each kind of mission.
BODIES: Final[Mapping[str, str]] = {
    "apart": "    return await self.infer_(query)\n",
    "counting": f"    told = await self.infer_(query)\n{_COUNT}    return told\n",
    "telling": (
        f"    told = await self.infer_(query + ' Visit ' + str(getattr(self, 'visits', 0)))\n{_COUNT}    return told\n"
    ),
}


@dataclass(frozen=True, slots=True)
class Run:
    """The missions of one kind, side by side or in turn: seconds, requests by mission, conflicts, and the last count.

    `requests` are the bodies of the chats of each mission, in order.
    """

    seconds: float
    requests: Mapping[int, Sequence[str]]
    met: int
    failures: int
    visits: int

    @property
    def calls(self) -> int:
        """Return the number of calls."""
        return sum(map(len, self.requests.values()))

    def __str__(self) -> str:
        return (
            f"{self.seconds:.2f} s, {self.calls} calls, {self.repeat_count} made again, {self.met} met, "
            f"{self.failures} failed, visits {self.visits}"
        )

    @property
    def repeat_count(self) -> int:
        """Return the number of calls that a mission made although it had made the same before."""
        return sum(len(each) - len(set(each)) for each in self.requests.values())


def question(number: int) -> str:
    """Return the question of a mission, with a word that no other mission's has."""
    return f"How is the lamp of pier {word(number)} kept, and what does its keeper do in fog?"


def word(number: int) -> str:
    """Return the word by which a mission's requests are known."""
    return f"Mole{chr(ord('a') + number)}berg"


def number_of(body: Mapping[str, Any]) -> int | None:
    """Return the number of the mission that a request is of; None: of none."""
    text = json.dumps(body["messages"])
    return next((number for number in range(MISSIONS) if word(number) in text), None)


async def give_method(uvm: UVM, kind: str) -> None:
    """Make the facet of this kind's method."""
    head = "async def guide_facet_(self, query):\n"
    slots = {} if kind == "apart" else {"before": {"visits": 3}, "slots": {"visits": 4}}
    checks = [
        {"arguments": [text], "replies": {"infer_": ["Said."]}, "result": "Said.", **slots} for text in ("One?", "Two?")
    ]
    given = MethodRedefineArgs.model_validate({"method": SLOT, "source": head + BODIES[kind], "checks": checks})
    await redefine(uvm, given)


@asynccontextmanager
async def mind(home: Path, url: str, events: Events | None = None) -> AsyncIterator[UVM]:
    """Open a mind that runs all missions at once."""
    settings = Settings(
        home=home, user="bench", ollama_host=url, missions=MISSIONS, parallel=MISSIONS, install="never",
        method_control=0, vram="80GiB",
    )  # fmt: skip
    async with open_uvm(settings, events or Events(log=False)) as uvm:
        yield uvm


async def prepare(home: Path, url: str) -> None:
    """Make the home that every run begins with: its genesis is done, and its router has learnt."""
    async with mind(home, url) as uvm:
        await uvm.readiness.genesis()
        await uvm.readiness.check()


async def run(kind: str, missions: int, home: Path, emulator: Emulator, url: str, *, in_turn: bool) -> Run:
    """Run the missions of one kind on a home of their own."""
    events = Events(log=False)
    with tempfile.TemporaryDirectory(prefix="batos-conflict-") as folder:
        own = await asyncio.to_thread(shutil.copytree, home, Path(folder, "home"))
        async with mind(own, url, events) as uvm:
            await give_method(uvm, kind)
            return await measure(uvm, events, emulator, range(missions), in_turn)


async def measure(uvm: UVM, events: Events, emulator: Emulator, numbers: Sequence[int], in_turn: bool) -> Run:
    """Ask the questions, in turn or at once, and count."""
    met: Counter[str] = Counter()
    leave = events.subscribe(lambda event, keys: met.update([str(keys["what"])] if event == "txn.conflict" else []))
    emulator.requests.clear()
    began = time.perf_counter()
    shown = await ask_all(uvm, numbers, in_turn)
    seconds = time.perf_counter() - began
    leave()
    asked: dict[int, list[str]] = {number: [] for number in numbers}
    for each in emulator.requests:
        number = number_of(each["body"]) if each["path"] == "/api/chat" else None
        if number is not None:
            asked[number].append(json.dumps([each["body"]["messages"], each["body"].get("options")], sort_keys=True))
    with uvm.image.snapshot() as root:
        visits = int(getattr(root["brick_prototype_obj"], "visits", 0))
    return Run(seconds, asked, len(met), sum(each["status"] != "done" for each in shown), visits)


async def ask_all(uvm: UVM, numbers: Sequence[int], in_turn: bool) -> list[Mapping[str, Any]]:
    """Ask the questions; a mission that failed is shown as it ended."""

    async def one(number: int) -> Mapping[str, Any]:
        brief = {"text": question(number), "persona": "BRICK", "effort": "cycle"}
        mission = await uvm.missions.submit(brief)
        await uvm.missions.begin(mission)
        return await uvm.missions.wait_for_end(mission)

    if in_turn:
        return [await one(number) for number in numbers]
    return list(await asyncio.gather(*map(one, numbers)))


async def run_all(missions: int, latency: float) -> dict[tuple[str, bool], Run]:
    """Run every kind, at once and in turn."""
    told: dict[tuple[str, bool], Run] = {}
    emulator = Emulator(Options(latency_ms=latency, parallel=MISSIONS, vram=80.0))
    with tempfile.TemporaryDirectory(prefix="batos-conflict-") as folder:
        home = Path(folder, "home")
        async with emulator.serving() as url:
            await prepare(home, url)
            for kind in BODIES:
                for in_turn in (True, False) if kind != "apart" else (False,):
                    told[kind, in_turn] = each = await run(kind, missions, home, emulator, url, in_turn=in_turn)
                    print(f"{kind} {'in turn' if in_turn else 'at once'}: {each}", file=sys.stderr, flush=True)
    return told


async def measure_all(missions: int, latency: float) -> tuple[dict[str, Any], list[Goal]]:
    """Run every kind, and return the figures and the goals."""
    found = await run_all(missions, latency)
    counting, telling = found["counting", False], found["telling", False]
    ideal = found["counting", True].calls + found["telling", True].calls
    #: Requests beyond those of one after another that no earlier one of the mission equals.
    rethought = sum(
        max(0, len(set(asked)) - len(set(found["telling", True].requests[number])))
        for number, asked in telling.requests.items()
    )
    lost = sum(missions - found[kind, how].visits for kind, how in found if kind != "apart")
    failures = sum(each.failures for each in found.values())
    values = {
        "calls_ratio": round((counting.calls + telling.calls) / (ideal + rethought), 4),
        "rethought": rethought,
        "commits_met": counting.met,
        "wall_ratio": round(counting.seconds / found["apart", False].seconds, 3),
        "failures": failures,
        "lost_counts": lost,
        "made_again": counting.repeat_count + telling.repeat_count,
        "commits_met_telling": telling.met,
        "wall_ratio_telling": round(telling.seconds / found["apart", False].seconds, 3),
    }
    goals = [
        Goal("calls over ideal", values["calls_ratio"], 1.0),
        Goal("commits that met another's", counting.met, 8, "at_least"),
        Goal("wall over that of missions that do not meet", values["wall_ratio"], 1.4),
        Goal("failures", failures, 0),
        Goal("counts that were lost", lost, 0),
    ]
    return values, goals


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Count what missions that change the same objects pay and wait.")
    parser.add_argument("--latency-ms", type=float, default=LATENCY_MS, help="how long each call takes")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    missions, latency = (2, 0.0) if options.quick else (MISSIONS, options.latency_ms)
    values, goals = asyncio.run(measure_all(missions, latency))
    report({**values, "missions": missions, "latency_ms": latency}, goals, options.json)


if __name__ == "__main__":
    main()
