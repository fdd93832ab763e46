"""Damage and crashes: what a crash leaves is cut off and kept, anything else is told and nothing of it changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.image.open_image import brief, open_image
from ZODB.FileStorage import FileIterator, FileStorage

from batos.image.classes import REMEDY
from batos.image.storage import open_database
from batos.image.unclean_close import cuttings
from batos.inference.journal import Journal, Record
from batos.protocol.errors import ImageDamaged

Damage = Callable[[bytearray, list[int]], None]
NAMES = ("live_image.fs", "journal.fs")


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A home with several missions and journal entries, closed; its index as of the first of them."""
    first = tmp_path / "first"
    async with open_image(first) as image:
        await image.accept(brief("first"))
    indexes = {name: (first / f"{name}.index").read_bytes() for name in NAMES}
    async with open_image(first) as image:
        journal = Journal(image.journal_db, image.journal_writer)
        for number in range(6):
            mission = await image.accept(brief(f"question {number}"))
            await journal.write(Record(f"k{number}", mission, "a#0", "robin", "d", {"messages": []}, "done", "then"))
    for name, index in indexes.items():
        (first / f"{name}.index").write_bytes(index)
    return first


def places(path: Path) -> list[int]:
    """Where each transaction of a file begins, and where the last ends."""
    iterator = FileIterator(str(path))
    found = [each._tpos for each in iterator]
    iterator.close()
    return [*found, path.stat().st_size]


def change(path: Path, damage: Damage) -> bytes:
    """Damage a file; its bytes then."""
    data = bytearray(path.read_bytes())
    damage(data, places(path))
    path.write_bytes(data)
    return bytes(data)


def setting(at: int, value: bytes, which: int = -3) -> Damage:
    """Other bytes in one transaction."""

    def damage(data: bytearray, places: list[int]) -> None:
        data[places[which] + at : places[which] + at + len(value)] = value

    return damage


def trailer(data: bytearray, places: list[int]) -> None:
    data[places[-3] + -8 : places[-3]] = b"\x01" * 8


DAMAGES: dict[str, Damage] = {
    "length": setting(8, b"\x7f" * 4),
    "length by one bit": setting(15, b"\x01"),
    "status of an unfinished one": setting(16, b"c"),
    "status of none": setting(16, b"!"),
    "id of the end of time": setting(0, b"\xff" * 8),
    "id of the beginning": setting(0, b"\0" * 7 + b"\1"),
    "zeros": setting(0, b"\0" * 200),
    "length of a text": setting(17, b"\x40\x01"),
    "a record's length": setting(23 + 34, b"\x7f"),
    "a record's place": setting(23 + 24, b"\x7f"),
    "trailer": trailer,
    "last length": setting(8, b"\x7f", -2),
    "last id": setting(1, b"\x7f", -2),
    "last status": setting(16, b"!", -2),
    "last length of a text": setting(17, b"\x40", -2),
    "last record": setting(23 + 34, b"\x7f", -2),
}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", sorted(DAMAGES))
async def test_what_was_acknowledged_is_never_cut_off(home: Path, kind: str, name: str, indexed: bool) -> None:
    """A damaged transaction that others follow, or that was finished, is told with its place; nothing is changed."""
    path = home / name
    if not indexed:
        (home / f"{name}.index").unlink()
    data = change(path, DAMAGES[kind])
    with pytest.raises(ImageDamaged) as damaged:
        async with open_image(home):
            pass
    assert (damaged.value.exit_code, damaged.value.code) == (5, "image_damaged")
    assert str(path) in damaged.value.message
    assert "byte" in damaged.value.message
    assert damaged.value.remedy
    assert path.read_bytes() == data
    assert cuttings(path) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_flipped_bit_of_a_header_is_found(home: Path, name: str) -> None:
    """Each bit of the header of a transaction in the middle: damage, or a file that is read whole."""
    path = home / name
    sound, at = path.read_bytes(), places(path)
    for bit in range(23 * 8):
        data = bytearray(sound)
        data[at[-4] + bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            db = open_database(f"file://{path}", connections=1)
        except ImageDamaged:
            assert path.read_bytes() == data
            continue
        assert len(db.storage) > 0
        db.close()
        assert path.stat().st_size == len(sound)
        (home / f"{name}.index").unlink()
    assert cuttings(path) == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("name", NAMES)
async def test_a_torn_transaction_is_cut_off_and_kept(home: Path, name: str, indexed: bool) -> None:
    """Half of the last transaction, whatever its status: a warning, a file with what was cut, and all else is there."""
    path = home / name
    sound, at = path.read_bytes(), places(path)
    for number, size in enumerate((at[-2] + 1, at[-2] + 30, at[-1] - 9, at[-1] - 1)):
        folder = home.with_name(f"torn{number}")
        shutil.copytree(home, folder)
        torn = bytearray(sound[:size])
        torn[at[-2] + 16 : at[-2] + 17] = b"c" if number % 2 else torn[at[-2] + 16 : at[-2] + 17]
        (folder / name).write_bytes(torn)
        if not indexed:
            (folder / f"{name}.index").unlink()
        with capture_logs() as logs:
            async with open_image(folder) as image:
                await image.accept(brief("goes on"))
        assert [(each["event"], each["offset"], each["bytes"]) for each in logs if each["log_level"] == "warning"] == [
            ("image.cut", at[-2], size - at[-2])
        ]
        (kept,) = cuttings(folder / name)
        assert kept.read_bytes() == torn[at[-2] :]
        assert (folder / name).read_bytes()[: at[-2]] == sound[: at[-2]]


@pytest.mark.parametrize("name", NAMES)
async def test_an_unfinished_transaction_is_cut_off(home: Path, name: str) -> None:
    """A last transaction that is there whole, but for its status, was never acknowledged."""
    path = home / name
    at = places(path)
    change(path, setting(16, b"c", -2))
    async with open_image(home):
        pass
    assert path.stat().st_size >= at[-2]
    assert len(cuttings(path)) == 1


@pytest.mark.parametrize("zeros", [1, 20, 4096, 100_000])
@pytest.mark.parametrize("name", NAMES)
async def test_zeros_at_the_end_are_trimmed(home: Path, name: str, zeros: int) -> None:
    """A power cut may leave zeros where a commit was to be: they are dropped with a warning, and nothing else."""
    path = home / name
    sound = path.read_bytes()
    with path.open("ab") as file:
        file.write(b"\0" * zeros)
    with capture_logs() as logs:
        async with open_image(home):
            pass
    assert path.read_bytes() == sound
    assert cuttings(path) == []
    assert [each["zeros"] for each in logs if each["event"] == "image.cut"] == [True]


async def test_zeros_within_the_last_transaction_are_a_crash(home: Path) -> None:
    """Its first part was written and the rest are zeros, as where blocks were allotted and not written."""
    path = home / "live_image.fs"
    at = places(path)

    def damage(data: bytearray, places: list[int]) -> None:
        data[places[-2] + 40 :] = b"\0" * (places[-1] - places[-2] - 40)

    change(path, damage)
    async with open_image(home):
        pass
    assert path.stat().st_size == at[-2]


async def test_a_file_that_ends_before_its_index_is_damage(home: Path) -> None:
    """What was there at the last clean close is missing: the error says so, and nothing is cut off or overwritten."""
    async with open_image(home):
        pass
    path = home / "live_image.fs"
    os.truncate(path, places(path)[-2])
    data = path.read_bytes()
    with pytest.raises(ImageDamaged, match="its end is missing") as damaged:
        async with open_image(home):
            pass
    assert ".index" in damaged.value.remedy
    assert path.read_bytes() == data


async def test_a_database_within_a_transaction_is_no_transaction(home: Path) -> None:
    """A torn commit of a mission whose text is itself such a file is a torn commit."""
    inner = home / "inner.fs"
    shutil.copy(home / "live_image.fs", inner)
    async with open_image(home) as image:
        before = (home / "live_image.fs").stat().st_size
        await image.writer.apply(lambda root: root.__setitem__("file", inner.read_bytes()))
    path = home / "live_image.fs"
    (home / "live_image.fs.index").unlink()
    os.truncate(path, path.stat().st_size - 1)
    async with open_image(home):
        pass
    assert path.stat().st_size == before


async def test_what_is_cut_off_never_overwrites(home: Path) -> None:
    """Each cut has a file of its own; other names beside the database are no cuts."""
    path = home / "live_image.fs"
    (home / "live_image.fs.tr0").write_text("an earlier one")
    (home / "live_image.fs.tr1").symlink_to(home / "nowhere")
    (home / "live_image.fs.train").write_text("mine")
    with path.open("ab") as file:
        file.write(b"torn")
    async with open_image(home):
        pass
    assert (home / "live_image.fs.tr2").read_bytes() == b"torn"
    assert not (home / "nowhere").exists()
    assert [each.name for each in cuttings(path)] == [f"live_image.fs.tr{number}" for number in range(3)]


@pytest.mark.parametrize("fill", [b"\x99", b"\0", b"c", b"."])
async def test_a_record_that_cannot_be_read_is_damage_to_readers(home: Path, fill: bytes) -> None:
    """Bytes changed in an object's state where no scan looks: who reads it is told, and nobody sees a traceback."""
    async with open_image(home) as image:
        mission = image.unfolded_missions()[-1]
        with image.snapshot() as root:
            oid = image.find(root, mission)[0]._p_oid
            assert oid is not None
    storage = FileStorage(str(home / "live_image.fs"), read_only=True)
    data, _ = storage.load(oid)
    storage.close()
    path = home / "live_image.fs"
    raw = path.read_bytes()
    path.write_bytes(raw.replace(data, data[:20] + fill * (len(data) - 20)))
    async with open_image(home) as image:
        with pytest.raises(ImageDamaged, match="cannot be read") as damaged, image.snapshot() as root:
            image.find(root, mission)[0].value.items()
    assert (damaged.value.exit_code, damaged.value.remedy) == (5, REMEDY)


async def test_a_clean_file_is_not_looked_at(home: Path) -> None:
    """After a clean close a damaged middle is found by who reads it; opening reads the end alone and stays fast."""
    async with open_image(home):
        pass
    path = home / "live_image.fs"
    for start, end in pairwise(places(path)[:-6]):
        assert end > start
    change(path, setting(15, b"\x01", 1))
    async with open_image(home) as image:
        assert len(image.unfolded_missions()) == 7
