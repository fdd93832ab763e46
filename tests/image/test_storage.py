"""Storage URIs, who owns an image, and what is told when it does not open."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from pathlib import Path

import pytest
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from tests.image.open_image import brief, heard, interpreter, open_image

from batos.image import roots
from batos.image.storage import CACHED_BYTES, journal_uri, open_database
from batos.protocol.errors import ConfigError, ImageBusy, ImageDamaged, ImageError


@pytest.mark.parametrize(
    ("image", "journal", "expected"),
    [
        ("file:///a/live_image.fs", "", "file:///a/journal.fs"),
        ("file:///a/image.fs?blobstorage_dir=/a/blobs", "", "file:///a/journal.fs"),
        ("memory://image", "", "memory://journal"),
        ("zeo://127.0.0.1:9991", "", "zeo://127.0.0.1:9991?storage=journal"),
        ("zeo://box:1?wait_timeout=9&storage=1", "", "zeo://box:1?wait_timeout=9&storage=journal"),
        ("file:///a/x.fs", "memory://other", "memory://other"),
        ("postgres://u:p@box/image", "postgresql://u:p@box/journal", "postgres://u:p@box/journal"),
        ("postgresql://box/image", "postgres://box/journal", "postgres://box/journal"),
    ],
)
def test_the_journals_uri(image: str, journal: str, expected: str) -> None:
    """It is the given one, or the image's neighbour; postgresql:// is postgres://."""
    assert journal_uri(image, journal) == expected


@pytest.mark.parametrize("name", ["image.fs", "journal.fs"])
def test_a_long_life_does_not_fill_the_memory(tmp_path: Path, name: str) -> None:
    """However many large records are written, a cache keeps its share of bytes, the newest ones."""
    db = open_database(f"file://{tmp_path / name}", connections=8)
    try:
        with db.transaction() as connection:
            kept = connection.root()["kept"] = OOBTree()
            cache = connection._cache
            for number in range(200):
                kept[f"{number:03d}"] = PersistentMapping({"text": "x" * 2**15})
                connection.transaction_manager.savepoint(optimistic=True)
        assert 0 < cache.total_estimated_size <= CACHED_BYTES // 8 < 200 * 2**15
        with db.transaction() as connection:
            assert len(connection.root()["kept"]["000"]["text"]) == 2**15
    finally:
        db.close()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_postgres_image_needs_a_journal_of_its_own(scheme: str) -> None:
    """Its tables have fixed names, so no journal can be derived; the remedy names the setting."""
    with pytest.raises(ConfigError) as refused:
        journal_uri(f"{scheme}://u:p@box/image", "")
    assert refused.value.field == "journal"
    assert "BATOS_JOURNAL" in refused.value.remedy


def test_a_path_is_no_uri() -> None:
    """The remedy has the URI of that file, for the image and for what is derived from it."""
    for opens in (lambda uri: journal_uri(uri, ""), lambda uri: open_database(uri, connections=1)):
        with pytest.raises(ConfigError, match="no scheme") as refused:
            opens("/a/live_image.fs")
        assert "file:///a/live_image.fs?blobstorage_dir=/a/blobs" in refused.value.remedy


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("ftp://somewhere/x.fs", "No resolver"),
        ("file://", "names no file"),
        ("file:///tmp/x.fs?blob_dir=/tmp/blobs", "'blob_dir'"),
        ("file:///tmp/x.fs?quota=lots", "number of bytes"),
        ("memory://x?surprise=1", "surprise"),
        ("zeo://127.0.0.1:1?server_sync=1", "server_sync"),
    ],
)
def test_a_uri_that_is_none(uri: str, says: str) -> None:
    """A wrong URI or an unknown keyword is a setting's error, with what is wrong and what would be right."""
    with pytest.raises(ConfigError, match=says) as refused:
        open_database(uri, connections=1)
    assert refused.value.exit_code == 2
    assert "file:///path/name.fs" in refused.value.remedy


@pytest.mark.parametrize(("missions", "pool", "cache"), [(1, 5, 40_000), (8, 12, 5_000), (256, 260, 1_000)])
def test_pool_and_cache_follow_the_mission_limit(tmp_path: Path, missions: int, pool: int, cache: int) -> None:
    """Each mission has its connection, and all caches together hold what the machine can spare."""
    db = open_database(f"file://{tmp_path / 'x.fs'}", connections=missions)
    assert (db.getPoolSize(), db.getCacheSize()) == (pool, cache)
    db.close()


def test_the_folder_of_an_image_is_its_owners_alone(tmp_path: Path) -> None:
    """A home that is made on the way has mode 0700."""
    home = tmp_path / "a" / "home"
    open_database(f"file://{home / 'x.fs'}", connections=1).close()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


async def test_a_second_process_is_told_who_holds_the_image(tmp_path: Path) -> None:
    """It gets image_busy, exit 5, with the pid and the command of the owner; when that is killed, the image opens."""
    with interpreter("script_hold.py", tmp_path) as process:
        assert await heard(process) == "open"
        with pytest.raises(ImageBusy) as busy:
            async with open_image(tmp_path):
                pass
    assert (busy.value.code, busy.value.exit_code, busy.value.retry) == ("image_busy", 5, True)
    assert f"process {process.pid} (python" in str(busy.value)
    assert "script_hold.py" in str(busy.value)
    assert str(process.pid) in (tmp_path / "live_image.fs.lock").read_text()
    async with open_image(tmp_path) as image:
        await image.accept(brief())


async def test_the_lock_file_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    """A pid in the file is a note; the lock is the kernel's and ends with its process."""
    (tmp_path / "live_image.fs.lock").write_text(f" {os.getpid()}\n")
    async with open_image(tmp_path) as image:
        await image.accept(brief())


async def test_a_lock_file_that_is_deleted_lets_nobody_in(tmp_path: Path) -> None:
    """The database files are locked themselves: a second process is told who holds them, not let in beside it."""
    with interpreter("script_hold.py", tmp_path) as process:
        assert await heard(process) == "open"
        for name in ("live_image.fs", "journal.fs"):
            (tmp_path / f"{name}.lock").unlink()
        for _ in range(2):
            with pytest.raises(ImageBusy) as busy:
                async with open_image(tmp_path):
                    pass
            assert f"process {process.pid} " in str(busy.value) or "another process" in str(busy.value)
    async with open_image(tmp_path) as image:
        await image.accept(brief())


async def test_the_file_is_held_after_a_pack(tmp_path: Path) -> None:
    """A packed file is another one, and is locked as the first was; what was written is there."""
    async with open_image(tmp_path) as image:
        name = await image.accept(brief())
        await asyncio.to_thread(image.db.pack)
        (tmp_path / "live_image.fs.lock").unlink()
        with pytest.raises(ImageBusy):
            open_database(f"file://{tmp_path / 'live_image.fs'}", connections=1)
    async with open_image(tmp_path) as image:
        assert image.unfolded_missions() == [name]


@pytest.mark.parametrize("suffix", [".lock", ".tmp", ".index", ".index.index_tmp", ".pack", ".old"])
@pytest.mark.parametrize("name", ["live_image.fs", "journal.fs"])
async def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, suffix: str) -> None:
    """A link in the place of a file that is written beside a database is refused, and what it names is untouched."""
    mine = tmp_path / "mine"
    mine.write_text("my letters")
    home = tmp_path / "home"
    home.mkdir()
    (home / f"{name}{suffix}").symlink_to(mine)
    with pytest.raises(ImageDamaged, match="no plain file"):
        async with open_image(home):
            pass
    assert mine.read_text() == "my letters"


async def test_a_busy_journal_lets_the_image_go(tmp_path: Path) -> None:
    """When the journal cannot be opened, the image is given back: it opens again at once."""
    held = open_database(f"file://{tmp_path / 'journal.fs'}", connections=1)
    with pytest.raises(ImageBusy, match=r"journal\.fs"):
        async with open_image(tmp_path):
            pass
    held.close()
    async with open_image(tmp_path):
        pass


async def test_a_file_that_is_no_image_is_damaged_and_let_go(tmp_path: Path) -> None:
    """The error says so and keeps no lock: with the file mended, the same process can open it, error in hand."""
    path = tmp_path / "live_image.fs"
    path.write_bytes(b"this is not a database at all, but a letter to a friend")
    with pytest.raises(ImageDamaged) as damaged:
        async with open_image(tmp_path):
            pass
    assert damaged.value.exit_code == 5
    path.unlink()
    async with open_image(tmp_path):
        pass
    assert damaged.value.__cause__ is not None


@pytest.mark.parametrize("place", ["under/a/file.fs", "."])
def test_a_path_that_cannot_be_opened_is_told(tmp_path: Path, place: str) -> None:
    """A folder in the file's place, a file in the folder's: an error of ours with the system's words."""
    (tmp_path / "under").write_text("a file")
    with pytest.raises(ImageError) as refused:
        open_database(f"file://{tmp_path / place}", connections=1)
    assert refused.value.remedy


async def test_a_torn_end_is_cut_off_at_opening(tmp_path: Path) -> None:
    """A power cut in the middle of a commit leaves half of it at the end; what was committed before is all there."""
    async with open_image(tmp_path) as image:
        first = await image.accept(brief())
        whole = (tmp_path / "live_image.fs").stat().st_size
        await image.accept(brief("not acknowledged"))
    path = tmp_path / "live_image.fs"
    size = path.stat().st_size
    for cut in (whole + 1, (whole + size) // 2, size - 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        shutil.copy(path, folder)
        shutil.copy(tmp_path / "journal.fs", folder)
        os.truncate(folder / "live_image.fs", cut)
        async with open_image(folder) as image:
            assert image.unfolded_missions() == [first]
            await image.accept(brief("goes on"))


async def test_an_image_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    """What a later version wrote is not touched by this one."""
    async with open_image(tmp_path) as image:
        await image.writer.apply(lambda root: root[roots.GENESIS].__setitem__("format", roots.FORMAT + 1))
    before = (tmp_path / "live_image.fs").read_bytes()
    with pytest.raises(ImageError, match=f"it has format {roots.FORMAT + 1}"):
        async with open_image(tmp_path):
            pass
    assert (tmp_path / "live_image.fs").read_bytes() == before
