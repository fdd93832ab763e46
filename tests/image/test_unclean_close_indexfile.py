"""The index beside a database: read as bytes, believed only where it is ZODB's own, and never a way in."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import brief, open_image
from ZODB.fsIndex import fsIndex

from batos.image.storage import open_database
from batos.image.unclean_close import read_index


class Order:
    """A value whose pickle is a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def index_of(entries: dict[int, int]) -> Any:
    """An index of objects by number."""
    index = fsIndex()
    for number, place in entries.items():
        index[number.to_bytes(8, "big")] = place
    return index


places = st.integers(0, 2**48 - 1)
numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))


@given(position=st.integers(0, 2**63), entries=st.dictionaries(numbers, places, max_size=40))
def test_what_zodb_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, position: int, entries: dict[int, int]
) -> None:
    """Position and places come back as they were saved."""
    path = tmp_path_factory.mktemp("index") / "x.index"
    index_of(entries).save(position, str(path))
    found = read_index(path)
    assert found is not None
    assert found[0] == position
    assert dict(found[1].items()) == dict(index_of(entries).items())


def test_an_index_of_many_objects_is_read(tmp_path: Path) -> None:
    """A long bucket and several prefixes: more objects than two bytes can number."""
    path = tmp_path / "x.index"
    index = index_of({number * 7: number for number in range(30_000)})
    index.save(10**9, str(path))
    found = read_index(path)
    assert found is not None
    assert list(found[1].items()) == list(index.items())


@given(st.data())
def test_changed_bytes_are_read_as_an_index_or_not_at_all(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Whatever is changed in it, reading answers an index or None."""
    path = tmp_path_factory.mktemp("index") / "x.index"
    index_of({1: 10, 70_000: 20}).save(1234, str(path))
    written = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(written) - 1), min_size=1, max_size=4)):
        written[at] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(written[: data.draw(st.integers(0, len(written)))]))
    found = read_index(path)
    assert found is None or isinstance(found[0], int)


def hostile(trap: Path) -> dict[str, bytes]:
    """Indexes that would call something, or take all memory, when they are unpickled."""
    call = pickle.dumps(Order(os.mkdir, str(trap)), 3)
    return {
        "text": f"cposix\nmkdir\n(S'{trap}'\ntR.".encode(),
        "call": call,
        "call after a position": pickle.dumps(500, 3) + call,
        "call in a pair": pickle.dumps(500, 3) + pickle.dumps((b"123456", Order(os.mkdir, str(trap))), 3),
        "memory": b"\x80\x03r\xff\xff\xff\xff.",
        "length": b"\x80\x03B\xff\xff\xff\xff.",
    }


@pytest.mark.parametrize("kind", sorted(hostile(Path())))
@pytest.mark.parametrize("name", ["live_image.fs", "journal.fs"])
async def test_an_index_calls_nothing(tmp_path: Path, name: str, kind: str) -> None:
    """An index that orders a call is not obeyed: the database opens without it, and a sound one is written at close."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
    trap = tmp_path / "trap"
    index = tmp_path / f"{name}.index"
    index.write_bytes(hostile(trap)[kind])
    async with open_image(tmp_path) as image:
        assert image.unfolded_missions() == [mission]
    assert not trap.exists()
    assert read_index(index) is not None


async def test_an_index_of_another_file_is_made_anew(tmp_path: Path) -> None:
    """One that does not fit its file is not believed."""
    for name in ("one", "two"):
        async with open_image(tmp_path / name) as image:
            for number in range(3 if name == "one" else 2):
                last = await image.accept(brief(f"{name} {number}"))
    (tmp_path / "one" / "live_image.fs.index").write_bytes((tmp_path / "two" / "live_image.fs.index").read_bytes())
    async with open_image(tmp_path / "one") as image:
        assert len(image.unfolded_missions()) == 3
        assert last not in image.unfolded_missions()


def test_a_sound_index_is_used(tmp_path: Path) -> None:
    """After a clean close nothing of the file is scanned."""
    uri = f"file://{tmp_path / 'x.fs'}"
    for used in (0, 1):
        db = open_database(uri, connections=1)
        assert db.storage._used_index == used
        with db.transaction() as connection:
            connection.root()["text"] = "x" * 200
        db.close()
