"""A process that is killed while it makes gold items: those of whole memories are there, none is lost or doubled."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.autotelic.test_item_store import LAMP, items, store_of
from tests.image.open_image import child, heard
from tests.memory.test_document_store import incoming

from batos.autotelic.item_store import AT_ONCE
from batos.testing import ScriptedBridge, scripted_uvm

MANY = 2 * AT_ONCE + 5


@pytest.mark.parametrize(
    ("point", "number", "left"),
    [("begun", 1, 0), ("voted", 1, 0), ("finished", 1, AT_ONCE), ("begun", 2, AT_ONCE), ("finished", 3, MANY)],
)
async def test_a_kill_leaves_the_items_of_whole_memories(tmp_path: Path, point: str, number: int, left: int) -> None:
    """The next process goes on where it ended."""
    texts = [LAMP.replace("Holm", f"Holm{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(MANY)]
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        await uvm.document_store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(texts)])
    with child(Path(__file__).parent / "script_items.py", tmp_path, point, number) as process:
        assert await heard(process) == "begins"
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        assert len(items(uvm)) == left
        assert await store_of(uvm).refresh() == MANY - left
        found = items(uvm)
        assert sorted(each.gold[0] for each in found) == sorted(texts)
        assert len({each.id for each in found}) == MANY
        assert await store_of(uvm).refresh() == 0
