"""The upgrade of a home: each kept one opens, says what it said, and ends what was in flight; a backup undoes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.care.kept_homes import NAMES, OLDEST, unpack
from tests.image.servers import zeo_server, zeo_uri

from batos.care import backups, mind_export, verification
from batos.care.upgrading import backup_folder, home_upgrading, plan_upgrade
from batos.config import Settings
from batos.history import record_chain
from batos.image import roots
from batos.image.evolving import STEPS, Upgrading
from batos.image.image import LivingImage, Opening
from batos.image.readable import open_read_only
from batos.image.transactions import snapshot
from batos.inference.journal import Entries, Record
from batos.objects.prototype import own_slots
from batos.protocol.errors import OldFormat, UsageError
from batos.testing import emulated_uvm
from batos.uvm import UVM
from ollama_emulator.emulator import Emulator


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[tuple[UVM, Emulator]]:
    """The home under this version, with models."""
    async with emulated_uvm(home, memory=False, user="keeper") as (uvm, emulator):
        await uvm.readiness.genesis()
        yield uvm, emulator


def answers(root: Any) -> dict[str, tuple[str, str | None]]:
    """The status and the answer of every mission."""
    return {
        name: (record.status.word, own_slots(record.thought).get("answer")) for name, record in roots.records_of(root)
    }


def settings_of(home: Path) -> Settings:
    return Settings(home=home)


def calls_paid(home: Path, mission: str) -> list[Record]:
    """The calls of a mission whose answers are in the journal."""
    with open_read_only(settings_of(home).image_uri, "") as faces:
        found = Entries(faces.journal).read([mission])
    return [each for each in found if each.state == "done" and "messages" in each.request]


def faults_of(uvm: UVM) -> list[Any]:
    """All that is wrong with image and journal."""
    with snapshot(uvm.image.journal_db) as journal:
        calls = record_chain.read_calls(journal).find_faults()
    return [*verification.find_faults(uvm.image.db), *calls]


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_home_is_read_before_its_upgrade(tmp_path: Path, name: str) -> None:
    """Verbs that only read show it in the present form, and change nothing."""
    told = unpack(name, home := tmp_path / "home")
    before = (home / "live_image.fs").read_bytes(), (home / "journal.fs").read_bytes()
    with open_read_only(settings_of(home).image_uri, "") as faces:
        assert verification.find_faults(faces.image) == []
        with faces.root() as root:
            found = answers(root)
            assert set(told["memories"]) <= set(root[roots.DOCUMENTS])
    assert {each: {"status": word, "answer": text} for each, (word, text) in found.items()} == told["missions"]
    assert ((home / "live_image.fs").read_bytes(), (home / "journal.fs").read_bytes()) == before


async def finish_what_was_in_flight(uvm: UVM, emulator: Emulator, told: dict[str, Any], paid: list[Record]) -> None:
    """Run the mission that the killed version left behind; none of its paid calls is asked again, all else is there."""
    emulator.requests.clear()
    for mission in await uvm.missions.recover():
        await uvm.missions.begin(mission)
    await uvm.missions.wait_for_end(told["killed"])
    shown = uvm.readings.mission(told["killed"])
    asked = [each["body"]["messages"] for each in emulator.requests if each["path"] == "/api/chat"]
    assert shown["status"] == "done"
    # A call whose prompt this version composes otherwise was never paid for.
    assert [each.path for each in paid if list(each.request["messages"]) in asked] == []
    assert await asyncio.to_thread(faults_of, uvm) == []
    with uvm.image.snapshot() as root:
        found = answers(root)
        assert set(told["memories"]) <= set(root[roots.DOCUMENTS])
    del found[told["killed"]], told["missions"][told["killed"]]
    assert {each: {"status": word, "answer": text} for each, (word, text) in found.items()} == told["missions"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_kept_home_is_upgraded_and_its_mission_in_flight_finished(tmp_path: Path, name: str) -> None:
    """No call that the killed version paid for is asked again; nothing that it had is lost, and no fault is found."""
    told = await asyncio.to_thread(unpack, name, home := tmp_path / "home")
    paid = await asyncio.to_thread(calls_paid, home, told["killed"])
    assert paid
    async with opened(home) as (uvm, emulator):
        await finish_what_was_in_flight(uvm, emulator, told, paid)


async def test_an_upgrade_makes_a_backup_by_which_it_is_undone(tmp_path: Path) -> None:
    """Where nobody names a folder it is in the home; what is restored is the home of the older version."""
    told = await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    settings = settings_of(home)
    planned = await asyncio.to_thread(plan_upgrade, settings, None)
    assert (planned["format"], [each["format"] for each in planned["steps"]]) == (1, [2, 3, 4])
    tell: list[str] = []
    await upgrade(settings, home_upgrading(settings, None, tell.append))
    assert tell[0] == f"format 1: a backup is made in {backup_folder(home)}"
    assert tell[1] == f"format 1 becomes {roots.FORMAT}; backup: {backup_folder(home)}"
    assert [each.split(":")[0] for each in tell[2:]] == ["format 2", "format 3", "format 4"]
    after = await asyncio.to_thread(plan_upgrade, settings, None)
    assert (after["format"], after["steps"], after["backup"]) == (roots.FORMAT, [], "")
    assert after["upgrades"][0]["backup"] == str(backup_folder(home))
    files = [each for each in backup_folder(home).rglob("*") if each.is_file()]
    assert {each.stat().st_mode & 0o077 for each in files} == {0}
    (kept,) = backups.list_backups(backup_folder(home))
    await asyncio.to_thread(backups.restore_backup, backup_folder(home), restored := tmp_path / "restored", kept)
    assert await asyncio.to_thread(plan_upgrade, settings_of(restored), None) == {
        **planned, "backup": str(backup_folder(restored)),
    }  # fmt: skip
    with open_read_only(settings_of(restored).image_uri, "") as faces, faces.root() as root:
        assert set(told["missions"]) == set(answers(root))


async def test_without_room_for_a_backup_nothing_is_upgraded(tmp_path: Path) -> None:
    """The error names the way out, and the image is as it was."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    backup_folder(home).write_text("a file, where a folder is to be")
    settings, before = settings_of(home), (home / "live_image.fs").read_bytes()
    with pytest.raises(UsageError, match="the backup cannot be written"):
        await upgrade(settings, home_upgrading(settings))
    assert (home / "live_image.fs").read_bytes() == before


async def test_an_image_elsewhere_is_upgraded_only_when_asked(tmp_path: Path) -> None:
    """Its own tools back it up, so a person says that there is a backup."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    settings = Settings(home=tmp_path, image=f"file://{home}/live_image.fs?blobstorage_dir={home}/blobs")
    with pytest.raises(OldFormat) as raised:
        await upgrade(settings, home_upgrading(settings))
    assert "batos upgrade --no-backup" in raised.value.remedy
    await upgrade(settings, Upgrading(tell=lambda what: None))
    planned = await asyncio.to_thread(plan_upgrade, settings, None)
    assert planned["steps"] == []


async def upgrade(settings: Settings, upgrading: Upgrading) -> None:
    """Open a home's image, and close it."""
    image = await asyncio.to_thread(LivingImage, Opening(settings.image_uri, settings.journal, upgrading=upgrading))
    try:
        await image.prepare()
    finally:
        await asyncio.to_thread(image.close)


async def test_the_oldest_kept_home_has_what_the_steps_are_for(tmp_path: Path) -> None:
    """Facts without a family and sums without a count: else the kept home would prove nothing."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    with open_read_only(settings_of(home).image_uri, "") as faces, snapshot(faces.image) as root:
        found = {step.number: len(list(step.find(root, ""))) for step in STEPS if step.number > 2}
        facts = [each for each in root[roots.DOCUMENTS].values() if own_slots(each)["kind"] == "fact"]
        assert found == {3: len(facts), 4: len(root[roots.METHODS])}
        assert min(found.values()) > 0


async def test_an_older_image_is_exported_after_its_upgrade(tmp_path: Path) -> None:
    """Before it the error names the verb."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    with open_read_only(settings_of(home).image_uri, "") as faces, pytest.raises(OldFormat, match="format 1"):
        await asyncio.to_thread(mind_export.export_mind, faces, tmp_path / "export")


async def test_an_image_on_a_server_is_upgraded_under_its_lease(tmp_path: Path) -> None:
    """The server has the files of the older version; without being asked nothing is upgraded."""
    told = await asyncio.to_thread(unpack, OLDEST, served := tmp_path / "served")
    (served / "blobs").rename(served / "live_image.fs.blobs")
    with zeo_server(served) as port:
        settings = Settings(home=tmp_path, image=zeo_uri(port, f"blob_dir={tmp_path / 'cache'}"))
        with pytest.raises(OldFormat):
            await upgrade(settings, home_upgrading(settings))
        await upgrade(settings, Upgrading(tell=lambda what: None))
        image = await asyncio.to_thread(LivingImage, Opening(settings.image_uri, settings.journal))
        try:
            await image.prepare()
            assert await asyncio.to_thread(verification.find_faults, image.db) == []
            with image.snapshot() as root:
                assert root[roots.GENESIS]["format"] == roots.FORMAT
                assert set(told["missions"]) == set(answers(root))
        finally:
            await asyncio.to_thread(image.close)
