"""The law that nothing is paid twice, of missions that learn while they are killed at each of their steps.

Every mission has a home of its own as it is after genesis, so that it makes its methods itself. A process runs the
mission and kills itself with SIGKILL at a step to which none has come before (a state that is entered, a call in the
journal, a method that is installed), and by the next one, and the next, until one comes to the end. Of every four
missions one dies at each of its steps, the others after as many further ones as a seed says. A request of which the
journal had the answer was paid twice if it comes to the daemon again, and if the mission's answer does not rest on it:
then something else was asked in its place. A choice has changed if a later attempt noted another than an earlier one,
or what ran is not what was noted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.events import Events
from batos.uvm import open_uvm
from ollama_emulator.emulator import Emulator, Options
from replay_side import request_of
from report import Goal, report

_SIDE = Path(__file__).with_name("replay_side.py")
PERSONAS = ("BRICK", "ROBIN", "BABS", "ALFRED")
#: A mission in so many is a council, one a reflex and one has two voices; one in so many of their methods' uses is a
#: control.
COUNCIL, REFLEX, DUET, CONTROL = 20, 10, 10, 3
#: A mission in so many dies at each of its steps; the others survive at most so many further ones at a time.
EACH, FURTHER = 4, 12
#: A mission that dies oftener than this goes round in circles.
MOST_KILLS = 400


@dataclass(slots=True)
class Tally:
    """Holds what was counted so far."""

    missions: int = 0
    done: int = 0
    kills: int = 0
    calls: int = 0
    paid_twice: int = 0
    changed_choices: int = 0
    #: The steps at which missions died; a generation's log is as good as its name.
    points: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bed:
    """Gathers what missions die with: a daemon, a home as it is after genesis, and the process that forks others."""

    emulator: Emulator
    url: str
    template: Path
    stem: asyncio.subprocess.Process

    @classmethod
    @asynccontextmanager
    async def open_bed(cls, folder: Path) -> AsyncIterator[Bed]:
        """Make a bed, and end it."""
        options = Options(embedder=lambda text: [1.0, float(len(text))])
        emulator, template = Emulator(options), folder / "template"
        async with emulator.serving() as url:
            async with open_uvm(Settings(home=template, user="bench", ollama_host=url), Events(log=False)) as uvm:
                await uvm.readiness.genesis()
            stem = await asyncio.create_subprocess_exec(
                sys.executable,
                str(_SIDE),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=64 * 1024 * 1024,
            )
            try:
                yield cls(emulator, url, template, stem)
            finally:
                assert stem.stdin is not None
                stem.stdin.close()
                await stem.wait()

    async def process(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a forked process said until it ended."""
        assert self.stem.stdin is not None
        assert self.stem.stdout is not None
        self.stem.stdin.write(json.dumps(job).encode() + b"\n")
        said: dict[str, Any] = {}
        while "ended" not in said:
            said |= json.loads(await self.stem.stdout.readline())
        return said


def brief_of(number: int) -> dict[str, Any]:
    """Return a question that no other mission asks."""
    kind = "council" if number % COUNCIL == COUNCIL - 1 else "reflex" if number % REFLEX == REFLEX - 1 else "cycle"
    text = f"How is pier {number} kept from the sea, and what did its {number + 2} lamps cost?"
    several = kind == "council" or number % DUET == 4
    return {"text": text, "effort": kind} | ({} if several else {"persona": PERSONAS[number % 4]})


async def kill_until_done(bed: Bed, home: Path, number: int, tally: Tally) -> None:
    """Kill a mission until it is done."""
    shutil.copytree(bed.template, home)
    job: dict[str, Any] = {"home": str(home), "ollama": bed.url, "control": CONTROL, "brief": brief_of(number)}
    job |= {"mission": None, "passed": []}
    tally.missions += 1
    seed, known = random.Random(number), set[str]()
    for _ in range(MOST_KILLS):
        job["further"] = seed.randrange(FURTHER + 1) if number % EACH else 0
        bed.emulator.requests.clear()
        said = await bed.process(job)
        known |= set(said.get("answered", ()))
        asked = [each["body"] for each in bed.emulator.requests if each["path"] == "/api/chat"]
        tally.calls += len(asked)
        tally.paid_twice += sum(
            request_of(body["messages"], body.get("format"), body.get("options", {})) in known for body in asked
        )
        if said["ended"] != -signal.SIGKILL:
            break
        tally.kills += 1
        job["mission"] = said["mission"]
        job["passed"] += said["new"]
        tally.points.add(said["new"][-1].replace(said["mission"], "mission"))
    shutil.rmtree(home)
    if said.get("status") != "done":
        tally.errors.append(f"mission {number} ended as {said.get('status')}, its process with {said['ended']}")
        return
    tally.done += 1
    tally.changed_choices += said["changed"]
    tally.paid_twice += len(known - set(said["used"]))


async def measure_missions(missions: Iterable[int], beds: int) -> Tally:
    """Run the missions of these numbers, so many side by side."""
    tally, numbers = Tally(), iter(missions)

    async def work(folder: Path) -> None:
        await asyncio.to_thread(folder.mkdir)
        async with Bed.open_bed(folder) as bed:
            for number in numbers:
                await kill_until_done(bed, folder / str(number), number, tally)
                if tally.missions % 10 == 0:
                    print(f"{tally.missions} missions, {tally.kills} kills", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="batos-replay-") as place:
        async with asyncio.TaskGroup() as group:
            for each in range(beds):
                group.create_task(work(Path(place) / str(each)))
    return tally


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Count what missions that are killed at every step pay twice.")
    parser.add_argument("--missions", type=int, default=200, help="how many are killed until they are done")
    parser.add_argument("--beds", type=int, default=2, help="how many side by side")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    # The first of those that do not die at each of their steps.
    missions, beds = (range(1, 2), 1) if options.quick else (range(options.missions), options.beds)
    tally = asyncio.run(measure_missions(missions, beds))
    for error in tally.errors:
        print(error, file=sys.stderr)
    goals = [
        Goal("paid twice", tally.paid_twice, 0),
        Goal("changed choices", tally.changed_choices, 0),
        Goal("missions that did not come to their end", len(missions) - tally.done, 0),
    ]
    values = {"kills": tally.kills, "paid_twice": tally.paid_twice, "changed_choices": tally.changed_choices}
    report(
        {**values, "missions": tally.missions, "done": tally.done, "calls": tally.calls, "points": len(tally.points)},
        goals,
        options.json,
    )


if __name__ == "__main__":
    main()
