"""Backups: a restored home is the home as it was, also one that was copied while missions ran, and nothing is half."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.care.test_verification import bridge, grown
from tests.history import lived
from tests.history.test_dreams import BRIEF, counting
from tests.history.test_undoing import asked
from tests.image.open_image import child, heard
from tests.waiting import a_moment

from batos.care import backups, verification
from batos.history import record_chain
from batos.image.ids import utc_now
from batos.image.transactions import snapshot
from batos.protocol.errors import BatosError, BriefError, Busy, NotFound, Refused, UsageError
from batos.testing import scripted_uvm
from batos.uvm import UVM


def _said_soundly(uvm: UVM) -> dict[str, Any]:
    assert verification.find_faults(uvm.image.db) == []
    with snapshot(uvm.image.journal_db) as journal:
        assert record_chain.read_calls(journal).find_faults() == []
    return lived.all_that_is_said(uvm.readings)


async def said_by(home: Path) -> dict[str, Any]:
    """Everything that a home says, once it is sound."""
    async with scripted_uvm(home, bridge(), memory=False) as uvm:
        said = await asyncio.to_thread(_said_soundly, uvm)
    said["inspect alfred_prototype_obj"]["slots"].pop("last_audit")  # each opening writes its own
    return said


async def test_a_restored_home_says_what_the_home_said(tmp_path: Path) -> None:
    """Of a full backup, of one that added to it, and of the first one again."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    await grown(home)
    first = await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now)
    before = await said_by(home)
    async with scripted_uvm(home, bridge(), memory=False) as uvm:
        await asked(uvm, "What is a sluice?", conversation="last")
    second = await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now)
    after = await said_by(home)
    assert before != after
    assert [each.at for each in backups.list_backups(folder)] == [first.at, second.at]
    for backup, said in ((second, after), (first, before)):
        restored = tmp_path / backup.tid.partition("x")[2]
        await asyncio.to_thread(backups.restore_backup, folder, restored, backup)
        assert await said_by(restored) == said
        with pytest.raises(Refused, match="has an image"):
            backups.restore_backup(folder, restored, backup)


async def test_a_backup_beside_missions_that_run_is_of_one_moment(tmp_path: Path) -> None:
    """Its journal has every call of its image's missions, and none of a mission that its image lacks."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    async with scripted_uvm(home, bridge(), memory=False) as uvm:
        running = [asyncio.ensure_future(uvm.missions.ask({"text": f"Why {n}?", "effort": "cycle"})) for n in range(8)]
        made = []
        for _ in range(3):
            await a_moment()  # they go on, as far as they come
            made.append(await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now))
        await asyncio.gather(*running)
    for number, backup in enumerate(made):
        restored = tmp_path / str(number)
        await asyncio.to_thread(backups.restore_backup, folder, restored, backup)
        async with scripted_uvm(restored, bridge(), memory=False) as uvm:
            with uvm.image.snapshot() as root, snapshot(uvm.image.journal_db) as journal:
                assert set(journal.get("missions") or ()) <= set(root["missions"])
            for mission in await uvm.missions.recover():
                await uvm.missions.run(mission)
            assert {each["status"] for each in uvm.readings.newest(99)} <= {"done"}


async def test_a_backup_has_the_dream_that_was_the_last_thing_done(tmp_path: Path) -> None:
    """A dream is in the journal alone, and the image's last commit may be older."""
    home, folder, restored = tmp_path / "home", tmp_path / "folder", tmp_path / "restored"
    async with counting(home, memory=False) as (_, ask):
        dreamt = await ask("dream_new", brief=BRIEF)
        made = await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now)
    await asyncio.to_thread(backups.restore_backup, folder, restored, made)
    async with counting(restored, memory=False) as (_, ask):
        assert [each["dream"] for each in (await ask("dream_list"))["dreams"]] == [dreamt["id"]]


async def test_a_backup_beside_another_one_is_refused(tmp_path: Path) -> None:
    """Both would write the same files of the folder; the refusal says that waiting helps."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    await grown(home)
    folder.mkdir()
    with backups.hold_folder(folder), pytest.raises(Busy, match="another backup"):
        await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now)
    await asyncio.to_thread(backups.make_backup, home, folder, full=False, clock=utc_now)


@pytest.mark.parametrize("point", ["database", "settle", "half settled"])
async def test_a_killed_restoration_is_done_again(tmp_path: Path, point: str) -> None:
    """Nothing that is half restored is taken for a home."""
    home, folder, target = tmp_path / "home", tmp_path / "folder", tmp_path / "target"
    await grown(home)
    backup = await asyncio.to_thread(backups.make_backup, home, folder, full=True, clock=utc_now)
    with child(Path(__file__).with_name("script_restore.py"), folder, target, point) as process:
        assert await heard(process) == point
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (target / "live_image.fs").exists()
    assert (target / "journal.fs").exists() == (point == "half settled")
    await asyncio.to_thread(backups.restore_backup, folder, target, backup)
    assert await said_by(target) == await said_by(home)


async def test_a_restoration_removes_nothing_of_the_home(tmp_path: Path) -> None:
    """Blobs and a codex that only this home has stay under other names; an index of the image moved away is no bar."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    await grown(home)
    for name in ("codex", "blobs"):
        (home / name).mkdir(exist_ok=True)
    (home / "codex" / "notes.txt").write_text("first")
    backup = await asyncio.to_thread(backups.make_backup, home, folder, full=True, clock=utc_now)
    said = await said_by(home)
    for number, ending in enumerate(("", "-2")):
        (home / "codex" / "notes.txt").write_text(f"edited {number}")
        (home / "blobs" / "only_here").write_text(str(number))
        assert (home / "live_image.fs.index").exists()
        for file in ("live_image.fs", "journal.fs"):
            (home / file).rename(tmp_path / f"{file}{number}")
        told = await asyncio.to_thread(backups.restore_backup, folder, home, backup)
        assert {f"codex.before-restore{ending}", f"blobs.before-restore{ending}"} <= set(told["aside"])
        assert (home / f"codex.before-restore{ending}" / "notes.txt").read_text() == f"edited {number}"
        assert (home / f"blobs.before-restore{ending}" / "only_here").read_text() == str(number)
        assert (home / "codex" / "notes.txt").read_text() == "first"
        assert await said_by(home) == said


@pytest.mark.parametrize(
    "text",
    ['ollama_host = "http://192.0.2.1"\n', 'server = "tcp://192.0.2.1:7717"\n', "missions = 3\nimage = ''\n", "no"],
)
async def test_settings_of_a_backup_that_name_a_place_are_not_used(tmp_path: Path, text: str) -> None:
    """They lie beside the home's own, which stay in use; those of a former restoration are kept too."""
    home, folder, target = tmp_path / "home", tmp_path / "folder", tmp_path / "target"
    await grown(home)
    (home / "batos.toml").write_text(text)
    backup = await asyncio.to_thread(backups.make_backup, home, folder, full=True, clock=utc_now)
    target.mkdir()
    (target / "batos.toml").write_text("missions = 5\n")
    (target / "batos.toml.from-backup").write_text("former")
    told = await asyncio.to_thread(backups.restore_backup, folder, target, backup)
    assert told["unused"] == ["batos.toml.from-backup"]
    assert (target / "batos.toml.from-backup").read_text() == text
    assert (target / "batos.toml").read_text() == "missions = 5\n"
    assert (target / "batos.toml.from-backup.before-restore").read_text() == "former"


async def test_settings_of_a_backup_that_name_no_place_are_used(tmp_path: Path) -> None:
    """They are the home's again."""
    home, folder, target = tmp_path / "home", tmp_path / "folder", tmp_path / "target"
    await grown(home)
    (home / "batos.toml").write_text("missions = 3\n")
    backup = await asyncio.to_thread(backups.make_backup, home, folder, full=True, clock=utc_now)
    told = await asyncio.to_thread(backups.restore_backup, folder, target, backup)
    assert told["unused"] == []
    assert (target / "batos.toml").read_text() == "missions = 3\n"


async def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    """By its digests; the home stays empty."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    await grown(home)
    backup = await asyncio.to_thread(backups.make_backup, home, folder, full=True, clock=utc_now)
    file = next((folder / "image").glob("*.fs"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(BatosError, match="damaged"):
        backups.restore_backup(folder, tmp_path / "target", backup)
    assert not (tmp_path / "target" / "live_image.fs").exists()


async def test_what_cannot_be_backed_up_or_found_is_said(tmp_path: Path) -> None:
    """A folder in the home or without a name in UTF-8, a home without an image, a moment before the first backup."""
    with pytest.raises(NotFound, match="no image"):
        backups.make_backup(tmp_path / "none", tmp_path / "folder", full=True, clock=utc_now)
    home = tmp_path / "home"
    await grown(home)
    with pytest.raises(UsageError, match="in the home"):
        backups.make_backup(home, home / "backups", full=True, clock=utc_now)
    nameless = tmp_path / os.fsdecode(b"disk\xff")
    with pytest.raises(UsageError, match="no name in UTF-8"):
        backups.make_backup(home, nameless / "mind", full=True, clock=utc_now)
    assert not nameless.exists()
    with pytest.raises(NotFound, match="no backup"):
        backups.find_backup(tmp_path, None)
    made = await asyncio.to_thread(backups.make_backup, home, tmp_path / "folder", full=True, clock=utc_now)
    assert backups.find_backup(tmp_path / "folder", datetime.now(UTC)) == made
    with pytest.raises(NotFound, match="or before"):
        backups.find_backup(tmp_path / "folder", datetime.now(UTC) - timedelta(days=1))
    assert backups.moment_text(made).endswith("Z")


async def test_a_line_of_the_list_that_is_none_is_passed_over(tmp_path: Path) -> None:
    """Whoever wrote it: nothing of it reaches repozo, or a path."""
    await grown(tmp_path / "home")
    folder = tmp_path / "folder"
    made = await asyncio.to_thread(backups.make_backup, tmp_path / "home", folder, full=True, clock=utc_now)
    good = made.as_dict()
    wrong: list[object] = [
        None, [], {}, {**good, "at": 5}, {**good, "at": "soon"}, {**good, "tid": None}, {**good, "tid": "tid:0x-1"},
        {**good, "image": "--help"}, {**good, "journal": ["../x"]}, {**good, "bytes": "many"}, {**good, "more": 1},
    ]  # fmt: skip
    with (folder / "backups.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in wrong)
        file.write("[" * 100_000 + "\n")
    assert backups.list_backups(folder) == [made]
    assert backups.find_backup(folder, datetime.now(UTC)) == made


@pytest.mark.parametrize("name", ["home/codex/stolen.toml", "blobs/stolen", "home/batos.toml"])
async def test_a_backup_with_a_link_is_not_restored(tmp_path: Path, name: str) -> None:
    """A link of a stranger's would bring any file of this machine into the home."""
    await grown(tmp_path / "home")
    folder = tmp_path / "backup"
    await asyncio.to_thread(backups.make_backup, tmp_path / "home", folder, full=True, clock=utc_now)
    (tmp_path / "secret").write_text("mine")
    link = folder / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "secret")
    newest = backups.find_backup(folder, None)
    with pytest.raises(BriefError, match="link"):
        await asyncio.to_thread(backups.restore_backup, folder, tmp_path / "again", newest)
    assert not (tmp_path / "again").exists()
