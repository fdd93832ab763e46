"""A power cut at any moment: what was acknowledged is there, and what was paid for is in the journal."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.image.power_cut_disk import LosingDisk

from batos.care import verification
from batos.events import Events
from batos.history import record_chain
from batos.image import roots
from batos.image.filestorage import SoundFileStorage
from batos.image.image import Opening
from batos.image.transactions import snapshot
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams

DATABASES = ("live_image.fs", "journal.fs")


@dataclass
class Cutting:
    """Cuts the power at moments that a client may rely on: each cut is a home as it would be found."""

    home: Path
    folder: Path
    disk: LosingDisk = field(init=False)
    #: What each home has to have: the missions that were acknowledged, and the answers that were used.
    cuts: list[tuple[Path, set[str], int]] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    used: int = 0

    def __post_init__(self) -> None:
        self.disk = LosingDisk(self.home)

    def opening(self, opening: Opening) -> Opening:
        """Open both databases on the disk that loses what was not synced."""

        def storage(name: str) -> SoundFileStorage:
            blobs = str(self.home / "blobs") if name == DATABASES[0] else None
            return SoundFileStorage(str(self.home / name), blob_dir=blobs, sync=self.disk.sync)

        return replace(
            opening, image_factory=lambda: storage(DATABASES[0]), journal_factory=lambda: storage(DATABASES[1])
        )

    def cut(self) -> None:
        """Cut the power now."""
        after = self.folder / str(len(self.cuts))
        self.disk.cut_whole(after, *DATABASES)
        shutil.copytree(self.home / "codex", after / "codex", dirs_exist_ok=True)
        self.cuts.append((after, set(self.accepted), self.used))

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Cut at what is told to a client: an acceptance, a state, an end."""
        if event == "mission.accepted":
            self.accepted.add(keys["mission"])
        if event in ("mission.accepted", "mission.state", "mission.done", "txn.commit"):
            self.cut()


class CountingBridge(ScriptedBridge):
    """Counts the answers that are used: whoever asks the next question has used those before."""

    def __init__(self, cutting: Cutting) -> None:
        super().__init__()
        self._cutting = cutting

    async def think(self, request: ChatRequest, *args: Any, **more: Any) -> Answer:
        """Cut the power before each question of a mission that asks one after another."""
        self._cutting.used = len(self.history)
        self._cutting.cut()
        return await super().think(request, *args, **more)


async def test_a_power_cut_loses_nothing_that_was_told_or_paid(tmp_path: Path) -> None:
    """At every acceptance, state, call, commit and end; each home opens, is sound, and goes on to the end."""
    cutting = Cutting(tmp_path / "home", tmp_path)
    (tmp_path / "home").mkdir()
    events, bridge = Events(log=False), CountingBridge(cutting)
    seams = Seams(opening=cutting.opening)
    async with scripted_uvm(cutting.home, bridge, memory=False, events=events, seams=seams, parallel=1) as uvm:
        events.subscribe(cutting.on_event)
        await uvm.missions.ask({"text": "What holds a pier?", "effort": "cycle", "persona": "BRICK"})
        await uvm.missions.ask({"text": "And who mends it?", "effort": "reflex"})
    assert len(cutting.cuts) > 10
    chosen = cutting.cuts[::3] + cutting.cuts[-1:]
    for home, accepted, used in chosen:
        async with scripted_uvm(home, ScriptedBridge(), memory=False) as uvm:
            with uvm.image.snapshot() as root, snapshot(uvm.image.journal_db) as journal:
                assert accepted <= set(root[roots.MISSIONS])
                assert record_chain.read_calls(journal).find_faults() == []
            paid = [each for each in uvm.journal.read(sorted(accepted)) if each.state == "done"]
            assert len(paid) >= used
            assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
            for mission in await uvm.missions.recover():
                await uvm.missions.run(mission)
            assert {each["status"] for each in uvm.readings.newest(9)} <= {"done"}
