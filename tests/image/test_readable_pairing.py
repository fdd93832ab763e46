"""Image and journal as a pair: one id, made once, and no opening beside a stranger."""

from __future__ import annotations

import asyncio
import shutil
import signal
from contextlib import closing
from pathlib import Path

import pytest
from tests.image.open_image import brief, child, open_image
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.transactions import snapshot
from batos.inference.journal import Journal, Record
from batos.protocol.errors import ImageDamaged


def ids(image: LivingImage) -> tuple[str, str]:
    """What the two have."""
    with image.snapshot() as root, snapshot(image.journal_db) as journal:
        return root[roots.GENESIS][roots.PAIR], journal[roots.PAIR]


async def used(home: Path) -> str:
    """A home with a mission and an entry of the journal; the mission."""
    async with open_image(home) as image:
        mission = await image.accept(brief())
        journal = Journal(image.journal_db, image.journal_writer)
        await journal.write(Record("k", mission, "a#0", "robin", "d", {"messages": []}, "done", "then"))
    return mission


def move(home: Path, name: str, to: Path) -> None:
    """Take a database away with all that lies beside it."""
    to.mkdir(exist_ok=True)
    for path in list(home.glob(f"{name}*")):
        shutil.move(path, to / path.name)


async def test_both_have_one_id_for_ever(tmp_path: Path) -> None:
    """It is made when they are, differs between homes, and opening again writes nothing."""
    async with open_image(tmp_path / "one") as image:
        first = ids(image)
        assert first[0] == first[1]
    size = (tmp_path / "one" / "live_image.fs").stat().st_size
    async with open_image(tmp_path / "one") as image:
        assert ids(image) == first
    assert (tmp_path / "one" / "live_image.fs").stat().st_size == size
    async with open_image(tmp_path / "two") as image:
        assert ids(image)[0] not in first


@pytest.mark.parametrize("name", ["live_image.fs", "journal.fs"])
async def test_one_that_is_missing_is_asked_for(tmp_path: Path, name: str) -> None:
    """Where the other has missions, a lost database is named, as often as one tries; brought back, all is there."""
    home = tmp_path / "home"
    mission = await used(home)
    move(home, name, tmp_path / "away")
    for _ in range(2):
        with pytest.raises(ImageDamaged, match="new") as damaged:
            async with open_image(home):
                pass
        assert damaged.value.exit_code == 5
        assert str(home / name) in damaged.value.remedy
    for path in (tmp_path / "away").iterdir():
        shutil.copy(path, home)
    async with open_image(home) as image:
        assert image.unfolded_missions() == [mission]


@pytest.mark.parametrize("name", ["live_image.fs", "journal.fs"])
async def test_one_of_another_home_is_refused(tmp_path: Path, name: str) -> None:
    """Two halves that each have missions, or none, are no whole."""
    for other in ("used", "new"):
        home = tmp_path / f"home beside {other}"
        await used(home)
        if other == "used":
            await used(tmp_path / other)
        else:
            async with open_image(tmp_path / other):
                pass
        move(home, name, tmp_path / f"away {other}")
        move(tmp_path / other, name, home)
        before = {path.name: path.read_bytes() for path in home.glob("*.fs")}
        with pytest.raises(ImageDamaged, match="not of one home"):
            async with open_image(home):
                pass
        assert {path.name: path.read_bytes() for path in home.glob("*.fs")} == before


@pytest.mark.parametrize("name", ["live_image.fs", "journal.fs"])
async def test_a_half_that_is_lost_before_anything_was_in_it_is_made_anew(tmp_path: Path, name: str) -> None:
    """A home that nothing was asked of loses nothing."""
    async with open_image(tmp_path) as image:
        first = ids(image)
    move(tmp_path, name, tmp_path / "away")
    async with open_image(tmp_path) as image:
        assert ids(image) == first


async def test_two_of_a_time_before_pairs_are_made_one(tmp_path: Path) -> None:
    """A home that was made without an id opens, and has one then."""
    mission = await used(tmp_path)
    # Past our own connections, which refuse both.
    for name in ("live_image.fs", "journal.fs"):
        with closing(DB(FileStorage(str(tmp_path / name)))) as db, db.transaction() as connection:
            root = connection.root()
            del root.get(roots.GENESIS, root)[roots.PAIR]
    async with open_image(tmp_path) as image:
        assert image.unfolded_missions() == [mission]
        assert ids(image)[0] == ids(image)[1]


async def test_a_first_opening_may_be_killed_at_any_write(tmp_path: Path) -> None:
    """Killed at each write of the two new databases, the home opens the next time as a new one does."""
    last, said = 0, ""
    while not said:
        last += 1
        home = tmp_path / str(last)
        home.mkdir()
        with child("script_first_open.py", home, last) as process:
            said = (await asyncio.to_thread(process.communicate))[0].strip()
            assert process.returncode == (0 if said else -signal.SIGKILL)
        async with open_image(home) as image:
            assert len(set(ids(image))) == 1
            await image.accept(brief())
    assert last > 4
    assert said == f"open {last - 1}"
