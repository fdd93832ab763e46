"""A disk that is full at any write: the mission fails with what is needed, and the image is whole."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.image.missions import thinking
from tests.image.open_image import answer, brief, child, open_image, thought_in

from batos.image.filestorage import SoundFileStorage, disk_full, is_full
from batos.missions.recovery import yielding_every
from batos.objects.prototype import own_slots
from batos.protocol.errors import ImageError

#: Bytes that the image may still grow by: close together where the small writes are.
LIMITS = (*range(0, 2_400, 200), *range(2_400, 12_000, 600))

SUFFIXES = {".fs", ".index", ".lock"}


async def filled(home: Path, kind: str, at_once: int, slacks: Iterable[int]) -> list[dict[str, Any]]:
    """What a process told that filled an image up to each limit, and ended by itself."""
    with child("script_fill_disk.py", home, kind, at_once, *slacks) as process:
        out, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def check_told(told: dict[str, Any]) -> None:
    """Everything that failed did so for want of room, and said what is needed; then nothing was accepted."""
    assert told["errors"]
    assert told["sound"], "the file was cut back to its last commit each time"
    for error in [*told["errors"], told["next"]]:
        assert error["code"] == "disk_full"
        assert "bytes" in error["message"]
        assert "ulimit -f" in error["remedy"]
        assert not error["retry"]


async def check_whole(home: Path, done: list[str]) -> None:
    """With room again: what was reported done is whole, what was not can be run, and the statistics add up."""
    async with thinking(home) as uvm:
        waiting = await uvm.missions.recover()
        for mission in waiting:
            assert (await uvm.missions.run(mission))["status"] == "done"
        reports = [uvm.readings.mission(line["id"]) async for line in yielding_every(uvm.readings.newest(10_000), 8)]
        keys = {record.key for record in uvm.journal.read([each["id"] for each in reports]) if record.state == "done"}
        calls = 0
        for each in reports:
            if each["status"] == "done":
                calls += each["cost"]["calls"]
                assert each["answer"]
                assert set(each["provenance"]["journal"]) <= keys
            else:
                assert each["status"] == "failed"
                assert each["reason"]["code"] == "disk_full"
                assert "answer" not in each
        assert set(done) <= {each["id"] for each in reports if each["status"] == "done"}
        with uvm.image.snapshot() as root:
            assert root["statistics"]["calls"] == calls
            assert list(root["unfolded"]) == []
    # Nothing had to be repaired: a repair leaves what it cut off in a file of its own.
    assert {each.suffix for each in await asyncio.to_thread(lambda: list(home.glob("*.fs*")))} == SUFFIXES


def stage(told: dict[str, Any]) -> str:
    """Which write was the first that did not fit."""
    name, note = told["full"][0]
    if name == "journal":
        return "journal"
    at = told["errors"][0]["at"]
    return str(at) if at != "run" else "thought" if note.startswith("m-") else "status"


async def test_the_image_may_be_full_at_any_write(tmp_path: Path) -> None:
    """The limit moves over the writes of a mission: accept, status, thought, publish; each is survived."""
    told = await filled(tmp_path, "image", 1, LIMITS)
    stages = {stage(each) for each in told}
    for each in told:
        check_told(each)
    assert stages == {"accept", "status", "thought", "publish"}
    await check_whole(tmp_path, [mission for each in told for mission in each["done"]])


async def test_the_journal_may_be_full_at_any_write(tmp_path: Path) -> None:
    """The limit moves over the entries of a mission; an answer that cannot be written down is not used."""
    told = await filled(tmp_path, "journal", 1, range(0, 24_000, 2_400))
    for each in told:
        check_told(each)
        assert stage(each) == "journal"
    await check_whole(tmp_path, [mission for each in told for mission in each["done"]])


async def test_missions_at_once_when_the_disk_is_full(tmp_path: Path) -> None:
    """With eight missions under way at that moment those that fit are done, the others failed, and none is half."""
    told = await filled(tmp_path, "image", 8, range(2_000, 40_000, 13_000))
    for each in told:
        check_told(each)
    await check_whole(tmp_path, [mission for each in told for mission in each["done"]])


async def test_a_blob_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """Its mission is not accepted, and no part of the blob stays behind."""
    (told,) = await filled(tmp_path, "blob", 1, range(2_000_000, 2_000_001))
    assert [error["code"] for error in told["errors"]] == ["disk_full"]
    assert told["left"] == []
    assert not list((tmp_path / "blobs").rglob("*.blob"))
    async with thinking(tmp_path) as uvm:
        assert uvm.readings.newest() == []


@dataclass(slots=True)
class BreakingDisk:
    """A disk whose sync fails once `number` is set: then nobody knows what has reached it."""

    home: Path
    number: int | None = None

    def sync(self, descriptor: int) -> None:
        """Sync, or fail."""
        if self.number is not None:
            raise OSError(self.number, "sync failed")
        os.fsync(descriptor)

    def __call__(self) -> SoundFileStorage:
        """Open the image's storage on it."""
        return SoundFileStorage(str(self.home / "live_image.fs"), blob_dir=str(self.home / "blobs"), sync=self.sync)


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EIO, "image")])
async def test_a_sync_that_fails_ends_the_image(tmp_path: Path, number: int, code: str) -> None:
    """The storage closes itself; every later write is refused as an error of ours; close works; the rest is whole."""
    disk = BreakingDisk(tmp_path)
    async with open_image(tmp_path, image_factory=disk) as image:
        mission = await image.accept(brief())
        disk.number = number
        with pytest.raises(ImageError) as failed, image.transaction(mission) as transaction:
            await transaction.commit(answer(thought_in(image, transaction, mission)))
        assert failed.value.code == code
        assert not transaction.committed
        with pytest.raises(ImageError):
            await image.move(mission, "failed")
        with pytest.raises(ImageError):
            await image.accept(brief())
    async with open_image(tmp_path) as image:
        with image.snapshot() as root:
            slots = own_slots(image.find(root, mission)[2])
            # Nobody can know whether it was committed; it is there whole or not at all.
            assert ("answer" in slots) == ("provenance" in slots)
        await image.accept(brief("goes on"))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "on the disk of /"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "on the disk of /"),
        (OSError(errno.EFBIG, "File too large"), "ulimit -f"),
    ],
)
def test_what_is_told_of_a_full_disk(error: OSError, says: str) -> None:
    """How many bytes were needed, how many are free, and what to do about it."""
    told = disk_full(error, Path("/live_image.fs"), 12_345)
    assert "12,345 bytes" in told.message
    assert "bytes free" in told.message
    assert str(error.strerror) in told.message
    assert says in told.remedy
    assert "12,345" in told.remedy


def test_a_full_disk_is_recognised_behind_other_errors() -> None:
    """By cause or context, however deep; also in a chain that bites its own tail."""
    inner = OSError(errno.ENOSPC, "No space left on device")
    outer = ValueError("something else")
    outer.__context__ = inner
    assert is_full(outer)
    loop, other = ValueError("one"), ValueError("two")
    loop.__context__, other.__context__ = other, loop
    assert not is_full(loop)
    assert not is_full(OSError(errno.EIO, "Input/output error"))
