"""The cost of the chain of digests: its share of the time in which a mission is committed.

A mission's records are written to a journal in a file, as missions write them. The time of the digests alone, over the
same records, is compared with the time of the journal's commits and of the mission's own commit in the image.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from batos.inference.journal import Journal, canonical_bodies, chain_digest
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from report import Goal, report

#: The largest share of a mission's commits that the chain may take.
MOST: float = 0.05


async def measure(uvm: UVM, missions: int) -> tuple[float, float]:
    """Return the seconds of a mission's commits, and those of its digests, in the median."""
    commits: list[float] = []
    digests: list[float] = []
    spent = 0.0
    write, commit = Journal.write, uvm.image.writer.apply

    async def timed_write(self: Journal, record: Any) -> None:
        nonlocal spent
        began = perf_counter()
        await write(self, record)
        spent += perf_counter() - began

    async def timed_commit(change: Any) -> Any:
        nonlocal spent
        began = perf_counter()
        try:
            return await commit(change)
        finally:
            spent += perf_counter() - began

    Journal.write = timed_write  # type: ignore[method-assign]
    uvm.image.writer.apply = timed_commit  # type: ignore[method-assign]
    for number in range(missions):
        spent = 0.0
        told = await uvm.missions.ask({"text": f"What does the keeper do on night {number}?", "effort": "reflex"})
        commits.append(spent)
        records = uvm.journal.read([told["id"]])
        forms = [canonical_bodies(record) for record in records]
        began = perf_counter()
        for record, bodies in zip(records, forms, strict=True):
            chain_digest(record, bodies)
        digests.append(perf_counter() - began)
    return statistics.median(commits), statistics.median(digests)


async def run(missions: int) -> dict[str, Any]:
    """Measure in a home on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_uvm(Path(folder), ScriptedBridge(), memory=False) as uvm:
            commits, digests = await measure(uvm, missions)
    return {
        "missions": missions,
        "commits_ms": round(commits * 1_000, 3),
        "digests_ms": round(digests * 1_000, 3),
        "ratio": round(digests / commits, 4),
    }


def main(arguments: list[str]) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missions", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    values = asyncio.run(run(5 if given.quick else given.missions))
    report(values, [Goal("ratio", values["ratio"], MOST)], given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
