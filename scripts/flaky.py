"""Run chosen tests again and again beside busy loops, and print what failed how often: `make flaky N=20 ARGS=...`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
#: A process that keeps a core busy for as long as who started it lives.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"
#: The lines of a failure that are printed; all of them are in the report.
LINES = 60


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def run_once(report: Path, arguments: list[str]) -> tuple[int, str]:
    """Run pytest once; return its exit code and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def failures(report: Path) -> Iterator[tuple[str, str]]:
    """Yield each test of a report that failed, with its traceback and output."""
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest has just written it)
        for each in (*case.iter("failure"), *case.iter("error")):
            yield f"{case.get('classname')}::{case.get('name')}", each.text or each.get("message") or ""


def print_run(number: int, total: int, code: int, seconds: float, failed: list[tuple[str, str]]) -> None:
    """Print a line for a run, and what failed in it in full but for the middle of long outputs."""
    print(f"run {number} of {total}: exit code {code}, {len(failed)} failed, {seconds:.0f} s", flush=True)
    for name, told in failed:
        lines = told.splitlines()
        shown = lines if len(lines) <= LINES else [*lines[: LINES // 3], "...", *lines[-2 * LINES // 3 :]]
        print(f"--- {name}", *shown, sep="\n", flush=True)


def main() -> int:
    """Run the tests; return 1 if any of them failed in any run, or if none ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--busy", type=int, default=4, help="busy loops beside the tests")
    given, arguments = parser.parse_known_args()
    counts: defaultdict[str, int] = defaultdict(int)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, busy_loops(given.busy):
        report = Path(folder) / "report.xml"
        for number in range(1, given.runs + 1):
            began = time.monotonic()
            code, said = run_once(report, arguments)
            if code not in {0, 1}:
                print(said, flush=True)
                return code
            failed = list(failures(report))
            print_run(number, given.runs, code, time.monotonic() - began, failed)
            bad += code
            for name in {name for name, _ in failed}:
                counts[name] += 1
    for name, count in sorted(counts.items(), key=lambda each: -each[1]):
        print(f"{count} of {given.runs}: {name}")
    print(f"{bad} of {given.runs} runs failed beside {given.busy} busy loops")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
