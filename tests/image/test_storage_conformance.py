"""Every promise that the image makes of a storage, kept by a file, by ZEO and by PostgreSQL with real servers."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import transaction
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from tests.image.open_image import answer, brief, open_image, thought_in, uri_of
from tests.image.servers import zeo_server, zeo_uri
from tests.image.writers import start_mission
from tests.waiting import HANG
from ZODB.DB import DB
from ZODB.POSException import ConflictError, ReadConflictError, ReadOnlyError
from ZODB.utils import maxtid, p64

from batos.care.image_faults import find_orphans, read_graph
from batos.care.packing import Packer, PackerParts
from batos.events import Events
from batos.image import roots
from batos.image.attached_files import INLINE_BYTES
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.nodes.storage_servers import vacuum_postgres
from batos.image.past import FrozenStorage, Overlay, PastImage, first_writing, newest_commit, published_at
from batos.image.storage import open_database
from batos.image.writer import Publisher
from batos.objects.prototype import own_slots
from batos.protocol.errors import ImageError, PackedAway, Refused

#: The tests commit on the loop, as no program does.

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where an image and its journal live."""

    image: str
    journal: str

    @asynccontextmanager
    async def open(self) -> AsyncIterator[LivingImage]:
        """Open the image for two missions."""
        async with open_image(None, image=self.image, journal=self.journal, missions=2) as image:
            yield image

    def database(self) -> DB:
        """Open the image's database alone."""
        return open_database(self.image, connections=2)


async def think(image: LivingImage, mission: str, text: str) -> bytes:
    """Commit a mission's answer, and publish it; the commit's id."""
    with image.transaction(mission) as thinking:
        tid = await thinking.commit(answer(thought_in(image, thinking, mission), text))
    await Publisher(image.writer, {}, utc_now).fold(mission)
    return tid


def write_many(db: DB) -> dict[str, bytes]:
    """Commit objects one by one, each with its name in the root and in itself; the ids of the commits by name."""
    made = {}
    for number in range(40):
        name = f"object {number:02}"
        with db.transaction() as connection:
            value: Any = PersistentMapping(name=name)
            connection.root()[name] = value
        made[name] = value._p_serial
    return made


def in_turn(made: dict[str, bytes], number: int) -> list[str]:
    """All names some times, in an order that each thread has for itself."""
    names = list(made)
    return (names[number * 7 :] + names[: number * 7]) * 3


async def in_threads(read: Callable[[int], T], most: int) -> list[T]:
    """What each of some threads reads, which begin together; each is given its number."""
    begin, loop = threading.Barrier(most), asyncio.get_running_loop()

    def read_with_others(number: int) -> T:
        begin.wait()
        return read(number)

    with ThreadPoolExecutor(most) as pool:
        return await asyncio.gather(*(loop.run_in_executor(pool, read_with_others, number) for number in range(most)))


class StorageConformance:
    """What follows holds on each storage."""

    #: False where one process alone may open the image.
    shared = True

    async def test_a_thought_is_there_for_the_next_process(self, place: Place) -> None:
        """Brief, answer, status, and the pairing with the journal."""
        async with place.open() as image:
            mission = await start_mission(image)
            await think(image, mission, "From rivers.")
        async with place.open() as image:
            with image.snapshot() as root:
                _, status, thought = image.find(root, mission)
                assert (status.word, own_slots(thought)["answer"]) == ("done", "From rivers.")

    async def test_two_writers_of_one_object_meet(self, place: Place) -> None:
        """The second is told, and leaves nothing; different keys of a tree are merged."""
        async with place.open() as image:
            with image.db.transaction() as connection:
                connection.root().update(one=PersistentMapping(), tree=OOBTree({"a": 1}))
            first, second = transaction.TransactionManager(explicit=True), transaction.TransactionManager(explicit=True)
            for each in (first, second):
                each.begin()
            ours, theirs = image.db.open(first), image.db.open(second)
            ours.root()["one"]["x"], ours.root()["tree"]["b"] = 1, 2
            theirs.root()["tree"]["c"] = 3
            first.commit()
            second.commit()
            for each in (first, second):
                each.begin()
            assert dict(ours.root()["tree"]) == {"a": 1, "b": 2, "c": 3}
            ours.root()["one"]["x"] = 2
            theirs.root()["one"]["x"] = 3
            first.commit()
            with pytest.raises(ConflictError):
                second.commit()
            second.abort()
            second.begin()
            assert theirs.root()["one"]["x"] == 2
            second.abort()
            for connection in (ours, theirs):
                connection.close()

    async def test_what_was_only_read_may_be_asked_to_be_current(self, place: Place) -> None:
        """A commit that rests on a claim fails where another has taken the claim meanwhile."""
        async with place.open() as image:
            with image.db.transaction() as connection:
                connection.root().update(claim=PersistentMapping(owner=1), work=PersistentMapping())
            sleeper = transaction.TransactionManager(explicit=True)
            sleeper.begin()
            connection = image.db.open(sleeper)
            claim = connection.root()["claim"]
            assert claim["owner"] == 1
            with image.db.transaction() as other:
                other.root()["claim"]["owner"] = 2
            connection.root()["work"]["done"] = True
            connection.readCurrent(claim)
            with pytest.raises(ReadConflictError):
                sleeper.commit()
            sleeper.abort()
            connection.close()
            with image.db.transaction() as now:
                assert dict(now.root()["work"]) == {}

    async def test_the_past_is_read_as_it_was(self, place: Place) -> None:
        """A moment is a commit, and each has its note; a historical connection takes no change."""
        async with place.open() as image:
            mission = await start_mission(image)
            await think(image, mission, "As it was.")
            with image.snapshot() as root:
                published = published_at(root, roots.mission_record(root, mission).status)
                assert published is not None
                notes = image.db.storage.history(image.find(root, mission)[2]._p_oid, size=9)
            assert mission in str(notes[0]["description"])
            await image.writer.apply(lambda root: roots.mission_record(root, mission).status.become("undone", ""))
            assert newest_commit(image.db) > published
            with PastImage(image, published).snapshot() as root:
                assert roots.mission_record(root, mission).status.word == "done"
                roots.mission_record(root, mission).status.become("failed", "")
            with image.snapshot() as root:
                assert roots.mission_record(root, mission).status.word == "undone"

    async def test_the_history_of_what_came_after_the_last_look_is_there(self, place: Place) -> None:
        """A newer mission's first commit and the one that published it are found, though a history was read before."""
        async with place.open() as image:
            for text in ("First.", "Second."):
                mission = await start_mission(image)
                committed = await think(image, mission, text)
                with image.snapshot() as root:
                    record = image.find(root, mission)
                    assert first_writing(root, record.thought).tid < committed
                    assert published_at(root, record.status) == record.status._p_serial > committed

    async def test_a_history_ends_with_what_its_reader_sees(self, place: Place) -> None:
        """A commit that another process made after the reader began changes nothing for him."""
        async with place.open() as image:
            mission = await start_mission(image)
            await think(image, mission, "As it was.")
            theirs = await asyncio.to_thread(place.database) if self.shared else image.db
            with image.snapshot() as root:
                status = image.find(root, mission).status
                assert status.published
                with theirs.transaction() as connection:
                    roots.mission_record(roots.root_of(connection), mission).status.become("undone", "")
                assert published_at(root, status) == status._p_serial
            if self.shared:
                theirs.close()

    async def test_threads_read_histories_at_once(self, place: Place) -> None:
        """Each gets that of the object that it asked for."""
        async with place.open() as image:
            made = await asyncio.to_thread(write_many, image.db)

            def read(number: int) -> list[bytes]:
                with image.snapshot() as root:
                    objects = dict[str, Any](root)
                    return [first_writing(root, objects[name]).tid for name in in_turn(made, number)]

            for number, found in enumerate(await in_threads(read, 3)):  # as many as may read at once
                assert found == [made[name] for name in in_turn(made, number)]

    async def test_threads_read_the_newest_commit_at_once(self, place: Place) -> None:
        """Each gets it, though another one ends the transaction in which it was looked for."""
        async with place.open() as image:
            newest = newest_commit(image.db)
            for found in await in_threads(lambda number: {newest_commit(image.db) for _ in range(50)}, 4):
                assert found == {newest}

    async def test_threads_read_one_copy_at_once(self, place: Place) -> None:
        """Each gets the record, the revision and the history of the object that it asked for."""
        async with place.open() as image:
            made = await asyncio.to_thread(write_many, image.db)
            with image.db.transaction() as connection:
                oids = {name: connection.root()[name]._p_oid for name in made}
            frozen = FrozenStorage(image.db.storage, newest_commit(image.db))

            def read(number: int) -> list[tuple[bytes, bool, bool]]:
                found = []
                for name in in_turn(made, number):
                    data, tid, _ = frozen.loadBefore(oids[name], maxtid) or (b"", b"", None)
                    is_same = frozen.loadSerial(oids[name], tid) == data
                    history = [each["tid"] for each in frozen.history(oids[name], 2)]
                    found.append((tid, is_same and name.encode() in data, history == [tid]))
                return found

            try:
                for number, found in enumerate(await in_threads(read, 6)):
                    assert found == [(made[name], True, True) for name in in_turn(made, number)]
            finally:
                frozen.close()

    async def test_a_copy_stays_as_it_was(self, place: Place) -> None:
        """What a dream writes is not below it, and what is written below is not in the dream."""
        async with place.open() as image:
            with image.db.transaction() as connection:
                connection.root()["seen"] = PersistentMapping(at=1)
            copy = DB(Overlay(image.db.storage, newest_commit(image.db)))
            with image.db.transaction() as connection:
                connection.root()["seen"]["at"] = 2
            with copy.transaction() as connection:
                assert connection.root()["seen"]["at"] == 1
                connection.root()["seen"]["at"] = 3
            copy.close()
            with image.db.transaction() as connection:
                assert connection.root()["seen"]["at"] == 2

    async def test_a_pack_takes_the_past_and_leaves_the_present(self, place: Place) -> None:
        """A moment before it can no longer be asked about; today's answers are the same."""
        async with place.open() as image:
            mission = await start_mission(image)
            await think(image, mission, "Kept.")
            before = newest_commit(image.db)
            await image.writer.apply(lambda root: roots.mission_record(root, mission).status.become("undone", ""))
            await asyncio.sleep(0.02)  # any pace: what is older than the pack is packed, by a clock that has moved on
            nothing = timedelta(0)
            await Packer(PackerParts(image, Events(log=False), utc_now, lambda: True, 0.0, least_kept=nothing)).pack(
                0.0
            )
        # Opened anew: a client of ZEO still has revisions in its cache that the server has packed away.
        async with place.open() as image:
            with image.snapshot() as root:
                assert own_slots(image.find(root, mission)[2])["answer"] == "Kept."
            with pytest.raises(PackedAway), PastImage(image, before).snapshot() as root:
                roots.mission_record(root, mission).status.word  # noqa: B018 - loads it

    async def test_a_large_file_is_kept(self, place: Place) -> None:
        """An attachment of more than a record should hold comes back byte by byte."""
        data = bytes(range(256)) * (INLINE_BYTES // 256 + 9)
        digest = hashlib.sha256(data).hexdigest()
        async with place.open() as image:
            await image.accept(brief(), {digest: data})
        async with place.open() as image:
            with image.snapshot() as root:
                kept = root[roots.ATTACHMENTS][digest]
                assert kept.read() == data
                assert (kept.blob is not None) == ("blob" in place.image)

    async def test_a_copy_has_the_large_files(self, place: Place) -> None:
        """An attachment is read in a copy as it is below."""
        data = bytes(range(256)) * (INLINE_BYTES // 256 + 9)
        digest = hashlib.sha256(data).hexdigest()
        async with place.open() as image:
            await image.accept(brief(), {digest: data})
            copy = DB(Overlay(image.db.storage, newest_commit(image.db)))
            with copy.transaction() as connection:
                assert connection.root()[roots.ATTACHMENTS][digest].read() == data
            copy.close()

    async def test_a_commit_of_a_reference_to_nothing_is_refused(self, place: Place) -> None:
        """The connection asks the storage; the commit leaves nothing."""
        async with place.open() as image:
            with image.db.transaction() as connection:
                connection.root()["one"] = PersistentMapping()

            def dangle(root: Any) -> None:
                value: Any = PersistentMapping()
                value._p_oid, value._p_jar = p64(2**40), roots.connection_of(root)
                root["one"]["to"] = value

            with pytest.raises(Refused, match="no longer exists"):
                await image.writer.apply(dangle)
            with image.db.transaction() as connection:
                assert "to" not in connection.root()["one"]

    async def test_every_record_is_listed(self, place: Place) -> None:
        """What verifies an image reads all current records and all commits."""
        async with place.open() as image:
            await think(image, await start_mission(image), "Listed.")
            graph = read_graph(image.db)
            assert graph.list_unreachable() == []
            assert list(graph.list_broken()) == []
            assert find_orphans(image.db, graph) == []
            assert image.sizes()["bytes"] > 0

    def test_another_process_sees_a_commit_at_once(self, place: Place) -> None:
        """Its next transaction begins after it; a file has one owner."""
        ours = place.database()
        try:
            if not self.shared:
                with pytest.raises(ImageError):
                    place.database()
                return
            theirs = place.database()
            for number in range(20):
                with ours.transaction() as connection:
                    connection.root()["number"] = number
                with theirs.transaction() as connection:
                    assert connection.root()["number"] == number
            theirs.close()
        finally:
            ours.close()


class TestFile(StorageConformance):
    """A file of ZODB with a folder of blobs."""

    shared = False

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        """A new one."""
        return Place(uri_of(tmp_path), "")


class TestZeo(StorageConformance):
    """A ZEO server in a process of its own, which speaks msgpack."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        """A new server."""
        with zeo_server(tmp_path) as port:
            yield Place(zeo_uri(port, f"blob_dir={tmp_path / 'cache'}"), "")

    async def test_it_is_opened_for_reading_alone(self, place: Place) -> None:
        """The server refuses what such a client would write."""
        await refuses_writing(place, "read_only=1")


class TestPostgres(StorageConformance):
    """PostgreSQL on loopback, a database each for the image and the journal."""

    async def test_a_history_leaves_no_session_in_a_transaction(self, place: Place, databases: tuple[str, str]) -> None:
        """A table that was read in one stays locked for who writes its file anew."""
        async with place.open() as image:
            mission = await start_mission(image)
            await think(image, mission, "Read.")
            with image.snapshot() as root:
                record = image.find(root, mission)
                assert first_writing(root, record.thought).tid < (published_at(root, record.status) or b"")
            await asyncio.to_thread(vacuum_postgres, databases[0], tries=1)

    @pytest.fixture
    def place(self, databases: tuple[str, str], tmp_path: Path) -> Place:
        """Two new databases."""
        image, journal = databases
        return Place(f"{image}?blob_dir={tmp_path / 'cache'}&connect_timeout={HANG:.0f}", journal)

    async def test_it_is_opened_for_reading_alone(self, place: Place) -> None:
        """Such a storage refuses to begin a commit."""
        await refuses_writing(place, "read_only=true")


async def refuses_writing(place: Place, keyword: str) -> None:
    """Open a place for reading alone: what is there is read, and a commit is refused."""
    async with place.open() as image:
        mission = await start_mission(image)
    reading = open_database(f"{place.image}&{keyword}", connections=1)
    try:
        with reading.transaction() as connection:
            assert mission in connection.root()[roots.MISSIONS]
        with pytest.raises(ReadOnlyError), reading.transaction() as connection:
            connection.root()["more"] = 1
    finally:
        reading.close()
