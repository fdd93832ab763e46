"""An erasure that is killed anywhere is finished by the next process; a kill is a copy of the home at that moment."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting
from tests.care.byte_scan import files_with
from tests.care.secret_mind import SECRET, ask, bridge, memory, tell, told_mind

from batos.care import verification
from batos.care.erasure import ErasureRequest
from batos.cli.doors.in_process import open_here
from batos.cli.verbs.status import status_text
from batos.config import Settings
from batos.history import record_chain
from batos.image.filestorage import SoundFileStorage
from batos.image.ids import utc_now
from batos.image.image import Opening
from batos.image.transactions import snapshot
from batos.records import redaction
from batos.server.dispatch.looking import read_status
from batos.uvm import UVM, Seams

#: Opening and comparing whole minds is a burst of CPU.
pytestmark = pytest.mark.blocks_loop

NEEDLE = SECRET.encode()
Step = Callable[[str], None]


class SteppingStorage(SoundFileStorage):
    """A file storage that tells each step after which a kill leaves something else on the disk."""

    def __init__(self, path: str, step: Step, **how: Any) -> None:
        self.step = step
        super().__init__(path, **how)

    def tpc_finish(self, *arguments: Any) -> Any:
        """Tell a commit."""
        serial = super().tpc_finish(*arguments)
        self.step("commit")
        return serial

    @staticmethod
    def packer(storage: Any, *arguments: Any) -> Any:
        """Tell that the packed file is written."""
        packed = SoundFileStorage.packer(storage, *arguments)
        storage.step("packed")
        return packed

    def _remove_blob_files_tagged_for_removal_during_pack(self) -> None:
        self.step("replaced")
        super()._remove_blob_files_tagged_for_removal_during_pack()
        self.step("blobs removed")


@dataclass
class KilledHomes:
    """Homes as kills would leave them, in order, by the step before the kill."""

    folder: Path
    home: Path
    homes: list[tuple[str, Path]] = field(default_factory=list)
    is_erasing: bool = False

    def opening(self, opening: Opening) -> Opening:
        """Open both databases with storages that tell their steps."""
        image, journal = str(self.home / "live_image.fs"), str(self.home / "journal.fs")
        blobs = str(self.home / "blobs")
        return replace(
            opening,
            image_factory=lambda: SteppingStorage(image, self.step, blob_dir=blobs),
            journal_factory=lambda: SteppingStorage(journal, self.step),
        )

    def step(self, name: str) -> None:
        """Copy the home; after a pack is written also as between its two renames."""
        if not self.is_erasing:
            return
        self._copy(name)
        for file in ("live_image.fs", "journal.fs") if name == "packed" else ():
            if (self.home / f"{file}.pack").exists():
                copied = self._copy("put aside")
                (copied / file).rename(copied / f"{file}.old")

    def _copy(self, name: str) -> Path:
        copied = self.folder / f"{len(self.homes)} {name}" / "home"
        shutil.copytree(self.home, copied)
        self.homes.append((name, copied))
        return copied


def faults(uvm: UVM) -> list[str]:
    """What the audit and the verification of an image find."""
    with snapshot(uvm.image.journal_db) as journal:
        found = record_chain.read_calls(journal).find_faults()
    return [*found, *map(str, verification.find_faults(uvm.image.db))]


def settings(home: Path) -> Settings:
    """The settings of a home that nobody has opened yet."""
    return Settings(home=home, user="tester", install="never", ollama_host="http://127.0.0.1:9", log_level="error")


async def erased(place: Path, told: Callable[[Acting, Path], Any], target: str) -> KilledHomes:
    """Tell a mind the secret and erase it; return what kills at each step would leave."""
    killed = KilledHomes(place, place / "home")
    async with told_mind(place, seams=Seams(opening=killed.opening)) as (mind, home):
        await told(mind, home)
        killed.is_erasing = True
        done = await mind.ask("erase", target=target, user="tester")
        killed.is_erasing = False
        assert done["found"] == []
        assert await asyncio.to_thread(files_with, home, NEEDLE) == set()
        with mind.uvm.image.snapshot() as root:
            assert redaction.read_erasure(root) is None
    return killed


async def finished(home: Path) -> str:
    """The stage at which a home was left; once it was opened for work, the secret is nowhere and the mind is whole."""
    told = (await read_status(settings(home)))["erasure"]
    async with open_here(settings(home), Seams(bridge=bridge())) as door:
        assert door.uvm is not None
        assert await asyncio.to_thread(faults, door.uvm) == []
        with door.uvm.image.snapshot() as root:
            assert redaction.read_erasure(root) is None
    return "" if told is None else str(told["stage"])


async def tell_all(mind: Acting, home: Path) -> None:
    """Tell the secret in every way."""
    await tell(mind, home)


async def tell_memory(mind: Acting, home: Path) -> None:
    """Tell it as a memory alone, and what was typed about that."""
    await mind.uvm.document_store.remember([memory("key.md", f"The safe opens with {SECRET}.")])
    await ask(mind, "Who mended the pier of Orm?")
    (home / "chat_history").write_text(f"\n# 2026\n+The safe opens with {SECRET}.\n", encoding="utf-8")


@pytest.mark.parametrize(("told", "target"), [(tell_all, SECRET), (tell_memory, "/docs/key.md")])
async def test_a_killed_erasure_is_finished_by_the_next_process(tmp_path: Path, told: Any, target: str) -> None:
    """At every commit, and at every step of both packs: the next process that works finishes it before all else."""
    killed = await erased(tmp_path, told, target)
    names = [name for name, _ in killed.homes]
    assert names.count("put aside") == names.count("packed") == 2
    assert names.count("commit") >= 5
    before, stages = 0, list[str]()
    for name, home in killed.homes:
        had = await asyncio.to_thread(files_with, home, NEEDLE)
        stage = await finished(home)
        if stage or stages:  # a commit of something else may come before its first one
            stages.append(stage)
            before += bool(had)
            assert await asyncio.to_thread(files_with, home, NEEDLE) == set(), (name, stage)
    assert before > 5
    assert list(dict.fromkeys(stages)) == ["begun", "lines", "history", ""]


async def test_a_dream_that_was_being_erased_is_finished(tmp_path: Path) -> None:
    """Its name is known to nobody after the first commit; the next process cuts the history all the same."""
    killed = KilledHomes(tmp_path, tmp_path / "home")
    async with told_mind(tmp_path, seams=Seams(opening=killed.opening)) as (mind, _):
        brief = {"text": f"My key is {SECRET}. Keep it.", "effort": "reflex", "user": "tester"}
        dream = await mind.ask("dream_new", brief=brief)
        killed.is_erasing = True
        await mind.ask("erase", target=dream["id"], user="tester")
        killed.is_erasing = False
    stages = [await finished(home) for _, home in killed.homes[:4]]
    assert stages[:2] == ["begun", "begun"]
    assert {each for _, home in killed.homes[:4] for each in files_with(home, NEEDLE)} == set()


async def test_an_unfinished_erasure_is_told_without_its_words(tmp_path: Path) -> None:
    """A refused one leaves nothing to finish; one that waits for an open mission is told by `status`."""
    async with told_mind(tmp_path) as (mind, _):
        await ask(mind, f"My key is {SECRET}. Keep it.")

        def begin(root: Any) -> None:
            request = asdict(ErasureRequest(SECRET, "tester", "tester"))
            redaction.begin_erasure(root, request, redaction.Lines((SECRET,), ()), "2026-11-28T04:00:00.000Z")

        await mind.uvm.image.writer.apply(begin)
        waiting = await mind.uvm.missions.submit({"text": "Why?", "user": "tester"})
        with suppress(Exception):
            await mind.ask("erase", target=SECRET, user="tester")
        told = mind.uvm.status()["erasure"]
        assert told == {"at": "2026-11-28T04:00:00.000Z", "by": "tester", "stage": "begun"}
        text = status_text({"erasure": told}, utc_now())
        assert "of tester" in text
        assert SECRET not in text
        await mind.ask("cancel", mission=waiting)
        assert (await mind.ask("erase", target=SECRET, user="tester"))["found"] == []
        assert mind.uvm.status()["erasure"] is None
