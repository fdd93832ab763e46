"""The file storage: a blob is on the disk before the commit that names it, and is nowhere but in the home."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import threading
from pathlib import Path

import pytest
from tests.image.open_image import brief, child, heard, open_image
from tests.image.power_cut_disk import Losing
from tests.waiting import HANG

from batos.image import roots
from batos.image.attached_files import INLINE_BYTES
from batos.image.filestorage import SoundFileStorage
from batos.image.image import LivingImage
from batos.protocol.errors import InternalError


def content(size: int) -> tuple[str, bytes]:
    """A file of so many bytes, by its digest."""
    data = (b"salt and water, " * (size // 16 + 1))[:size]
    return hashlib.sha256(data).hexdigest(), data


@pytest.mark.parametrize("size", [INLINE_BYTES + 1, 300_000])
async def test_a_power_cut_right_after_the_commit_loses_no_blob(tmp_path: Path, size: int) -> None:
    """All that was never synced is lost: the mission is there, and its file is what was attached."""
    sha256, data = content(size)
    home = tmp_path / "home"
    losing = Losing(home, tmp_path / "after")
    async with open_image(home, image_factory=losing) as image:
        name = await image.accept(brief(), {sha256: data})
    async with open_image(losing.after) as image:
        assert image.unfolded_missions() == [name]
        with image.snapshot() as root:
            assert root[roots.ATTACHMENTS][sha256].read() == data


async def test_a_blob_is_written_in_the_home_alone(tmp_path: Path) -> None:
    """Its content stands in no other folder, not even while it is written."""
    sha256, data = content(300_000)
    home = tmp_path / "home"
    losing = Losing(home, tmp_path / "after")
    async with open_image(home, image_factory=losing) as image:
        await image.accept(brief(), {sha256: data})
    assert [each.parent for each in losing.written] == [home / "blobs" / "tmp"]


async def test_an_attachment_that_is_refused_leaves_no_file(tmp_path: Path) -> None:
    """One of two files is not what its digest says: what was written of the other is removed."""
    sha256, data = content(300_000)
    async with open_image(tmp_path) as image:
        with pytest.raises(InternalError, match="digest"):
            await image.accept(brief(), {sha256: data, "0" * 64: data})
        await image.accept(brief())
        assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file() and path.name != ".layout"]


async def test_a_blob_that_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    """The next start finds what was not committed and takes it away; what was committed stays."""
    sha256, data = content(300_000)
    async with open_image(tmp_path) as image:
        await image.accept(brief(), {sha256: data})
    (tmp_path / "blobs" / "tmp" / "BUCleft").write_bytes(data)
    async with open_image(tmp_path) as image:
        assert list((tmp_path / "blobs" / "tmp").iterdir()) == []
        with image.snapshot() as root:
            assert root[roots.ATTACHMENTS][sha256].read() == data


async def test_a_kill_after_accept_loses_nothing(tmp_path: Path) -> None:
    """The blob and each folder above it were synced before the image, and the image before the id was told."""
    lines: list[str] = []
    with child("script_attach.py", tmp_path, 300_000) as process:
        while not lines or not lines[-1].startswith("m-"):
            lines.append(await heard(process))
        process.send_signal(signal.SIGKILL)
    synced = [Path(line) for line in lines[:-1]]
    sha256, data = content(300_000)
    async with open_image(tmp_path) as image:
        with image.snapshot() as root:
            kept = root[roots.ATTACHMENTS][sha256]
            assert kept.read() == data
            assert kept.blob is not None
            blob = Path(kept.blob.committed())
    blobs = tmp_path / "blobs"
    above = [each for each in blob.parents if each == blobs or blobs in each.parents]
    assert len(above) == 9
    last = max(number for number, path in enumerate(synced) if path == tmp_path / "live_image.fs")
    assert {blob, *above} <= set(synced[:last])


async def test_others_read_while_a_commit_is_synced(tmp_path: Path) -> None:
    """What was there before, and from disk; what is committed is seen once it is on the disk."""
    syncing, go_on = threading.Event(), threading.Event()
    go_on.set()

    def sync(descriptor: int) -> None:
        syncing.set()
        assert go_on.wait(HANG)
        os.fsync(descriptor)

    def status(image: LivingImage, name: str) -> str:
        image.db.cacheMinimize()
        with image.snapshot() as root:
            return image.find(root, name)[1].word

    home, blobs = tmp_path / "live_image.fs", tmp_path / "blobs"
    async with open_image(
        tmp_path, image_factory=lambda: SoundFileStorage(str(home), blob_dir=str(blobs), sync=sync)
    ) as image:
        name = await image.accept(brief())
        syncing.clear()
        go_on.clear()
        moving = asyncio.create_task(image.move(name, "running"))
        assert await asyncio.to_thread(syncing.wait, HANG)
        before, told = status(image, name), moving.done()
        go_on.set()
        await moving
        assert (before, told, status(image, name)) == ("queued", False, "running")


def test_a_storage_without_blobs_makes_no_folder(tmp_path: Path) -> None:
    """The journal is such a storage."""
    SoundFileStorage(str(tmp_path / "journal.fs"), sync=os.fsync).close()
    assert not [each for each in tmp_path.iterdir() if each.is_dir()]
