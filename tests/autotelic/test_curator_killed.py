"""A process that is killed while it folds: each region is folded whole or not at all, and nothing is out of reach."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.image.open_image import child, heard
from tests.memory.test_document_store import EVERYONE, find, incoming
from tests.memory.test_fold_store import ARCHIVED, logs

from batos.autotelic.curator import CurationWish
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import Recollection
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

MANY = 40


def regions(uvm: UVM) -> list[int]:
    """How many documents each summary stands for, the newest first."""
    listed = uvm.readings.memories(99)["memories"]
    summaries = [each["document"] for each in listed if each["kind"] == "summary"]
    return [len(uvm.readings.memory(name)["stands_for"]) for name in summaries]


async def found(uvm: UVM, reach: MemoryReach) -> list[str]:
    """What a process that begins now finds for a word of each text."""

    def search() -> list[str]:
        recollection = Recollection()
        return [text for n in range(MANY) for text in find(uvm.image, recollection, f"gull{n}", reach)]

    return await asyncio.to_thread(search)


@pytest.mark.parametrize(
    ("point", "number", "left"),
    [
        ("begun", 2, 0),  # the first commit sets numbers aside, the second folds
        ("voted", 2, 0),
        ("finished", 2, 1),
        ("begun", 4, 1),
        ("finished", 4, 2),
        ("begun", 7, 3),  # the segments are written anew
        ("finished", 8, 3),
    ],
)
async def test_a_kill_leaves_whole_regions(tmp_path: Path, point: str, number: int, left: int) -> None:
    """Each text is found as before, in its own words; the next run folds the rest, and all of it comes back."""
    texts = logs(MANY)
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        await uvm.document_store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(texts)])
    with child(Path(__file__).parent / "script_curate.py", tmp_path, point, number) as process:
        assert await heard(process) == "begins"
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        assert len(await asyncio.to_thread(regions, uvm)) == left
        assert await found(uvm, ARCHIVED) == texts
        await uvm.curator.curate(CurationWish("ann", 0, 99, by_rule=True))
        assert await asyncio.to_thread(regions, uvm) == [8, 16, 16]
        assert await found(uvm, ARCHIVED) == texts
        for each in uvm.readings.memories(99)["memories"]:
            await uvm.curator.undo(each["document"], "ann")
        listed = uvm.readings.memories(99)
        assert (listed["documents"], {each["standing"] for each in listed["memories"]}) == (MANY, {"current"})
        assert await found(uvm, EVERYONE) == texts
