"""Files on their way: pieces in any order that makes sense, verified, bounded, and cleaned up."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batos.protocol.errors import BriefError, Busy, ImageError
from batos.protocol.wire_messages import PIECE_BYTES
from batos.server.dispatch import uploads
from batos.server.dispatch.uploads import PATIENCE, Uploads


def name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def code(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_a_file_is_whole_when_its_digest_says_so(tmp_path: Path) -> None:
    """Piece by piece; only the last one tells its size, and only then it can be had."""
    spool, data = Uploads(tmp_path / "uploads", 100), b"abcdef"
    assert await spool.add(name(data), 0, "") == {"sha256": name(data), "have": 0}
    assert await spool.add(name(data), 0, code(b"abc")) == {"sha256": name(data), "have": 3}
    assert await spool.content(name(data)) is None
    assert await spool.add(name(data), 9, code(b"xyz")) == {"sha256": name(data), "have": 3}
    assert await spool.add(name(data), 1, code(b"bcdef")) == {"sha256": name(data), "have": 6, "size": 6}
    assert await spool.content(name(data)) == data
    assert (tmp_path / "uploads").stat().st_mode & 0o077 == 0
    await spool.forget([name(data)])
    assert await spool.content(name(data)) is None
    assert list((tmp_path / "uploads").iterdir()) == []
    await spool.close()
    assert not (tmp_path / "uploads").exists()


@settings(max_examples=50)
@given(data=st.binary(min_size=1, max_size=200), cuts=st.lists(st.integers(0, 200), max_size=8))
async def test_pieces_in_whatever_order_come_to_the_file_or_to_less(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int]
) -> None:
    """What is there is always the file's beginning; sent from there to its end, it is whole."""
    spool = Uploads(tmp_path_factory.mktemp("spool") / "uploads", 1_000)
    have = 0
    for cut in cuts:
        told = await spool.add(name(data), cut, code(data[cut : cut + 50]))
        assert told["have"] >= have
        have = told["have"]
    told = await spool.add(name(data), have, code(data[have:]))
    assert told["size"] == len(data)
    assert await spool.content(name(data)) == data


async def test_pieces_that_do_not_agree_end_the_upload(tmp_path: Path) -> None:
    """What came damaged is dropped, so that it can be sent again."""
    spool, data = Uploads(tmp_path / "uploads", 100), b"abcdef"
    await spool.add(name(data), 0, code(b"aXc"))
    with pytest.raises(BriefError, match="do not agree"):
        await spool.add(name(data), 0, code(b"abc"))
    assert (await spool.add(name(data), 0, code(data)))["size"] == 6


async def test_what_is_too_much_is_refused(tmp_path: Path) -> None:
    """One file beyond its bound, all of them beyond theirs, too many, too long a piece, and what is not base64."""
    spool = Uploads(tmp_path / "uploads", 10, 15)
    with pytest.raises(BriefError, match="more than 10 bytes"):
        await spool.add("0" * 64, 0, code(b"x" * 11))
    await spool.add("1" * 64, 0, code(b"x" * 10))
    with pytest.raises(Busy):
        await spool.add("2" * 64, 0, code(b"x" * 10))
    for wrong in ("abc", "a" * 5, "€", "ab\ncd=="):
        with pytest.raises(BriefError) as refused:
            await spool.add("3" * 64, 0, wrong)
        assert refused.value.field == "args.data"
    with pytest.raises(BriefError, match="at most"):
        await spool.add("3" * 64, 0, code(b"x" * (PIECE_BYTES + 1)))


async def test_so_many_files_and_no_more(tmp_path: Path) -> None:
    """A client that begins files without end is told to wait."""
    spool = Uploads(tmp_path / "uploads", 10)
    for number in range(uploads.FILES):
        await spool.add(f"{number:064}", 0, code(b"x"))
    with pytest.raises(Busy):
        await spool.add("f" * 64, 0, code(b"x"))


async def test_a_guest_has_a_quarter_of_the_files(tmp_path: Path) -> None:
    """The guest is told to wait, while the home and other guests send; its own file that is left alone gives way."""
    now = 0.0
    spool = Uploads(tmp_path / "uploads", 10, clock=lambda: now)
    await spool.add("a" * 64, 0, code(b"x"))
    for number in range(uploads.FILES // 4):
        await spool.add(f"{number:064}", 0, code(b"x"), "key laptop")
    with pytest.raises(Busy):
        await spool.add("f" * 64, 0, code(b"x"), "key laptop")
    for user in ("", "ada", "key other"):
        assert (await spool.add("f" * 64, 0, code(b"x"), user))["have"] == 1
    now = uploads.CROWDED + 1
    assert (await spool.add("f" * 64, 0, code(b"x"), "key laptop"))["have"] == 1
    assert (tmp_path / "uploads" / ("a" * 64)).exists()


async def test_a_guest_has_a_quarter_of_the_bytes_and_room_for_a_file(tmp_path: Path) -> None:
    """The home has the rest; where a quarter is less than the longest file, the guest has that."""
    spool = Uploads(tmp_path / "uploads", 10, 80)
    for name_ in ("1", "2"):
        await spool.add(name_ * 64, 0, code(b"x" * 10), "key laptop")
    with pytest.raises(Busy, match="files of 20 bytes together"):
        await spool.add("3" * 64, 0, code(b"x"), "key laptop")
    assert (await spool.add("3" * 64, 0, code(b"x" * 10)))["have"] == 10
    narrow = Uploads(tmp_path / "narrow", 10, 12)
    assert (await narrow.add("1" * 64, 0, code(b"x" * 10), "key laptop"))["have"] == 10


async def test_what_was_left_alone_makes_room_for_others(tmp_path: Path) -> None:
    """Where there is no room, what nobody went on with for a minute goes first, whether it is whole or not."""
    now = 0.0
    spool = Uploads(tmp_path / "uploads", 10, 15, clock=lambda: now)
    await spool.add("1" * 64, 0, code(b"x" * 8))
    now = uploads.CROWDED
    await spool.add("2" * 64, 0, code(b"x" * 6))
    now += 1
    assert (await spool.add("3" * 64, 0, code(b"x" * 9)))["have"] == 9
    assert [path.name[0] for path in sorted((tmp_path / "uploads").iterdir())] == ["2", "3"]
    with pytest.raises(Busy):
        await spool.add("4" * 64, 0, code(b"x" * 5))
    for number in range(uploads.FILES - 3):
        await spool.add(f"{number:064}", 0, "")
        await spool.add(f"{number:064}", 3, code(b"x"))
    now += uploads.CROWDED + 1
    assert (await spool.add("f" * 64, 0, code(b"x")))["have"] == 1


async def test_what_nobody_goes_on_with_is_removed(tmp_path: Path) -> None:
    """After an hour without a piece, and what an earlier process left with the first piece."""
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / "left").write_bytes(b"x")
    now = 0.0
    spool = Uploads(tmp_path / "uploads", 10, clock=lambda: now)
    await spool.add("1" * 64, 0, code(b"x"))
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["1" * 64]
    now = PATIENCE + 1
    await spool.add("2" * 64, 0, code(b"x"))
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["2" * 64]


async def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The file is dropped, and what happened is said."""
    spool = Uploads(tmp_path / "uploads", 10)
    await spool.add("1" * 64, 0, code(b"x"))
    (tmp_path / "uploads" / ("1" * 64)).unlink()
    (tmp_path / "uploads" / ("1" * 64)).mkdir()
    with pytest.raises(ImageError):
        await spool.add("1" * 64, 1, code(b"y"))


def test_what_ended_processes_left_is_swept_away(tmp_path: Path) -> None:
    """Each that opened the image had a folder of its own; those of processes that run stay."""
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    ended, ours, other = (f"uploads-{name}" for name in (int(done.stdout), os.getpid(), "x"))
    for name in (ended, ours, other):
        (tmp_path / name).mkdir()
        (tmp_path / name / "piece").write_bytes(b"x")
    uploads.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ours, other])
