"""Evolution: what an older version wrote gets the present form by steps, whenever it dies; no newer one is opened."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st
from tests.care.kept_homes import OLDEST, unpack
from tests.image.open_image import brief, child, heard, open_image, upgrading, uri_of
from tests.image.servers import zeo_server, zeo_uri
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.care.mind_export import LINES, export_mind
from batos.image import evolving, roots
from batos.image.evolving import STEPS, Upgrading, find_facts, find_lineages, find_wishes
from batos.image.image import LivingImage
from batos.image.past import Overlay, PastImage, newest_commit
from batos.image.readable import open_read_only
from batos.image.records import Lineage
from batos.image.transactions import snapshot
from batos.memory.records import memory_claims
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ImageError, NewFormat, OldFormat
from batos.protocol.method_documents import no_use
from batos.records import tools

T = TypeVar("T")


def change_root(home: Path, name: str, change: Callable[[Any], None]) -> None:
    """Write into a database past our own, as another version would."""
    with closing(DB(FileStorage(str(home / name)))) as db, db.transaction() as connection:
        change(connection.root())


def formats(image: LivingImage) -> tuple[int, int]:
    """The numbers of image and journal."""
    with image.snapshot() as root, snapshot(image.journal_db) as journal:
        return root[roots.GENESIS]["format"], journal["format"]


def test_steps_have_consecutive_numbers() -> None:
    """The last one is the format of this version."""
    assert [step.number for step in STEPS] == list(range(roots.FIRST_FORMAT + 1, roots.FORMAT + 1))


async def test_a_new_image_has_the_present_format(tmp_path: Path) -> None:
    """So has its journal, and no upgrade is recorded."""
    async with open_image(tmp_path) as image:
        assert formats(image) == (roots.FORMAT, roots.FORMAT)
        with image.snapshot() as root:
            assert evolving.UPGRADES not in root[roots.GENESIS]
            assert evolving.pending(root) == ()


async def test_an_older_image_is_refused_where_nobody_says_how_to_upgrade(tmp_path: Path) -> None:
    """The error names the verb, and nothing is changed."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    before = (home / "live_image.fs").read_bytes()
    with pytest.raises(OldFormat, match="it has format 1, and this version works with format") as raised:
        async with open_image(home):
            pass
    assert "batos upgrade" in raised.value.remedy
    assert (home / "live_image.fs").read_bytes() == before


@pytest.mark.parametrize(("name", "what"), [("live_image.fs", "image"), ("journal.fs", "journal")])
async def test_a_newer_image_or_journal_is_refused(tmp_path: Path, name: str, what: str) -> None:
    """The error names the version that reads it, for who writes and for who only reads."""

    def make_newer(root: Any) -> None:
        kept = root[roots.GENESIS] if what == "image" else root
        kept.update({"format": roots.FORMAT + 1, "version": "9.8.7"})

    async with open_image(tmp_path) as image:
        await image.accept(brief())
    await asyncio.to_thread(change_root, tmp_path, name, make_newer)
    with pytest.raises(NewFormat, match=rf"BAT OS 9\.8\.7 wrote the {what}: it has format") as raised:
        async with open_image(tmp_path):
            pass
    assert "Use BAT OS 9.8.7 or one after it" in raised.value.remedy
    with pytest.raises(NewFormat), open_read_only(uri_of(tmp_path), "") as faces, faces.root():
        faces.pair()


def states(home: Path, folder: Path) -> str:
    """The state of every object of a home, but for the moments that its doors wrote."""
    with open_read_only(uri_of(home), "") as faces:
        export_mind(faces, folder)
    return (folder / LINES).read_text(encoding="utf-8")


async def finish(home: Path) -> LivingImage:
    """Open and upgrade a home, to the end."""
    async with open_image(home, upgrading=upgrading()) as image:
        assert formats(image) == (roots.FORMAT, roots.FORMAT)
        with image.snapshot() as root:
            assert evolving.UNDER_WAY not in root[roots.GENESIS]
    return image


async def test_a_process_that_is_killed_at_any_write_of_an_upgrade_leaves_it_to_the_next(tmp_path: Path) -> None:
    """Before the commit and behind it; the image is then what an upgrade in one go makes of it, object by object."""
    await asyncio.to_thread(unpack, OLDEST, old := tmp_path / "old")
    await asyncio.to_thread(shutil.copytree, old, tmp_path / "whole")
    with child("script_upgrade.py", tmp_path / "whole", 0, "before") as process:
        said = await heard(process)
    writes = int(said.split()[1])
    assert writes > len(STEPS) + 5  # each record is a commit of its own here
    expected = await asyncio.to_thread(states, tmp_path / "whole", tmp_path / "expected")
    # Behind a commit is where the next one has not begun.
    for number, when in [*((number, "before") for number in range(1, writes + 1)), (writes, "after")]:
        await asyncio.to_thread(shutil.copytree, old, home := tmp_path / f"{number}-{when}")
        with child("script_upgrade.py", home, number, when) as process:
            assert await asyncio.to_thread(process.communicate) == ("", "")
            assert process.returncode == -signal.SIGKILL
        await finish(home)
        assert await asyncio.to_thread(states, home, tmp_path / f"states-{number}-{when}") == expected


async def test_an_upgrade_is_recorded_in_the_image(tmp_path: Path) -> None:
    """From which format to which, when, by which version; a second opening has nothing to do."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    image = await finish(home)
    again = await finish(home)
    assert again.writer.commits == 0 < image.writer.commits
    with open_read_only(uri_of(home), "") as faces, faces.root() as root:
        (told,) = root[roots.GENESIS][evolving.UPGRADES]
    assert (told["from"], told["to"], told["at"]) == (1, roots.FORMAT, "2027-01-01T00:00:00.000Z")


async def test_the_past_before_an_upgrade_is_shown_in_the_present_form(tmp_path: Path) -> None:
    """Read as of then, and opened as a copy that thinks; neither changes the image."""
    await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    with open_read_only(uri_of(home), "") as faces:
        before = newest_commit(faces.image)
    async with open_image(home, upgrading=upgrading()) as image:
        size = image.db.getSize()
        with PastImage(image, before).snapshot() as root:
            assert evolving.pending(root) == ()
            assert [list(step.find(root, "")) for step in STEPS] == [[], [], []]
        async with open_image(
            home, image_factory=lambda: Overlay(image.db.storage, before), journal_db=image.journal_db,
            upgrading=upgrading(),
        ) as copy:  # fmt: skip
            assert formats(copy) == (roots.FORMAT, roots.FORMAT)
        assert image.db.getSize() == size


# -- the steps


def make_root(told: Any) -> Any:
    """A root with wishes, facts and lineages, some in their former form, some in today's."""
    forged, facts, lineages = told
    root: Any = {}
    roots.prepare(root)
    root[roots.GENESIS]["format"] = 1
    root[roots.MEMORIES]["claims"] = OOBTree()
    for number, is_new in enumerate(forged):
        wish: Any = {"holder": f"o-{number}", "selector": "f_", "intent": "i", "forged": True, "mission": "m-1"}
        root[roots.WISHES][tools.name_of_wish(wish) if is_new else f"o-{number} f_"] = wish
    for number, is_new in enumerate(facts):
        slots = {"name": f"d-{number}", "user": "u", "scope": "s", "chunks": (number, number), "key": "a/b"}
        root[roots.DOCUMENTS][slots["name"]] = document = UvmObject(slots)
        memory_claims.note_claims(root, document, "b")
        if not is_new:
            del document.family
    for number, is_new in enumerate(lineages):
        root[roots.METHODS][f"o-{number} f_"] = lineage = Lineage(UvmObject(), "f_", Intent("do"))
        lineage.totals[1] = no_use()
        if not is_new:
            for each in (lineage.since, lineage.totals[1]):
                del each["method"]["undone"], each["control"]["undone"]
    return root


def plain(root: Any) -> Any:
    """All that the steps change, as plain data."""
    lineages = {key: (dict(each.since), dict(each.totals)) for key, each in root[roots.METHODS].items()}
    families = {name: own_slots(each).get("family") for name, each in root[roots.DOCUMENTS].items()}
    return dict(root[roots.WISHES]), families, lineages, dict(root[roots.GENESIS])


class Dying:
    """Makes so many changes of a root, and no more: each one that was made is durable."""

    def __init__(self, root: Any, most: int) -> None:
        self.root, self.left = root, most

    async def apply(self, change: Callable[[Any], T]) -> T:
        """Make a change, or die before it."""
        if self.left == 0:
            raise ConnectionAbortedError
        self.left -= 1
        return change(self.root)


FORMS = st.lists(st.booleans(), max_size=7)


@given(st.tuples(FORMS, FORMS, FORMS), st.integers(1, 4), st.lists(st.integers(0, 6), max_size=4))
def test_steps_end_in_one_form_however_often_they_are_cut_off(told: Any, batch: int, deaths: list[int]) -> None:
    """Whatever had the new form already, and however many records a commit changes; then nothing is left to do."""

    async def evolve(root: Any, size: int, most: int) -> None:
        await evolving.evolve(root, Dying(root, most), upgrading(size))

    whole, cut = make_root(told), make_root(told)
    asyncio.run(evolve(whole, 500, -1))
    for most in deaths:
        with suppress(ConnectionAbortedError):
            asyncio.run(evolve(cut, batch, most))
        # From the first change on no older version opens it.
        assert cut[roots.GENESIS]["format"] == roots.FORMAT or plain(cut) == plain(make_root(told))
    asyncio.run(evolve(cut, batch, -1))
    assert plain(cut) == plain(whole)
    assert [list(find(cut, "")) for find in (find_wishes, find_facts, find_lineages)] == [[], [], []]
    viewed = make_root(told)
    evolving.show_in_present_form(viewed)
    assert plain(viewed)[:3] == plain(whole)[:3]


def test_a_later_wish_for_the_same_tool_stays() -> None:
    """The one that an older version kept under the slot alone goes."""
    root = make_root(([False], [], []))
    (wish,) = root[roots.WISHES].values()
    later: Any = {**wish, "mission": "m-2"}
    root[roots.WISHES][tools.name_of_wish(later)] = later
    for _, change in list(find_wishes(root, "")):
        change()
    assert list(root[roots.WISHES].values()) == [later]


def test_each_step_says_what_it_does() -> None:
    """Its sentence is of the present."""
    assert all(re.fullmatch(r"[a-z][a-z ]+", step.what) for step in STEPS)


async def test_a_long_step_is_told_now_and_then() -> None:
    """Here after twenty facts."""
    told: list[str] = []
    root = make_root(([], [False] * 45, []))
    await evolving.evolve(root, Dying(root, -1), Upgrading(tell=told.append, batch=1))
    assert [each for each in told if each.startswith("format 3")] == [
        "format 3: 20 changed so far",
        "format 3: 40 changed so far",
        "format 3: facts name the family of their key (45 changed)",
    ]


async def test_an_image_on_a_server_is_upgraded_by_a_node_that_is_alone(tmp_path: Path) -> None:
    """Another one would go on writing the former form: it is waited for, for two leases, and then it is told."""
    with zeo_server(tmp_path) as port:
        place: dict[str, Any] = {"image": zeo_uri(port), "lease": 600.0}
        async with open_image(None, **place, node="works") as image:
            await image.writer.apply(lambda root: root[roots.GENESIS].__setitem__("format", 1))
            # any pace: by a clock that stands the other does not fall silent in so short a lease
            short = {**place, "lease": 0.2, "lease_clock": lambda: 0.0}
            with pytest.raises(ImageError, match="in use at works"):
                async with open_image(None, **short, upgrading=upgrading()):
                    pass
        async with open_image(None, **place, upgrading=upgrading()) as image:
            assert formats(image) == (roots.FORMAT, roots.FORMAT)
