"""Looking at an image changes no byte of it, minds no other process, and finds what opening it would find."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from batos.image import roots
from batos.image.image import LivingImage, Opening
from batos.image.readable import is_there, open_read_only
from batos.protocol.errors import ImageDamaged


def uri_of(home: Path) -> str:
    """The image of a home."""
    return f"file://{home / 'live_image.fs'}?blobstorage_dir={home / 'blobs'}"


def digests(home: Path) -> dict[str, str]:
    """Every file under a folder, by what is in it."""
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in home.rglob("*") if path.is_file()}


def accept(image: LivingImage) -> str:
    """A mission more."""
    return asyncio.run(image.accept({"text": "Why?", "user": "ada"}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with an image and its journal, in which one mission waits."""
    image = LivingImage(Opening(uri_of(tmp_path), ""))
    asyncio.run(image.prepare())
    accept(image)
    image.close()
    return tmp_path


def test_a_sound_image(home: Path) -> None:
    """Root, pair, indexes and last commit are seen, nobody holds it, and no file is another afterwards or new."""
    before = digests(home)
    with open_read_only(uri_of(home), "") as faces:
        with faces.root() as root:
            assert len(root[roots.MISSIONS]) == 1
        assert faces.pair()
        assert (faces.holder, faces.unfinished) == ("", ())
        assert [(path.name, sound) for path, sound in faces.indexes] == [("live_image.fs", True), ("journal.fs", True)]
        # any pace: a test that took so long would have been ended
        assert abs(faces.last_at() - time.time()) < 600
    assert digests(home) == before


def test_beside_its_owner(home: Path) -> None:
    """While another has it open it is looked at all the same, as of its last commit, and the owner is named."""
    owner = LivingImage(Opening(uri_of(home), ""))
    try:
        accept(owner)
        with open_read_only(uri_of(home), "") as faces, faces.root() as root:
            assert len(root[roots.MISSIONS]) == 2
            accept(owner)
            assert len(root[roots.MISSIONS]) == 2
            assert "process" in faces.holder
    finally:
        owner.close()


@pytest.mark.parametrize("rest", [b"\0" * 70, b"\0" * 3, b"torn"], ids=["zeros", "few", "bytes"])
def test_what_a_crash_left(home: Path, rest: bytes) -> None:
    """An unfinished commit is counted and read past; nothing is cut off."""
    with (home / "live_image.fs").open("ab") as file:
        file.write(rest)
    before = digests(home)
    with open_read_only(uri_of(home), "") as faces, faces.root() as root:
        assert len(root[roots.MISSIONS]) == 1
        assert [(path.name, size) for path, size in faces.unfinished] == [("live_image.fs", len(rest))]
    assert digests(home) == before


def damaged(home: Path) -> None:
    path = home / "live_image.fs"
    path.write_bytes(b"not a database" + path.read_bytes()[14:])
    (home / "live_image.fs.index").unlink()


def shortened(home: Path) -> None:
    path = home / "live_image.fs"
    path.write_bytes(path.read_bytes()[:-50])


def without_journal(home: Path) -> None:
    (home / "journal.fs").unlink()


def a_link(home: Path) -> None:
    (home / "live_image.fs.index").unlink()
    (home / "live_image.fs.index").symlink_to("/dev/null")


@pytest.mark.parametrize("breaks", [damaged, shortened, without_journal, a_link])
def test_damage_is_told(home: Path, breaks: Callable[[Path], None]) -> None:
    """What opening would refuse is refused, with a remedy, and stays as it is."""
    breaks(home)
    before = digests(home)
    with pytest.raises(ImageDamaged) as raised, open_read_only(uri_of(home), ""):
        pass
    assert raised.value.remedy
    assert digests(home) == before


def test_another_homes_journal_is_no_pair(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The two files must hold one id."""
    other = tmp_path_factory.mktemp("other")
    image = LivingImage(Opening(uri_of(other), ""))
    asyncio.run(image.prepare())
    image.close()
    with open_read_only(uri_of(home), f"file://{other / 'journal.fs'}") as faces, pytest.raises(ImageDamaged):
        faces.pair()


def test_a_foreign_index_is_seen(home: Path) -> None:
    """An index that ZODB did not write is told of, and not read."""
    (home / "journal.fs.index").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with open_read_only(uri_of(home), "") as faces:
        assert [(path.name, sound) for path, sound in faces.indexes] == [("live_image.fs", True), ("journal.fs", False)]


def test_what_is_not_there_yet(tmp_path: Path) -> None:
    """Only a file can be known to be absent without opening it."""
    assert not is_there(uri_of(tmp_path))
    assert is_there("memory://image")
    with open_read_only("memory://image", "") as faces, faces.root() as root:
        assert not root
        assert faces.pair() == ""


def test_files_without_a_first_commit_are_closed_again(tmp_path: Path) -> None:
    """An image that is just being made has no root yet: that is told, and no file of it stays open."""
    uri = uri_of(tmp_path)
    for name in ("live_image.fs", "journal.fs"):
        (tmp_path / name).touch()
    with pytest.raises(ImageDamaged) as raised, open_read_only(uri, ""):
        pass
    assert "does not open" in raised.value.message
    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert [path for path in opened if path.startswith(str(tmp_path))] == []
