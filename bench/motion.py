"""Trials in worlds whose truth is known, and the time in which a trial gives way to a person.

A world is data (bench/motion_worlds.json has each form): slots with the share that a value adds to right answers, and
the manner of its replies. `promoted`: a value that helps is kept. `nothing`: no value helps, or replies that only look
better (the question said back, the answer among very many words, another matter) are kept by nobody. `undone`: a value
that harms was kept by hand and is taken back. `started`, `not started`: the missions of many days are asked; the voices
of the scripted model say the same from one day on, or never. The metric falls, and the mind tries a lever for diversity
without a person.

`kinds_promoted` counts the kinds of levers of which a value with a planted gain was kept, and taken back.
`counted_twice` are questions that a process counted twice which was killed again and again while it tried a change.
`yield_s` is the longest time from a person's question to its first call, while a model takes five seconds for one of a
trial.

With --real a mind whose personas are that model begins with the worst values that a sweep finds, and tries its levers
for some nights with the budget of a day each. All shares are of sealed questions: `start`, `end`, `frozen` (the first
values, asked again), `best_fixed`. `of_the_way` is how far the end is from start to best, `lower_bound` that of the
mean paired difference of end and start with 90 %, `worst_promotion` the least paired effect of a kept change. Answers
are kept in --results: --resume makes no call for those. --calls ends a run after so many.

    python bench/motion.py [--world FILE] [--seeds 10] [--quick] [--kinds KIND...] [--tell] [--json FILE]
    python bench/motion.py --real FILE|NAME [--data DIR] [--nights 10] [--n N] [--calls N] [--resume] [--results FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import structlog

from batos.autotelic import entropy_days, levers, trial_verdicts, trials
from batos.autotelic.levers import Lever, LeverKind
from batos.genesis.adapters import repository
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.brief import as_file
from batos.records.redefinitions import ChangeOrigin
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM, Seams
from batos.verbs.motion_verbs import CEM
from batos.verbs.trial_verbs import TRIALS_SHOW
from motion_learning_side import measure_real, real_goals
from motion_worlds_side import Clock, TrialWorld, trial_world
from motion_yield_side import measure_yield
from report import Goal, report
from voice_side import BESIDE

WORLDS: Final = Path(__file__).with_name("motion_worlds.json")
#: Missions of a day, and the calls of a night.
MISSIONS, CALLS = 5, 300
#: The share of right answers that is planted for a value of each kind of lever.
GAIN: Final = 0.4
ANN: Final = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "by hand")
SAID: Final = ("Maro winds the clockwork of the lamp.", "Ida counts the boats at dusk.", "Gulls cry over the mole.")
FILE: Final = as_file("lamp.txt", " ".join(SAID).encode())


@dataclass(frozen=True, slots=True)
class WorldFile:
    """A world as a file has it."""

    name: str
    expects: str
    nights: int = 14
    nightly: int = 0
    noise: float = 0.25
    base: float = 0.5
    right: Mapping[str, Any] = field(default_factory=dict)
    forced: Mapping[str, Any] = field(default_factory=dict)
    effects: Sequence[Mapping[str, Any]] = ()
    days: int = 0
    alike_from: int = 0


def read_worlds(file: Path) -> list[WorldFile]:
    """Read the worlds of a file: one, or several under `worlds`."""
    told = json.loads(file.read_text(encoding="utf-8"))
    return [WorldFile(**each) for each in told.get("worlds", [told])]


def _value(value: object) -> Any:
    return tuple(map(_value, value)) if isinstance(value, list) else value


async def live(given: WorldFile, seed: int, nights: int, calls: int = CALLS) -> tuple[list[Any], bool]:
    """Let the nights of a world pass; return its trials, and whether the right value acts at the end."""
    effects = {(each["slot"], _value(each["value"])): each.get("gain", 0.0) for each in given.effects}
    manners = {(each["slot"], _value(each["value"])): each["manner"] for each in given.effects if "manner" in each}
    chosen = {"effects": effects, "manners": manners, "seed": seed, "noise": given.noise, "base": given.base}
    with tempfile.TemporaryDirectory() as home:
        async with trial_world(Path(home), nightly=given.nightly, **chosen) as world:
            if given.forced:
                await force(world, given.forced)
            for _ in range(nights):
                await world.night(calls)
            right = given.right and world.acting().get(given.right["slot"]) == _value(given.right["value"])
            return world.documents(), bool(right)


async def force(world: TrialWorld, forced: Mapping[str, Any]) -> None:
    """Let a trial of a value be promoted by hand, whatever was asked."""
    name = await world.nights().begin(forced["slot"], _value(forced["value"]), ANN)
    await world.uvm.image.shared.apply(lambda root: trial_verdicts.promote(root, name, ANN._replace(trial=name)))


class Voices(ScriptedBridge):
    """A model whose voices say different things, until they all say the same."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.alike, self.calls = False, 0

    def reply(self, request: Any) -> str:
        """Return a sentence of the file for a voice, and all of them for what joins the voices."""
        if request.schema:
            self.calls = 0
            return plain_reply(request)
        self.calls += 1
        return SAID[0] if self.alike else SAID[self.calls - 1] if self.calls <= len(SAID) else " ".join(SAID)


async def live_days(given: WorldFile, days: int, tell: Callable[[str], None] = lambda told: None) -> str:
    """Ask the missions of many days; return the reason of the trial that the mind then begins by itself."""
    clock, voices = Clock(), Voices()
    with tempfile.TemporaryDirectory() as home:
        async with scripted_uvm(Path(home), voices, seams=Seams(clock=clock)) as uvm:
            for day in range(days):
                voices.alike = bool(given.alike_from) and day >= given.alike_from
                if day in (given.alike_from, days - 1):
                    with uvm.image.snapshot() as root:
                        tell(f"\nOn day {day}:\n{CEM.in_words(entropy_days.describe(root, day))}")
                for number in range(MISSIONS if days > 1 else 1):
                    await ask(uvm, f"What is done at the lamp on day {day}, and what at berth {number}?")
                clock.now += timedelta(days=1)
            world = TrialWorld(uvm, now=clock.now)
            await world.night(CALLS)
            begun = world.documents()[:1]
            tell("\nNobody asks. The mind begins:\n" + "\n".join(TRIALS_SHOW.in_words(each) for each in begun))
            return begun[0]["why"] if begun else ""


def tell_rut() -> None:
    """Tell how a cognitive rut arises from missions, how the metric shows it, and what the mind does by itself."""
    rut = next(each for each in read_worlds(WORLDS) if each.expects == "started")
    print(
        f"{rut.days} days of {MISSIONS} missions each, by a scripted model: three facets answer, one voice joins them."
        f"\nFrom day {rut.alike_from} on all facets say the same."
    )
    asyncio.run(live_days(rut, rut.days, print))


async def ask(uvm: UVM, text: str) -> None:
    """Ask a mission of several voices."""
    brief = {"text": text, "user": "tester", "effort": "cycle", "policy": {"combine": "weave"}}
    await uvm.missions.ask(brief, [FILE])
    await uvm.mission_memory.write()


def put_adapter(root: Root) -> None:
    """Put an adapter there, with the model that genesis would make of it."""
    slots = {"persona": "BABS", "name": "atlas", "digest": "0a1b", "present": True, "model": "batos-babs-atlas:1"}
    own_slots(root["pLLM_obj"])[repository.REPOSITORY]["BABS/atlas"] = UvmObject(slots)


async def promote_kinds(kinds: Sequence[LeverKind]) -> list[str]:
    """Let a value of each kind of lever win a trial; return the kinds of which it was kept and then taken back."""
    found = []
    with tempfile.TemporaryDirectory() as home:
        async with trial_world(Path(home), models=["qwen2.5:0.5b"]) as world:
            await world.uvm.image.shared.apply(put_adapter)
            with world.uvm.image.snapshot() as root:
                known = levers.list_levers(root, world.models)
            for kind in kinds:
                lever = next((each for each in known if each.kind is kind), None)
                if lever is not None and await _is_promoted(world, lever):
                    found.append(kind.name)
    return found


async def _is_promoted(world: TrialWorld, lever: Lever) -> bool:
    """Let a trial of a lever's first value win, keep it where a person has to, and undo it."""
    before, value = world.acting(), lever.others[0]
    world.effects = {(each.slot, each.value): GAIN / len(value) for each in value}
    name = await world.uvm.image.shared.apply(lambda root: trials.begin(root, lever, [value], ANN, world.now))
    await world.night(600)
    if next(each for each in world.documents() if each["id"] == name)["state"] == "waiting":
        await world.uvm.image.shared.apply(lambda root: trial_verdicts.keep(root, name, ANN))
    kept = all(world.acting()[each.slot] == each.value for each in value)
    await world.undo(name)
    await world.finish()
    return kept and world.acting() == before


# -- kills, and giving way


async def try_until_killed(home: Path, calls: int) -> None:
    """Try one change in a home on a disk with so many calls at most: the process that is killed."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with scripted_uvm(home, ScriptedBridge(), memory=False) as uvm:
        world = TrialWorld(uvm, effects={("ROBIN.temperature", 0.3): 0.1})
        if not world.documents():
            await world.nights().begin("ROBIN.temperature", 0.3, ANN)
        print("begins", flush=True)
        await world.night(calls)
        print("ends", flush=True)


async def count_twice(kills: int, calls: int) -> int:
    """Kill a process that tries a change so many times; return the questions that differ from an undisturbed trial."""
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        await _spawn(whole, calls, None)
        for number in range(kills):
            await _spawn(killed, calls, 0.02 * (number % 7))
        await _spawn(killed, calls, None)
        left, right = [await _pairs(home) for home in (whole, killed)]
    return sum(left.get(item) != right.get(item) for item in left.keys() & right.keys())


async def _spawn(home: Path, calls: int, seconds: float | None) -> None:
    """Run the process; kill it so many seconds after it has begun."""
    command = [sys.executable, __file__, "--until-killed", str(home), "--calls", str(calls)]
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert child.stdout is not None
    await child.stdout.readline()
    if seconds is not None:
        await asyncio.sleep(seconds)
        if child.returncode is None:
            os.kill(child.pid, signal.SIGKILL)
    await child.communicate()


async def _pairs(home: Path) -> dict[str, object]:
    """Return what was noted of each question of the first trial."""

    def look(root: Root) -> dict[str, object]:
        kept = next(iter(root["trials"].values()))
        return {str(item): pair for item, pair in kept["pairs"].items()}

    async with scripted_uvm(home, ScriptedBridge(), memory=False) as uvm:
        with uvm.image.snapshot() as root:
            return look(root)


# -- all of it


async def measure(worlds: Sequence[WorldFile], seeds: int, *, quick: bool) -> dict[str, Any]:
    """Return the figures of every world."""
    found: dict[str, Any] = {}
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for given in worlds:
        for seed in range(seeds):
            began = time.monotonic()
            if given.days:
                why = await live_days(given, 1 if quick else given.days)
                counts[given.name].append(int(why.startswith("Hcog")))
            else:
                told, right = await live(given, seed, *((1, 40) if quick else (given.nights,)))
                kept = [each for each in told if each["state"] in trials.STANDING]
                undone = next((each["probed"] for each in told if each["state"] == "undone"), 10**6)
                value = {"promoted": int(right), "undone": undone}.get(given.expects, len(kept))
                counts[given.name].append(value)
            print(f"{given.name} {seed}: {counts[given.name][-1]} ({time.monotonic() - began:.0f} s)", flush=True)
    for given in worlds:
        values = counts[given.name]
        if given.expects == "promoted":
            found["promoted_right"] = sum(values)
        elif given.expects == "nothing":
            found[f"{given.name}_promotions"] = median(values) if given.name == "null" else max(values)
        elif given.expects == "undone":
            found["bad_undone_within"] = max(values)
        else:
            found["rut_started_unprompted" if given.expects == "started" else "healthy_started"] = sum(values)
    return found


def goals_of(found: Mapping[str, Any], seeds: int) -> list[Goal]:
    """Return what the figures should be."""
    known: Mapping[str, tuple[float, bool]] = {
        "promoted_right": (0.9 * seeds, True), "null_promotions": (1, False), "trap_promotions": (0, False),
        "bad_undone_within": (150, False), "rut_started_unprompted": (seeds, True), "healthy_started": (0, False),
        "counted_twice": (0, False), "kinds_promoted": (len(levers.KINDS), True), "yield_s": (1.0, False),
    }  # fmt: skip
    return [
        Goal(name, found[name], goal, "at_least" if least else "at_most")
        for name, (goal, least) in known.items() if name in found
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=Path, default=WORLDS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="keep and take back a value of these kinds alone")
    parser.add_argument("--tell", action="store_true", help="tell one world, and measure nothing")
    parser.add_argument("--real", metavar="FILE|NAME", help="a GGUF file, or a model that `make real` brought")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BATOS_CORPUS", BESIDE)) / "tasks")
    parser.add_argument("--nights", type=int, default=10)
    parser.add_argument("--n", type=int, default=0, help="most swept, and sealed, questions; 0: all")
    parser.add_argument("--resume", action="store_true", help="take the answers that --results has already")
    parser.add_argument("--results", type=Path, metavar="FILE", help="default: in the user's cache")
    parser.add_argument("--until-killed", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=0, help="most calls of a run with a real model; 0: no limit")
    given = parser.parse_args(argv)
    if given.until_killed is not None:
        asyncio.run(try_until_killed(given.until_killed, given.calls))
        return 0
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if given.tell:
        tell_rut()
        return 0
    if given.real:
        learnt = asyncio.run(measure_real(given))
        report(learnt, real_goals(learnt), given.json)
        return 0
    seeds = 1 if given.quick else given.seeds
    if given.kinds:
        wanted = [each for each in levers.KINDS if each.name in given.kinds]
        promoted = asyncio.run(promote_kinds(wanted))
        goal = Goal("kinds_promoted", len(promoted), len(given.kinds), "at_least")
        report({"bench": "motion", "kinds": promoted}, [goal], given.json)
        return 0

    async def run() -> dict[str, Any]:
        found = await measure(read_worlds(given.world), seeds, quick=given.quick)
        found["counted_twice"] = await count_twice(*((1, 30) if given.quick else (20, 600)))
        kinds = await promote_kinds(levers.KINDS[:1] if given.quick else levers.KINDS)
        found["kinds"], found["kinds_promoted"] = kinds, len(kinds)
        found["yield_s"] = await measure_yield(*((1, 1.0) if given.quick else (5, 5.0)))
        return found

    found = asyncio.run(run())
    report({"bench": "motion", "seeds": seeds, **found}, goals_of(found, seeds), given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
