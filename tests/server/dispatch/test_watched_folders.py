"""Folders that schedules watch: whole files are remembered, changed and forgotten as they are, and none by mistake."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.memory.reading.pdf_files import pdf_of

from batos.agency.records import schedule_records
from batos.agency.records.schedule_records import ScheduleData
from batos.agency.schedules import FOLDERS
from batos.image import roots
from batos.memory.records import memory_places
from batos.objects.prototype import own_slots
from batos.protocol.errors import BriefError, Refused
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.sent_files import OwnedPlace, sent_text
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from batos.verbs.memory_verbs import RememberedFile


@dataclass
class World:
    """A server over a mind, and a folder that somebody writes to."""

    uvm: UVM
    dispatcher: Dispatcher
    folder: Path

    async def add(self, text: str | None = None, **args: object) -> str:
        """Plan something about the folder; return the schedule's id."""
        given = {"when": f"on file {self.folder}", **({"text": text} if text else {"remember": True}), **args}
        told = await self.dispatcher.handle("schedule_add", given, lambda *_: None, lambda _: None)
        return str(told["schedule"]["id"])  # type: ignore[index]

    async def look(self, times: int = 2) -> None:
        """Look at the folder so often, and wait for what is asked about it."""
        for _ in range(times):
            self.uvm.schedules._folders_at = 0.0
            await self.uvm.schedules._work()
        for mission in tuple(self.uvm.schedules._own):
            await self.uvm.missions.wait_for_end(mission)

    def schedule(self, name: str) -> ScheduleData:
        """Return a schedule as it is."""
        with self.uvm.image.snapshot() as root:
            return schedule_records.data_of(schedule_records.find(root, name))

    def remembered(self) -> dict[str, str]:
        """Return the names of remembered files with the ids of their memories."""
        with self.uvm.image.snapshot() as root:
            found = memory_places.list_below(root, f"{self.folder}{os.sep}", "tester")
            return {Path(place).name: name for place, name in found}

    def missions(self) -> list[list[str]]:
        """Return the names of the files of each mission of a schedule, the oldest first."""
        with self.uvm.image.snapshot() as root:
            briefs = [record.brief.value for _, record in roots.records_of(root)]
            return [
                [file["name"] for file in each["attachments"]]
                for each in briefs
                if each["origin"]["door"] == "schedule"
            ]

    def write(self, name: str, text: str) -> None:
        """Write a file, with a time of its own."""
        path = self.folder / name
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(before + 1_000_000_000, before + 1_000_000_000))


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    """A mind, and an empty folder."""
    folder = home / "notes"
    folder.mkdir()
    async with scripted_uvm(home / "home", ScriptedBridge.saying("Seven.")) as uvm:
        dispatcher = Dispatcher(uvm, Uploads(home / "uploads", uvm.settings.attachment_bytes))
        uvm.schedules._folders = dispatcher.folders
        yield World(uvm, dispatcher, folder)


async def test_a_folder_is_remembered_as_it_changes(tmp_path: Path) -> None:
    """New, changed, moved and deleted files; without a call of a model."""
    async with world(tmp_path) as told:
        told.write("lamp.md", "# Lamp\n\nThe lamp of Holm burns 12 litres.")
        told.write("bell.md", "The bell rings 3 times.")
        name = await told.add()
        await told.look()
        first = told.remembered()
        assert set(first) == {"lamp.md", "bell.md"}
        assert told.schedule(name)["reason"] == "2 remembered"
        told.write("bell.md", "The bell rings 4 times.")
        await told.look()
        changed = told.remembered()
        assert changed["lamp.md"] == first["lamp.md"]
        assert changed["bell.md"] != first["bell.md"]
        assert told.schedule(name)["reason"] == "1 replaced"
        (told.folder / "lamp.md").rename(told.folder / "light.md")
        await told.look(3)
        assert told.remembered() == {"light.md": first["lamp.md"], "bell.md": changed["bell.md"]}
        (told.folder / "bell.md").unlink()
        await told.look()
        assert set(told.remembered()) == {"light.md"}
        assert told.schedule(name)["reason"] == "1 forgotten"
        assert told.missions() == []
        with told.uvm.image.snapshot() as root:
            (document,) = root[roots.DOCUMENTS].values()
            assert own_slots(document)["source"] == str(told.folder / "light.md")


async def test_half_written_files_wait(tmp_path: Path) -> None:
    """A file that is another at each look is not read before it rests."""
    async with world(tmp_path) as told:
        await told.add()
        for number in range(3):
            told.write("log.md", f"Line {number}.\n" * (number + 1))
            await told.look(1)
            assert told.remembered() == {}
        await told.look(1)
        assert set(told.remembered()) == {"log.md"}


async def test_a_disk_that_is_not_mounted_forgets_nothing(tmp_path: Path) -> None:
    """Neither where the folder is gone, nor where it is empty: the schedule is parked, and says so."""
    async with world(tmp_path) as told:
        for number in range(3):
            told.write(f"{number}.md", f"Note {number} is about the number {number}.")
        name = await told.add()
        await told.look()
        kept = told.remembered()
        assert len(kept) == 3
        shutil.move(told.folder, tmp_path / "away")
        await told.look(3)
        assert (told.schedule(name)["state"], told.remembered()) == ("parked", kept)
        assert "not there" in told.schedule(name)["reason"]
        told.folder.mkdir()
        await told.uvm.schedules.set_state(name, None, on=True)
        await told.look(3)
        assert (told.schedule(name)["state"], told.remembered()) == ("parked", kept)
        assert "nothing was forgotten" in told.schedule(name)["reason"]
        shutil.rmtree(told.folder)
        shutil.move(tmp_path / "away", told.folder)
        await told.uvm.schedules.set_state(name, None, on=True)
        await told.look()
        assert (told.schedule(name)["state"], told.remembered()) == ("active", kept)


async def test_hidden_and_ignored_files_are_not_read(tmp_path: Path) -> None:
    """As `remember` reads a folder."""
    async with world(tmp_path) as told:
        (told.folder / ".ssh").mkdir()
        told.write(".ssh/key", "A key is not read by anybody.")
        told.write(".secret.md", "The safe has the number 7712.")
        told.write("draft.md", "A draft.")
        told.write(".gitignore", "draft.md\n")
        told.write("lamp.md", "The lamp burns.")
        (told.folder / "paper.pdf").write_bytes(pdf_of(["The paper says eleven."]))
        await told.add()
        await told.look()
        assert set(told.remembered()) == {"lamp.md", "paper.pdf"}


async def test_a_question_about_what_changed(tmp_path: Path) -> None:
    """What was there before is not asked about; each change once, with the files, also after a restart."""
    async with world(tmp_path) as told:
        told.write("old.md", "This is old.")
        name = await told.add("Summarise what is new.")
        await told.look()
        assert told.missions() == []
        told.write("new.md", "This is new.")
        told.write("more.md", "This is more.")
        (told.folder / "noise.bin").write_bytes(bytes(range(256)) * 8)
        await told.look()
        assert told.missions() == [["more.md", "new.md"]]
        await told.look()
        told.dispatcher.folders._last.clear()  # as in another process
        await told.look()
        assert len(told.missions()) == 1
        told.write("old.md", "This is old and longer.")
        await told.look()
        assert told.missions() == [["more.md", "new.md"], ["old.md"]]
        assert told.schedule(name)["runs"] == 2


async def test_what_cannot_be_planned(tmp_path: Path) -> None:
    """A folder of the mind's own, one that is not there, and work that does not fit the time."""
    async with world(tmp_path) as told:

        def plan(**given: object) -> Awaitable[object]:
            return told.dispatcher.handle("schedule_add", given, lambda *_: None, lambda _: None)

        with pytest.raises(Refused):
            await plan(when=f"on file {tmp_path / 'home'}", remember=True)
        with pytest.raises(BriefError, match="there is no folder"):
            await plan(when=f"on file {tmp_path / 'none'}", remember=True)
        for wrong, field in (
            ({"when": "every hour", "remember": True}, "args.remember"),
            ({"when": f"on file {told.folder}", "remind": True, "text": "x"}, "args.remind"),
            ({"when": "every hour"}, "args.text"),
            ({"when": "every hour", "text": "Hm?", "persona": "NOBODY"}, "persona"),
        ):
            with pytest.raises(BriefError) as refused:
                await plan(**wrong)
            assert refused.value.field == field
        assert await told.add() == await told.add()  # a folder is remembered once


async def test_run_now_looks_at_once(tmp_path: Path) -> None:
    """A person does not wait for the next look."""
    async with world(tmp_path) as told:
        name = await told.add()
        told.write("lamp.md", "The lamp burns.")
        reply = await told.dispatcher.handle("schedule_run", {"schedule": name}, lambda *_: None, lambda _: None)
        assert reply["did"] == "The folder was looked at: 1 remembered."
        assert set(told.remembered()) == {"lamp.md"}
        assert datetime.fromisoformat(told.schedule(name)["last"]) <= datetime.now(UTC)


async def test_names_that_places_write_otherwise(tmp_path: Path) -> None:
    """A name with the sign behind which a text of many stands, and one that is no UTF-8: what is there stays."""
    async with world(tmp_path) as told:
        told.write("C# notes.md", "The lamp of Holm burns 12 litres.")
        (told.folder / os.fsdecode(b"\xe4pfel.md")).write_text("The 3 apples are red.", encoding="utf-8")
        await told.add()
        await told.look()
        kept = told.remembered()
        assert len(kept) == 2
        await told.look(3)
        assert told.remembered() == kept
        (told.folder / "C# notes.md").unlink()
        await told.look()
        assert set(told.remembered()) == set(kept) - {"C# notes.md"}


async def test_what_somebody_remembered_elsewhere_stays(tmp_path: Path) -> None:
    """A file that went was also remembered in a scope of its own: that is not the folder's."""
    async with world(tmp_path) as told:
        told.write("lamp.md", "The lamp burns 12 litres.")
        told.write("bell.md", "The bell rings 3 times.")
        await told.add()
        await told.look()
        data = (told.folder / "bell.md").read_bytes()
        file = RememberedFile(
            name="bell.md", sha256=hashlib.sha256(data).hexdigest(), media_type="text/markdown",
            source=str(told.folder / "bell.md"),
        )  # fmt: skip
        await told.uvm.document_store.remember([sent_text(file, data, OwnedPlace("tester", "bells"))])
        (told.folder / "bell.md").unlink()
        await told.look(3)
        with told.uvm.image.snapshot() as root:
            left = {(own_slots(each)["title"], own_slots(each)["scope"]) for each in root[roots.DOCUMENTS].values()}
        assert {scope for title, scope in left if "bell" in title} == {"bells"}


async def test_a_look_reads_some_files(tmp_path: Path) -> None:
    """The rest waits for the next look, so that other schedules do not; nothing is forgotten before."""
    async with world(tmp_path) as told:
        told.dispatcher.folders._in_a_look = 2
        for number in range(5):
            told.write(f"{number}.md", f"Note {number} is about the number {number}.")
        await told.add()
        counts = []
        for _ in range(4):
            await told.look(1)
            counts.append(len(told.remembered()))
        assert counts == [0, 2, 4, 5]
        monotonic = told.uvm.schedules._parts.monotonic
        assert told.uvm.schedules._folders_at - monotonic() <= FOLDERS  # soon again, however long it took


async def test_pipes_and_what_is_too_long_are_not_read(tmp_path: Path) -> None:
    """A pipe would be waited for without an end; a file that is too long for a mission is not asked about."""
    async with world(tmp_path) as told:
        name = await told.add("What is new?")
        await told.look()
        os.mkfifo(told.folder / "pipe")
        with (told.folder / "film.md").open("wb") as file:
            file.truncate(told.uvm.settings.attachment_bytes * 4)
        told.write("new.md", "This is new.")
        await told.look()
        assert told.missions() == [["new.md"]]
        assert {Path(each).name for each in told.schedule(name)["seen"] or ()} == {"film.md", "new.md"}


async def test_a_mount_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its schedule is parked, and nothing is forgotten; also where only a part of the folder is closed."""
    async with world(tmp_path) as told:
        told.write("lamp.md", "The lamp burns 12 litres.")
        told.write("bell.md", "The bell rings 3 times.")
        name = await told.add()
        await told.look()
        kept = told.remembered()

        def fail(*_path: object, **_how: object) -> os.stat_result:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

        with monkeypatch.context() as patched:
            patched.setattr(os, "stat", fail)
            assert told.dispatcher.folders._missing(told.folder, "tester", {}) == []
            patched.setattr(Path, "is_dir", fail)
            await told.look(1)
        assert (told.schedule(name)["state"], told.remembered()) == ("parked", kept)


async def test_a_change_is_asked_about_once(tmp_path: Path) -> None:
    """Also where a person runs it between two looks, and where the clock was set back."""
    async with world(tmp_path) as told:
        name = await told.add("What is new?")
        await told.look()
        told.write("new.md", "This is new.")
        await told.look(1)
        reply = await told.dispatcher.handle("schedule_run", {"schedule": name}, lambda *_: None, lambda _: None)
        mission = str(reply["mission"])
        assert (told.missions(), reply["did"]) == ([["new.md"]], "")
        await told.uvm.missions.wait_for_end(mission)
        early = datetime.now(UTC) - timedelta(hours=2)
        told.uvm.schedules._parts = replace(told.uvm.schedules._parts, clock=lambda: early)
        told.write("late.md", "This is late.")
        await told.look(5)
        assert told.missions() == [["new.md"], ["late.md"]]


async def test_what_changed_in_a_pause_is_left_out(tmp_path: Path) -> None:
    """As moments are; what changes after it is asked about."""
    async with world(tmp_path) as told:
        name = await told.add("What is new?")
        await told.look()
        await told.uvm.schedules.set_state(name, None, on=False)
        told.write("meanwhile.md", "This came meanwhile.")
        await told.uvm.schedules.set_state(name, None, on=True)
        await told.look(3)
        assert told.missions() == []
        told.write("new.md", "This is new.")
        await told.look()
        assert told.missions() == [["new.md"]]
