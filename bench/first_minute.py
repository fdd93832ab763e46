"""The first minute of a person who has just run genesis: how soon an answer begins, ends, and what stands around it.

An emulator of a small card (`--tok-s 25 --load-s 3`: prompts at twenty times that) and a fresh home. Then, as a person
does it, on terminals of 80 columns: a plain question by one call, a question about a text by a cycle, and a second
cycle about another text. Each time is wall time from the start of the process: imports, opening the image, routing,
loading and the way to the terminal are in it. The answer is there when its process has ended.

    python bench/first_minute.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.image.ownership import NOBODYS_DOORS
from batos.uvm import open_uvm
from report import Goal, report
from terminal_side import TerminalRun, on_a_terminal
from voice_side import NO_VECTORS

TOKENS_A_SECOND, LOAD_SECONDS, PROMPTS = 25.0, 3.0, 20
PLAIN = "Why is the sky blue?"
#: Asked beside each text: the same words, so that one cycle is as long as another.
QUESTION = "How did they close the breach in the pier, and why was the first plan refused?"
HARBOUR = (Path(__file__).parents[1] / "examples" / "harbour.txt").read_text(encoding="utf-8")
ALLOWED = {"first token": 1.0, "second cycle": 1.1, "lines": 3, "left out": 0}


@dataclass(slots=True)
class Tally:
    """Holds what was measured, a figure for each round."""

    first: dict[str, list[float]] = field(default_factory=lambda: {"reflex": [], "cycle": []})
    answers: dict[str, list[float]] = field(default_factory=lambda: {"reflex": [], "cycle": [], "second_cycle": []})
    #: Seconds from the start to the first token beyond those of reading the prompt, and of loading where it loaded.
    beyond: list[float] = field(default_factory=list)
    #: Number of models that were loaded for each plain question.
    loads: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    left_out: int = 0


@contextmanager
def emulator(folder: Path, rate: float, load: float) -> Iterator[str]:
    """Run an emulator with this speed in another process; yield its address."""
    command = [sys.executable, "-m", "batos", "emulator", "--port", "0", "--tok-s", str(rate), "--load-s", str(load)]
    if not rate:  # where nothing is measured, no router learns by meaning
        (folder / "faults.json").write_text(json.dumps([NO_VECTORS]), encoding="utf-8")
        command += ["--faults", str(folder / "faults.json")]
    with (
        (folder / "emulator.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise SystemExit(f"the emulator did not start: {(folder / 'emulator.log').read_text(encoding='utf-8')}")
            yield found[0]
        finally:
            process.terminate()


class Person:
    """Somebody at a terminal, with a home of their own."""

    def __init__(self, home: Path, host: str) -> None:
        # A package that a person has installed is compiled: nobody waits for that at every question.
        others = ("BATOS_", "OLLAMA_", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self.environ = {**kept, "BATOS_HOME": str(home), "OLLAMA_HOST": host}

    def run(self, *words: str | Path, together: bool = False) -> TerminalRun:
        """Run a verb to its end; a failure ends the measurement."""
        ran = on_a_terminal([sys.executable, "-m", "batos", *words], self.environ, together=together)
        if ran.code != 0:
            raise SystemExit(f"batos {' '.join(map(str, words))}: exit {ran.code}\n" + "\n".join(ran.err.text))
        return ran

    @property
    def settings(self) -> Settings:
        """Return the settings by which this process opens their home."""
        return Settings(home=Path(self.environ["BATOS_HOME"]), ollama_host=self.environ["OLLAMA_HOST"])

    async def make_home(self) -> None:
        """Run genesis in this process, where nobody measures what it leaves."""
        async with open_uvm(self.settings) as uvm:
            await uvm.readiness.genesis()

    async def missions(self) -> list[Mapping[str, Any]]:
        """Return what was asked, whole, from the first question on."""
        async with open_uvm(self.settings) as uvm:
            return [uvm.readings.mission(line["id"]) for line in reversed(uvm.readings.newest(without=NOBODYS_DOORS))]


def beside(ran: TerminalRun, answer: str) -> list[str]:
    """Return the lines that stand on both terminals in the end and are no part of the answer or its footnotes."""
    told = without_marks(answer)
    own = [line for line in without_notes(ran.out.text) if without_marks(line) not in told]
    return [line for line in (*own, *without_notes(ran.err.text)) if line.strip()]


def without_marks(text: str) -> str:
    """Return a text in one line without the numbers of footnotes, which the terminal puts behind its sentences."""
    return " ".join(re.sub(r"\[\d+\]", " ", text).split())


def without_notes(lines: Sequence[str]) -> list[str]:
    """Return the lines but for footnotes: `[1] file: "words"`, and what goes on below it further in."""
    kept, within = list[str](), False
    for line in lines:
        within = bool(re.match(r"\[\d+\] ", line)) or (within and line.startswith("    "))
        if not within:
            kept.append(line)
    return kept


def count_omitted(mission: Mapping[str, Any]) -> int:
    """Count the passages of the files that the model was not shown."""
    return int(mission["provenance"]["omitted"]["passages"])


def round_of(number: int, folder: Path, rate: float, load: float, tally: Tally) -> None:
    """Make a fresh home and ask three questions in it."""
    with emulator(folder, rate, load) as host:
        person = Person(folder / "home", host)
        if rate:
            person.run("genesis")
        else:
            asyncio.run(person.make_home())
        texts = []
        for name, place in (("first", "pier"), ("second", "quay")):
            texts.append(folder / f"{name}-{number}.txt")
            texts[-1].write_text(HARBOUR.replace("pier", place), encoding="utf-8")
        cycle = ("--effort", "cycle", "--persona", "BRICK", "--file")
        asked = {
            "reflex": person.run("ask", PLAIN, "--effort", "reflex"),
            "cycle": person.run("ask", QUESTION, *cycle, texts[0]),
        }
        if rate:  # what nothing is measured by is compared with nothing
            asked["second_cycle"] = person.run("ask", QUESTION, *cycle, texts[1])
        missions = asyncio.run(person.missions())
    for (kind, ran), mission in zip(asked.items(), missions, strict=True):
        assert ran.first_s is not None
        tally.answers[kind].append(ran.seconds)
        around = beside(ran, str(mission["answer"]))
        tally.lines.append(len(around))
        tally.left_out += count_omitted(mission)
        if kind in tally.first:
            tally.first[kind].append(ran.first_s)
        if kind == "reflex":
            prompt = mission["cost"]["prompt_tokens"] / (rate * PROMPTS) if rate else 0.0
            tally.loads.append(mission["cost"]["loads"])
            # A genesis leaves a runner that all personas share, so a first question may have nothing to load.
            tally.beyond.append(ran.first_s - load * mission["cost"]["loads"] - prompt)
        print(
            f"round {number + 1}, {kind}: first token after {ran.first_s:.1f} s, ended after {ran.seconds:.1f} s, "
            f"{mission['cost']['calls']} calls, {len(around)} lines beside the answer",
            file=sys.stderr,
        )


def figures(tally: Tally) -> dict[str, Any]:
    """Return the medians over the rounds; of lines the most."""
    seconds = {
        name: {kind: round(statistics.median(values), 2) if values else None for kind, values in of.items()}
        for name, of in (("first_token_s", tally.first), ("answer_s", tally.answers))
    }
    first, second = seconds["answer_s"]["cycle"], seconds["answer_s"]["second_cycle"]
    return {
        **seconds,
        "lines_beside_answer": max(tally.lines),
        "passages_left_out": tally.left_out,
        "loads_for_reflex": max(tally.loads),
        "first_token_beyond_load_and_prompt_s": round(statistics.median(tally.beyond), 2),
        "first_cycle_over_second": round(first / second, 3) if first and second else None,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Measure the first minute after genesis.")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    rounds, rate, load = (1, 0.0, 0.0) if options.quick else (3, TOKENS_A_SECOND, LOAD_SECONDS)
    tally = Tally()
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="batos-bench-") as folder:
            round_of(number, Path(folder), rate, load, tally)
    found = figures(tally)
    goals = [
        Goal(
            "first token beyond load and prompt",
            found["first_token_beyond_load_and_prompt_s"],
            ALLOWED["first token"],
        ),
        Goal("first cycle over second", found["first_cycle_over_second"], ALLOWED["second cycle"]),
        Goal("lines beside the answer", found["lines_beside_answer"], ALLOWED["lines"]),
        Goal("passages left out", found["passages_left_out"], ALLOWED["left out"]),
    ]
    report({**found, "rounds": rounds, "tokens_a_second": rate, "load_s": load}, goals, options.json)


if __name__ == "__main__":
    main()
