"""The cost of a verb: CPU, wall and memory of `status`, `show last` and `missions`, with a server and with none.

Each is a process of its own, over a home with a mission and an emulator beside it. `cold` is the first verb where no
server runs: it starts one, and waits for that. `warm` finds it. `alone` runs in its own process. With --before SRC the
same is measured with the package in another folder, as of an earlier commit, which has no door but its own.

    python bench/cli.py [--quick] [--before SRC] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from report import Goal, report

SRC = Path(__file__).resolve().parents[1] / "src"
VERBS = (("status",), ("show", "last"), ("missions",))
#: Nothing listens there.
NOBODY = "http://127.0.0.1:9"
BATOS = (sys.executable, "-m", "batos")


def run(environ: Mapping[str, str], *arguments: str) -> dict[str, float]:
    """Run a verb as a process and return its wall, its own CPU and its largest memory."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [*BATOS, *arguments], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"batos {' '.join(arguments)} failed: {said.decode()}")
    wall = time.perf_counter() - begun
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


@contextmanager
def emulator(folder: Path) -> Iterator[str]:
    """Run an emulator in another process; yield its address."""
    command = [*BATOS, "emulator", "--port", "0"]
    with (
        (folder / "emulator.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        yield next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        process.terminate()


def measure(source: Path, verbs: Sequence[Sequence[str]], rounds: int, *, starts: bool) -> dict[str, dict[str, float]]:
    """Measure the verbs of the package in a folder; the median of each figure, by way and verb.

    Without rounds each is run once in a home in which nothing is, with no daemon.
    """
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name, emulator(Path(name)) if rounds else nullcontext(NOBODY) as url:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BATOS_", "OLLAMA_"))}
        own = {"PYTHONPATH": str(source), "OLLAMA_HOST": url, "BATOS_HOME": str(Path(name, "home"))}
        alone = {**kept, **own, "BATOS_SERVER": "never" if starts else ""}
        auto = {**alone, "BATOS_SERVER": "auto" if starts else ""}
        if rounds:
            run(alone, "genesis", "-q")
            run(alone, "ask", "-q", "--effort", "reflex", "Why is the sky blue?")
        for _ in range(max(1, rounds)):
            for verb in verbs:
                at = "_".join(verb)
                found.setdefault(f"alone_{at}", []).append(run(alone, *verb))
                if starts:
                    found.setdefault(f"cold_{at}", []).append(run(auto, *verb))
                    found.setdefault(f"warm_{at}", []).append(run(auto, *verb))
                    run(auto, "stop")
    return {
        way: {key: round(statistics.median(each[key] for each in all_of), 3) for key in all_of[0]}
        for way, all_of in found.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one verb in an empty home: the shape, not the speed")
    parser.add_argument("--before", type=Path, metavar="SRC", help="the folder of an earlier commit's package")
    parser.add_argument("--json", type=Path, dest="json_file", help="write the document there too")
    given = parser.parse_args(arguments)
    rounds, verbs = (0, VERBS[:1]) if given.quick else (7, VERBS)
    now = measure(SRC, verbs, rounds, starts=True)
    before = measure(given.before, verbs, rounds, starts=False) if given.before else {}
    walls = before or now
    names = ["_".join(verb) for verb in verbs]
    goals = [Goal(f"warm_{each}.cpu", now[f"warm_{each}"]["cpu"], 0.25) for each in names]
    goals += [Goal(f"warm_{each}.mb", now[f"warm_{each}"]["mb"], 40) for each in names]
    for way, share in (("cold", 1.25), ("warm", 0.4)):
        goals += [
            Goal(f"{way}_{each}.wall", now[f"{way}_{each}"]["wall"], round(share * walls[f"alone_{each}"]["wall"], 3))
            for each in names
        ]
    report({"rounds": rounds, "now": now, "before": before}, goals, given.json_file)


if __name__ == "__main__":
    main()
