"""Accepting: what was acknowledged is there, whatever happens to the process."""

from __future__ import annotations

import asyncio
import hashlib
import random
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import brief, child, dump, open_image

from batos.image import roots
from batos.image.attached_files import INLINE_BYTES
from batos.image.image import LivingImage
from batos.protocol.errors import Busy, DiskFull, ImageDamaged, InternalError, NotFound

MISSIONS = 1000
#: How many acknowledgements are read before the process is killed; the rest of the rounds is random.
ROUNDS = 5


def killed_after(home: Path, acknowledged: int) -> dict[str, str]:
    """The ids that a process printed before it was killed, with the number of each question."""
    # It would accept many more: it is in the middle of its work whenever it is killed.
    with child("script_accept.py", home, 1000 * MISSIONS) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
    # The last line may have been cut by the kill.
    whole = [line.split() for line in lines if line.endswith("\n") and line.startswith("m-")]
    return dict(whole)


async def test_no_acknowledged_mission_is_lost_by_a_kill(tmp_path: Path) -> None:
    """After SIGKILL at random moments every id that was printed exists, queued, with its brief and its thought."""
    chance = random.Random(20)
    for moment in [1, *(chance.randrange(2, MISSIONS) for _ in range(ROUNDS - 1))]:
        printed = await asyncio.to_thread(killed_after, tmp_path, moment)
        assert len(printed) >= moment
        async with open_image(tmp_path) as image:
            await asyncio.to_thread(check, image, printed)


def check(image: LivingImage, printed: dict[str, str]) -> None:
    """Each acknowledged mission is queued and has its three objects."""
    unfolded = set(image.unfolded_missions())
    with image.snapshot() as root:
        for name, number in printed.items():
            record, status, thought = image.find(root, name)
            assert record.value["text"] == f"question {number}"
            assert (status.word, status.attempts) == ("queued", 0)
            assert thought.mission == name
            assert name in unfolded


async def test_missions_accepted_at_once_share_commits(tmp_path: Path) -> None:
    """A thousand missions, twenty-five at a time, take far fewer commits than missions."""
    with child("script_accept.py", tmp_path, MISSIONS) as process:
        out, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0
    *accepted, last = out.splitlines()
    assert len(accepted) == MISSIONS
    assert int(last.split()[1]) < MISSIONS / 4


async def test_accept_writes_three_objects_apart(tmp_path: Path) -> None:
    """Brief, status and thought are records of their own, so that a status never conflicts with a thought."""
    async with open_image(tmp_path) as image:
        name = await image.accept(brief())
        with image.snapshot() as root:
            parts = image.find(root, name)
            assert len({part._p_oid for part in parts}) == 3
            assert parts[0].value == {**brief(), "id": name}
            assert parts[0].trust == "user"


async def test_an_unknown_mission_is_not_found() -> None:
    """Asking for what was never accepted is an error that names it."""
    async with open_image(None) as image:
        with image.snapshot() as root, pytest.raises(NotFound, match="m-0"):
            image.find(root, "m-0")


async def test_ids_sort_by_time(tmp_path: Path) -> None:
    """The missions of one image are listed in the order they were accepted."""
    moments = (datetime(2026, 11, 21, 9, tzinfo=UTC) + timedelta(milliseconds=2 * number) for number in range(5))
    async with open_image(None, clock=lambda: next(moments)) as image:
        names = [await image.accept(brief()) for _ in range(5)]
        assert names == sorted(names)


def content(size: int) -> tuple[str, bytes]:
    """A file of so many bytes, by its digest."""
    data = (b"salt and water, " * (size // 16 + 1))[:size]
    return hashlib.sha256(data).hexdigest(), data


@pytest.mark.parametrize("size", [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 1_000_000])
async def test_an_attachment_reads_back(tmp_path: Path, size: int) -> None:
    """A file is kept whole: up to 64 KiB in its record, above that as a blob."""
    sha256, data = content(size)
    async with open_image(tmp_path) as image:
        await image.accept(brief(), {sha256: data})
    async with open_image(tmp_path) as image:
        with image.snapshot() as root:
            kept = root[roots.ATTACHMENTS][sha256]
            assert kept.read() == data
            assert (kept.size, kept.trust) == (size, "external")
            assert (kept.blob is None) == (size <= INLINE_BYTES)


async def test_an_image_in_memory_keeps_long_files_in_their_records() -> None:
    """A storage without blobs takes any file all the same."""
    sha256, data = content(INLINE_BYTES + 1)
    async with open_image(None) as image:
        await image.accept(brief(), {sha256: data})
        with image.snapshot() as root:
            assert root[roots.ATTACHMENTS][sha256].blob is None
            assert root[roots.ATTACHMENTS][sha256].read() == data


async def test_the_same_file_is_kept_once(tmp_path: Path) -> None:
    """Two missions with equal files share one attachment."""
    sha256, data = content(100)
    async with open_image(tmp_path) as image:
        await image.accept(brief("one"), {sha256: data})
        await image.accept(brief("two"), {sha256: data})
        with image.snapshot() as root:
            assert list(root[roots.ATTACHMENTS]) == [sha256]


async def test_a_file_that_is_not_what_its_digest_says_is_refused(tmp_path: Path) -> None:
    """Nothing of a mission is accepted when one of its files was changed on the way."""
    async with open_image(tmp_path) as image:
        before = dump(image)
        with pytest.raises(InternalError, match="digest"):
            await image.accept(brief(), {content(10)[0]: b"something else"})
        assert dump(image) == before


def spoil(path: Path, how: str) -> None:
    """Lose a file, cut it short or change it."""
    path.chmod(0o600)
    data = path.read_bytes()
    path.write_bytes(data[:-1] if how == "short" else b"X" + data[1:])
    if how == "lost":
        path.unlink()


async def spoilt(home: Path, how: str) -> tuple[str, bytes]:
    """An image with one long file, whose blob was then lost, cut short or changed; the file."""
    sha256, data = content(INLINE_BYTES + 16)
    async with open_image(home) as image:
        await image.accept(brief(), {sha256: data})
        with image.snapshot() as root:
            blob = root[roots.ATTACHMENTS][sha256].blob
            assert blob is not None
            path = Path(blob.committed())
    spoil(path, how)
    return sha256, data


@pytest.mark.parametrize("how", ["lost", "short", "changed"])
async def test_a_file_that_is_not_what_was_attached_is_damage(tmp_path: Path, how: str) -> None:
    """Its content is never handed out: the error names the file and what to do."""
    sha256, _ = await spoilt(tmp_path, how)
    async with open_image(tmp_path) as image:
        with image.snapshot() as root, pytest.raises(ImageDamaged) as damaged:
            root[roots.ATTACHMENTS][sha256].read()
    assert (damaged.value.exit_code, sha256 in damaged.value.message) == (5, True)
    assert "Attach the file again" in damaged.value.remedy


@pytest.mark.parametrize("how", ["lost", "short", "changed"])
async def test_a_damaged_file_that_is_attached_again_is_whole(tmp_path: Path, how: str) -> None:
    """Accepting the same file writes its bytes anew, and the missions that came with it read them too."""
    sha256, data = await spoilt(tmp_path, how)
    async with open_image(tmp_path) as image:
        await image.accept(brief("again"), {sha256: data})
    async with open_image(tmp_path) as image:
        with image.snapshot() as root:
            assert root[roots.ATTACHMENTS][sha256].read() == data


async def test_nothing_is_accepted_after_the_disk_was_full(tmp_path: Path) -> None:
    """The first write that does not fit is refused with what it needs; so is every later mission, big or small."""
    uri = f"file://{tmp_path / 'live_image.fs'}?quota=40000"
    async with open_image(tmp_path, image=uri) as image:
        first = await image.accept(brief())
        with pytest.raises(DiskFull) as refused:
            await image.accept(brief("x" * 50_000))
        assert "quota" in refused.value.remedy
        for _ in range(2):
            with pytest.raises(DiskFull, match="no room"):
                await image.accept(brief("small"))
        assert list(image.unfolded_missions()) == [first]
    async with open_image(tmp_path) as image:
        assert image.unfolded_missions() == [first]
        await image.accept(brief("x" * 50_000))


async def test_a_full_queue_writes_nothing(tmp_path: Path) -> None:
    """Beyond the limit it is busy: no byte is written, and those who came with it in one commit are accepted."""
    async with open_image(tmp_path) as image:
        asked = (image.accept(brief(f"{number}?"), limit=3) for number in range(8))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(each, str) for each in found] == [True] * 3 + [False] * 5
        before = dump(image)
        with pytest.raises(Busy) as busy:
            await image.accept(brief("more?"), limit=3)
        assert (busy.value.retry, busy.value.exit_code) == (True, 4)
        assert dump(image) == before
        await image.accept(brief("without a limit?"))


@given(waves=st.lists(st.integers(0, 12), max_size=4), limit=st.integers(1, 9))
async def test_there_are_never_more_than_the_limit(waves: list[int], limit: int) -> None:
    """However many come at once, and however often some leave, no more wait than may; who is refused leaves nothing."""
    async with open_image(None) as image:
        for wave in waves:
            asked = (image.accept(brief(), limit=limit) for _ in range(wave))
            found = await asyncio.gather(*asked, return_exceptions=True)
            with image.snapshot() as root:
                assert roots.waiting_count(root) <= limit
                assert len(root[roots.UNFOLDED]) == roots.waiting_count(root)
            accepted = [each for each in found if isinstance(each, str)]
            assert all(isinstance(each, str | Busy) for each in found)
            for mission in accepted[::2]:
                await image.move(mission, "cancelled")


async def test_a_key_is_kept_with_its_mission(tmp_path: Path) -> None:
    """Accepted again, also by the next process, it is the first mission and nothing is written."""
    asked = {**brief(), "idempotency_key": "k"}
    async with open_image(tmp_path) as image:
        first = await image.accept(asked)
        assert set(await asyncio.gather(*(image.accept(asked) for _ in range(3)))) == {first}
    async with open_image(tmp_path) as image:
        before = dump(image)
        assert await image.accept(asked, limit=1) == first
        assert dump(image) == before
        assert await image.accept({**asked, "user": "another"}) != first


async def test_ids_sort_by_acceptance_within_a_millisecond(tmp_path: Path) -> None:
    """Also when the clock stands still or is set back, and over a restart."""
    moments = iter([datetime(2026, 11, 21, 9, tzinfo=UTC) - timedelta(hours=number // 9) for number in range(20)])
    names = []
    for _ in range(2):
        async with open_image(tmp_path, clock=lambda: next(moments)) as image:
            names += [await image.accept(brief()) for _ in range(10)]
    assert names == sorted(set(names))
    assert all(len(name) == 28 for name in names)
