"""Bytes that a turn adds to image and journal, at the start of a home's life and after many turns.

Turns of 1 KB in conversations, by one process over a scripted model, in files, so that the figures are of commits
alone; they are remembered and indexed as always. The turns are counted in ten equal parts: the first but one and the
last are compared, since the first holds what is made only once. Then both databases are packed to now: `ratio` is the
size with all history over that of the packed image. `journal_ratio` is the journal over the bytes of the prompts and
answers in it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ZODB.FileStorage import FileIterator
from ZODB.utils import get_pickle_metadata

from batos.inference.canonical import canonical
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from report import Goal, report

#: Missions that run at once, parts of the run, and how much more a turn may add at the end than at the start.
AT_ONCE, PARTS, GROWTH = 8, 10, 1.1
#: Turns of a conversation, the characters of a message, and the largest sizes beside the packed image and the words.
TURNS, MESSAGE, RATIO, JOURNAL_RATIO = 100, 1_000, 2.5, 1.5
FILES: Mapping[str, str] = {"image": "live_image.fs", "journal": "journal.fs"}
#: Classes that are told of a part, those of most bytes.
TOLD = 6


def sizes(home: Path) -> dict[str, int]:
    """Return the bytes of image and journal."""
    return {name: (home / file).stat().st_size for name, file in FILES.items()}


def by_class(path: Path, since: int) -> Counter[str]:
    """Count the bytes of records that were appended to a file since it had so many bytes, by their class."""
    found: Counter[str] = Counter()
    records = FileIterator(str(path), pos=since) if since else FileIterator(str(path))
    try:
        for transaction in records:
            for record in transaction:
                if record.data:
                    found[".".join(get_pickle_metadata(record.data)[:2])] += len(record.data)
    finally:
        records.close()
    return found


def message(number: int) -> str:
    """Return a message of 1 KB, no two of which are alike."""
    text = f"What does the keeper do on night {number}? "
    while len(text) < MESSAGE:
        text += f"On night {number} ship {len(text)} passed the pier of Orm with {number % 97} barrels of oil. "
    return text[:MESSAGE]


def count_words(uvm: UVM) -> int:
    """Return the bytes of all prompts and answers in the journal."""
    with uvm.image.snapshot() as root:
        missions = list(root["missions"])
    records = uvm.journal.read(missions)
    return sum(len(canonical(each.request.get("messages", []))) + len(canonical(each.response)) for each in records)


async def part(uvm: UVM, first: int, many: int) -> None:
    """Ask so many questions, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)
    conversations: dict[int, str] = {}

    async def one(number: int) -> None:
        async with gate:
            conversation = conversations.get(number // TURNS, "new")
            brief = {"text": message(number), "effort": "reflex", "conversation": conversation}
            told = await uvm.missions.ask(brief)
            conversations[number // TURNS] = told["brief"]["conversation"]

    await asyncio.gather(*(one(number) for number in range(first, first + many)))


async def measure(missions: int, home: Path) -> dict[str, Any]:
    """Run the missions; return bytes per mission by part, what they are made of, and what packing leaves."""
    many = max(1, missions // PARTS)
    told: dict[str, Any] = {"missions": many * PARTS, "bytes": {name: [] for name in FILES}}
    async with scripted_uvm(home, ScriptedBridge(), memory=False) as uvm:
        began = before = sizes(home)
        starts = [began]
        for number in range(PARTS):
            await part(uvm, number * many, many)
            now = sizes(home)
            starts.append(now)
            for name in FILES:
                told["bytes"][name].append(round((now[name] - before[name]) / many))
            before = now
            newest = {name: each[-1] for name, each in told["bytes"].items()}
            print(f"part {number + 1} of {PARTS}: {newest}", file=sys.stderr)
        told["start"] = {name: each[1] for name, each in told["bytes"].items()}
        told["end"] = {name: each[-1] for name, each in told["bytes"].items()}
        told["growth"] = {name: round(told["end"][name] / told["start"][name], 3) for name in FILES}
        told["by_class"] = {
            name: {kind: round(size / many) for kind, size in by_class(home / file, starts[-2][name]).most_common(TOLD)}
            for name, file in FILES.items()
        }
        await uvm.mission_memory.write()
        whole, words = sizes(home), count_words(uvm)
        await asyncio.to_thread(uvm.image.db.pack)
        await asyncio.to_thread(uvm.image.journal_db.pack)
        left = sizes(home)
        told["ratio"] = round(whole["image"] / left["image"], 3)
        told["journal_ratio"] = round(whole["journal"] / words, 3)
        told["bytes_per_turn_first"] = sum(told["start"].values())
        told["bytes_per_turn_last"] = sum(told["end"].values())
        told["packed"] = {name: round((left[name] - min(began[name], left[name])) / (many * PARTS)) for name in FILES}
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--missions", type=int, default=1500)
    options.add_argument("--quick", action="store_true", help="a few missions: the shape alone")
    options.add_argument("--json", type=Path, help="write the document there too")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="batos-growth-") as folder:
        told = asyncio.run(measure(20 if given.quick else given.missions, Path(folder)))
    goals = [Goal(f"growth of the {name}", told["growth"][name], GROWTH) for name in FILES]
    goals += [Goal("ratio", told["ratio"], RATIO), Goal("journal_ratio", told["journal_ratio"], JOURNAL_RATIO)]
    report(told, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
