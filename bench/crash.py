"""Kills a process under load, again and again, and accounts from outside for all that it had accepted.

Half of the kills are at random instants, half at a phase, in turn: at the acceptance, in each state of the machine, in
a commit, before the publication, after it, and at the points of an effect's life. After every fifth kill two processes
start on the same home at once: with files one has to give way, on a server both work and both are killed. At the end
every accepted mission is accounted for: by the bench's own ledger of acknowledgements, which is synced before anything
else happens, by the emulator's log of paid calls, and by what the targets of effects have seen. `harm` is the sum of
all that went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import servers_side
from batos.agency.records import effect_records
from batos.care import verification
from batos.config import Settings
from batos.history import record_chain
from batos.image.readable import open_read_only
from batos.image.transactions import snapshot
from batos.uvm import open_uvm
from crash_world_side import CALL, Process, Serving, World
from report import Goal, report

#: Seconds until a random kill at most, that a phase is waited for, and until a process has the image.
LONGEST, PATIENCE, STARTS = 1.5, 6.0, 30.0
#: Two processes start at once before each of so many kills.
RIVALS = 5
#: Seconds before a kill in which a call was in flight: it was answered and not yet in the journal.
SLACK = 0.3
#: Seconds after which a call is seen at the latest.
SEEN = 0.05


class CrashDocument(TypedDict):
    """The figures of a run, as the document has them: `make crash` is run by CI itself, and by no test."""

    kills: int
    accepted: int
    lost: int
    duplicated: int
    paid_twice: int
    parked: int
    verify_failures: int
    harm: int
    calls: int
    phases: dict[str, int]
    statuses: dict[str, int]


async def one_kill(world: World, number: int, broken: str, dice: random.Random) -> None:
    """Start a process, sometimes two at once, put one under load, and kill it."""
    phase = world.next_phase() if number % 2 else ""
    process = await Process.start(world, phase, dice.randrange(2), broken)
    rival = await Process.start(world, broken=broken) if number % RIVALS == 0 else None
    await process.wait_until_begun(STARTS)
    if rival is not None and not process.has_begun:  # the rival was faster
        process, rival = rival, process
    beside = [rival] if rival is not None and not world.image.startswith("file:") else []
    if rival is not None and not beside and not await rival.gives_way():
        raise RuntimeError("two processes had the image at once")
    until = asyncio.ensure_future(process.at.wait())
    loading = asyncio.ensure_future(process.load(until))
    world.tried[phase] += 1
    await asyncio.wait([until], timeout=PATIENCE if phase else dice.uniform(0, LONGEST))
    await asyncio.gather(*(each.kill() for each in (process, *beside)))
    for task in (until, loading):
        task.cancel()
    await asyncio.gather(until, loading, return_exceptions=True)


async def settle(world: World, broken: str) -> list[str]:
    """Let a last process bring everything to its end, and return the statuses of what was acknowledged."""
    process = await Process.start(world, broken=broken if broken == "journal-late" else "")
    await process.ready.wait()
    missions = [each for each in world.acked.values() if each != "m-unknown"]
    statuses: list[str] = []
    for _ in range(600):
        statuses = await process.ask(missions)
        if all(each in ("done", "failed", "cancelled", "parked") for each in statuses):
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    await process.leave()
    return statuses


def count_paid_twice(world: World) -> int:
    """Count the calls that were asked again although none of them was in flight at a kill."""
    twice = 0
    for digest, moments in world.calls.items():
        for before, again in pairwise(moments):
            in_flight = any(before - SEEN <= kill <= before + CALL + SLACK for kill in world.kills)
            if not in_flight and again > before:
                twice += 1
                explain(world, world.askers.get(digest, ""), before, again)
    return twice


def explain(world: World, token: str, before: float, again: float) -> None:
    """Tell what happened to a mission between a call and the same call again, in seconds since the first."""
    kills = ", ".join(f"{kill - before:.2f}" for kill in world.kills if before - 1 < kill < again + 1) or "none"
    print(f"{token} paid twice after {again - before:.2f} s, kills at {kills}", file=sys.stderr)
    mission, file = world.acked.get(token), world.folder / "events"
    for line in file.read_text().splitlines() if file.exists() else ():
        told = json.loads(line)
        if told["mission"] == mission and before - 2 < told["at"] < again + 1:
            print(f"  {told.pop('at') - before:+.3f} {json.dumps(told)}", file=sys.stderr)


def count_effects(world: World) -> tuple[int, int]:
    """Return how many effects happened more than once, and how many did not happen though nobody is asked."""
    file = world.folder / "notes" / "log.txt"
    lines = Counter(file.read_text().splitlines() if file.exists() else ())
    applied = Counter(json.dumps(data) for _, data in dict(world.posted["inbox"]).items())
    blind = Counter(json.dumps(data) for _, data in world.posted["dark"])
    duplicated = sum(count - 1 for counts in (lines, applied, blind) for count in counts.values())
    with open_read_only(world.image, world.journal) as faces, faces.root() as root:
        told = {each["mission"]: dict(each) for each in root["effects"].values()}
    lost = 0
    for mission in world.acked.values():
        effect = told.get(mission)
        if effect is None or effect["state"] == "unknown":
            continue
        payload = effect["payload"]
        happened = lines[payload["text"].rstrip("\n")] if "text" in payload else (
            (applied if effect["grant"] == "inbox" else blind)[json.dumps(payload["data"])]
        )  # fmt: skip
        lost += not happened
    return duplicated, lost


def count_faults(world: World) -> int:
    """Return the faults of the image, and of the chains of records."""
    with open_read_only(world.image, world.journal) as faces:
        found = len(verification.find_faults(faces.image))
        with snapshot(faces.journal) as journal, faces.root() as root:
            found += len(record_chain.read_calls(journal).find_faults())
            found += len(record_chain.read_effects(root).find_faults())
    return found


@contextmanager
def storage_uris(storage: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Start the server of a storage, if it has one, and yield the URIs of image and journal there."""
    if storage == "file":
        yield f"file://{folder}/home/live_image.fs?blobstorage_dir={folder}/home/blobs", ""
    elif storage == "zeo":
        with servers_side.zeo_server(folder) as port:
            yield f"zeo://127.0.0.1:{port}?blob_dir={folder}/cache", ""
    else:
        with servers_side.postgres_server() as server:
            servers_side.ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
            yield f"{server}image?blob_dir={folder}/cache", f"{server}journal"


async def run(kills: int, storage: str, broken: str, seed: int) -> CrashDocument:
    """Kill so often, and account for everything."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="batos-crash-") as name, storage_uris(storage, Path(name)) as uris:
        async with Serving(Path(name), *uris) as world:
            await prepare(world)
            world.slow_down()
            for number in range(kills):
                await one_kill(world, number, broken, dice)
                if number % 10 == 9:
                    print(f"{number + 1} kills, {len(world.acked)} missions accepted", file=sys.stderr)
            statuses = await settle(world, broken)
            duplicated, undone = count_effects(world)
            counts = Counter(statuses)
            known = [each for each in world.acked.values() if each != "m-unknown"]
            missing = len(world.acked) - len(known) if broken == "ack-first" else 0
            lost = len(known) - counts["done"] - counts["parked"] + undone + (missing and count_unknown(world))
            paid_twice, faults = count_paid_twice(world), count_faults(world)
            return CrashDocument(
                kills=len(world.kills), accepted=len(world.acked), lost=lost, duplicated=duplicated,
                paid_twice=paid_twice, parked=counts["parked"], verify_failures=faults,
                harm=lost + duplicated + paid_twice + counts["parked"] + faults,
                calls=sum(map(len, world.calls.values())), phases=dict(world.phases), statuses=dict(counts),
            )  # fmt: skip


def count_unknown(world: World) -> int:
    """Count acknowledged keys that no mission of the image has."""
    with open_read_only(world.image, world.journal) as faces, faces.root() as root:
        keys = {key.partition("\0")[2] for key in root["repeats"]}
    return sum(token not in keys for token, mission in world.acked.items() if mission == "m-unknown")


async def prepare(world: World) -> None:
    """Make the home, and grant what missions act by."""
    (world.folder / "notes").mkdir()
    settings = Settings(
        home=world.home, image=world.image, journal=world.journal, ollama_host=world.url, user="tester",
        install="never",
    )  # fmt: skip
    async with open_uvm(settings) as uvm:
        await uvm.readiness.genesis()
        targets = (
            ("notes", "file", str(world.folder / "notes"), "queryable"),
            ("inbox", "http", world.inbox, "keyed"),
            ("dark", "http", f"{world.inbox}/dark", "blind"),
        )

        def change(root: Any) -> None:
            for name, kind, target, sink in targets:
                effect_records.add_capability(root, name, kind, target, sink, ("tester", ""))  # type: ignore[arg-type]

        await uvm.image.writer.apply(change)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, account, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=40)
    options.add_argument("--storage", choices=["file", "zeo", "postgres"], default="file")
    options.add_argument("--broken", choices=["", "ack-first", "journal-late"], default="", help="a build to be found")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--strict", action="store_true", help="fail where there is harm")
    options.add_argument("--quick", action="store_true", help="a few kills: the shape alone")
    options.add_argument("--json", type=Path, help="write the document there too")
    given = options.parse_args(arguments)
    told = asyncio.run(run(2 if given.quick else given.kills, given.storage, given.broken, given.seed))
    report(told, [Goal("harm", told["harm"], 0)], given.json)
    return int(given.strict and told["harm"] > 0)


if __name__ == "__main__":
    sys.exit(main())
