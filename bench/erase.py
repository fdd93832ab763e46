"""Erasure: seconds a megabyte of image and journal with one word to erase, and seconds until one that is stopped ends.

Image and journal are filled with plain objects and calls, half of the bytes each, on files, a ZEO server and
PostgreSQL; the hostile bytes are in the image. A single mission has the word, and so have the `items` that were made of
it. `linear` is the CPU time of this process for the larger of two sizes over that for the smaller, over the ratio of
their sizes. `stopped_s` is the longest time from a stop to the end, of one in each phase. `found` counts what a scan of
files and databases finds of the word afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic.item_store import ItemStore
from batos.care.erasure import HISTORY, IMAGE, JOURNAL, SEARCH, Erasure, ErasureRequest
from batos.concurrency.threads import LongWork
from batos.inference.journal import MissionLog, Record
from batos.protocol.errors import NoServer
from batos.server.dispatch.erasing import erasure_parts
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from crash import storage_uris
from report import Goal, report

MIB = 2**20
#: The word that goes, and the phases within which an erasure is stopped.
WORD = "zq7f3a9c1e5b2d8f4a6c0e"
STOPS = (SEARCH, JOURNAL, IMAGE, HISTORY)
STORAGES = ("file", "zeo", "postgres")
#: The bytes of an object, and of a commit.
PIECE, BATCH = 64 * 1024, 4 * MIB
#: Sizes in MB: two that are compared, and a large one.
SIZES, QUICK, LARGE = (4, 16), (1, 2), 1024
#: The most that four times the bytes may take over four times the time, and the seconds to the end after a stop.
LINEAR, STOPPED = 1.3, 2.0
#: Seconds between two tries to finish what was stopped, and the most tries.
PAUSE, TRIES = 1.0, 300


def piece(kind: str, dice: random.Random, size: int = PIECE) -> str:
    """Return so many characters of a kind."""
    if kind == "x^":
        return "x^" * (size // 2)
    if kind == "near":
        return (WORD[:-1] + " ") * (size // len(WORD))
    if kind == "line":
        return "".join(dice.choices("abcdefghij0123456789", k=size))
    return " ".join(f"{dice.getrandbits(40):x}" for _ in range(size // 11))


async def fill(uvm: UVM, megabytes: float, kind: str) -> None:
    """Give image and journal each half of so many bytes."""
    dice, left = random.Random(1), int(megabytes * MIB / 2)
    sizes = [min(BATCH, left - done) for done in range(0, left, BATCH)]
    for number, size in enumerate(sizes):
        # A long line is a single object.
        texts = [piece(kind, dice, size)] if kind == "line" else [piece(kind, dice) for _ in range(size // PIECE)]
        calls = [piece("words", dice, 2 * PIECE) for _ in range(size // PIECE)]  # a call is deflated to about a half

        def store(root: Any, number: int = number, texts: Sequence[str] = texts) -> None:
            if "bench" not in root:
                root["bench"] = OOBTree()
            for place, each in enumerate(texts):
                root["bench"][f"{number} {place}"] = PersistentMapping(text=each)

        def journal(root: Any, number: int = number, calls: Sequence[str] = calls) -> None:
            log = root["missions"][f"m-{number:026}"] = MissionLog()
            for place, each in enumerate(calls):
                log.put(_call(f"m-{number:026}", place, each))

        await uvm.image.writer.apply(store)
        await uvm.image.journal_writer.apply(journal)


def _call(mission: str, place: int, text: str) -> Record:
    request = {"messages": [{"role": "user", "content": text}]}
    at = "2026-11-29T00:00:00.000Z"
    return Record(
        f"{mission} {place}", mission, "facet", "model", "", request, "done", at, at, {"content": "yes"},
    )  # fmt: skip


class Mind:
    """A mind on a storage that is filled, and in which one mission has the word."""

    def __init__(self, uvm: UVM, home: Path) -> None:
        self.uvm, self.home, self.items = uvm, home, 0
        self._erasure = Erasure(erasure_parts(uvm))
        self._request = ErasureRequest(WORD, "tester", "tester")

    async def tell(self) -> None:
        """Tell it the word once, and have it make a question whose answer has the word."""
        told = f"The long key of the old safe in the hall of Holm Light is {WORD} since the winter. Keep it."
        await self.uvm.missions.ask({"text": told, "effort": "reflex", "user": "tester"})
        await self.uvm.mission_memory.write()
        store = ItemStore(self.uvm.image, self.uvm.readings.recollection.search, self.uvm.clock)
        self.items += await store.refresh()

    async def erase(self) -> tuple[float, float, int]:
        """Erase the word; return the seconds, those of CPU, and what is found of it afterwards."""
        began, used = perf_counter(), process_time()
        page = await self._erasure.erase(self._request, LongWork())
        spent, used = perf_counter() - began, process_time() - used
        files = [each for each in await asyncio.to_thread(lambda: [*self.home.rglob("*")]) if each.is_file()]
        return spent, used, len(page["found"]) + sum([WORD.encode() in each.read_bytes() for each in files])

    async def stop(self, phase: str) -> float:
        """Begin to erase, stop within a phase, and return the seconds from there to the end; then finish it."""
        stopped: list[float] = []

        def on_phase(name: str, done: int, whole: int) -> None:
            if name == phase and not stopped:
                stopped.append(perf_counter())
                work.stop()

        work = LongWork(on_phase, least=0)
        with suppress(NoServer):
            await self._erasure.erase(self._request, work)
        spent = perf_counter() - stopped[0]
        await self._finish()
        return spent

    async def _finish(self) -> None:
        """Finish what was stopped, as a server does: again and again while its storage still packs."""
        for left in reversed(range(TRIES)):
            try:
                await self._erasure.finish(LongWork())
            except Exception as error:  # each storage has its own
                if not left:
                    raise
                print(f"not finished yet: {type(error).__name__}", file=sys.stderr)
                await asyncio.sleep(PAUSE)
            else:
                return


async def measure(storage: str, megabytes: int, kind: str, *, stops: Sequence[str] = ()) -> dict[str, Any]:
    """Fill a mind on a storage, erase the word, and stop further erasures."""
    with tempfile.TemporaryDirectory(prefix="batos-erase-") as name, storage_uris(storage, Path(name)) as uris:
        home, (image, journal) = Path(name) / "home", uris
        async with scripted_uvm(home, ScriptedBridge(), memory=False, image=image, journal=journal) as uvm:
            mind = Mind(uvm, home)
            await mind.tell()
            await fill(uvm, megabytes, kind)
            sizes = uvm.image.sizes()
            size = (sizes["bytes"] + sizes["journal_bytes"]) / MIB
            spent, used, found = await mind.erase()
            stopped = []
            for phase in stops:
                await mind.tell()
                stopped.append(await mind.stop(phase))
    told = {"mb": round(size, 1), "seconds": round(spent, 2), "cpu_s": round(used, 2), "found": found}
    told["items"] = mind.items
    told["s_per_mb"] = round(spent / size, 4)
    return told | ({"stopped_s": round(max(stopped), 2)} if stopped else {})


async def run(sizes: Sequence[int], storages: Sequence[str], kinds: Sequence[str], large: int) -> dict[str, Any]:
    """Measure each storage and kind at both sizes, and words at the large one."""
    rows: dict[str, Any] = {}
    for storage in storages:
        for kind in kinds if storage == storages[0] else kinds[:2]:
            small = await measure(storage, sizes[0], kind)
            big = await measure(storage, sizes[1], kind, stops=STOPS)
            linear = big["cpu_s"] / small["cpu_s"] / (sizes[1] / sizes[0])
            rows[f"{storage} {kind}"] = {"small": small, "big": big, "linear": round(linear, 2)}
            print(f"{storage} {kind}: {rows[f'{storage} {kind}']}", file=sys.stderr)
        if large:
            rows[f"{storage} large"] = {"big": await measure(storage, large, "words", stops=STOPS)}
            print(f"{storage} large: {rows[f'{storage} large']}", file=sys.stderr)
    return summary(rows)


def summary(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the worst of all rows, and these."""
    each = [part for row in rows.values() for part in row.values() if isinstance(part, dict)]
    return {
        "rows": rows,
        "linear": max(row["linear"] for row in rows.values() if "linear" in row),
        "s_per_mb": max(row["big"]["s_per_mb"] for row in rows.values()),
        "stopped_s": max(part["stopped_s"] for part in each if "stopped_s" in part),
        "found": sum(part["found"] for part in each),
    }


def main(arguments: list[str]) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", choices=STORAGES, action="append")
    parser.add_argument("--large", type=int, default=LARGE, help="MB of the large mind; 0: none")
    parser.add_argument("--quick", action="store_true", help="a smoke run: small minds in files")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    if given.quick:
        values = asyncio.run(run(QUICK, ("file",), ("words", "x^"), 0))
    else:
        kinds = ("words", "x^", "line", "near")
        values = asyncio.run(run(SIZES, given.storage or STORAGES, kinds, given.large))
    goals = [
        Goal("linear", values["linear"], LINEAR), Goal("stopped_s", values["stopped_s"], STOPPED),
        Goal("found", values["found"], 0),
    ]  # fmt: skip
    report(values, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
