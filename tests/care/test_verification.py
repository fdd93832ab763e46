"""Verification and repair: each planted fault is named, mended, and then nothing is wrong; a sound image has none."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from tests.agency.acting import acting
from tests.history import lived
from tests.history.test_undoing import asked
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.autotelic.curator import CurationWish
from batos.care import verification
from batos.care.image_faults import read_graph
from batos.care.verification import delete_record
from batos.image.transactions import snapshot
from batos.memory.records.memory_segments import trees_of
from batos.objects.prototype import own_slots
from batos.testing import ScriptedBridge, scripted_uvm

#: Plants a fault into the root of a database.
Plant = Callable[[Any], None]


async def grown(home: Path) -> None:
    """A home with missions in a conversation, memories, and methods."""
    async with scripted_uvm(home, bridge(), memory=False, method_control=0) as uvm:
        await asked(uvm, "My cat is called Miso. Who winds the lamp?", conversation="new")
        await asked(uvm, "And who mended the pier?", conversation="last")
        for number, fact in enumerate(lived.FACTS):
            await uvm.document_store.remember([lived.document(f"{number}.md", fact)])
        await uvm.image.writer.apply(lambda root: lived.learn(1, root))


def bridge() -> ScriptedBridge:
    """A scripted model, and an embedder."""
    return ScriptedBridge(vectors=lived.meaning)


def planted(plant: Plant) -> Callable[[Path], None]:
    """Write a fault past our own database, which would refuse some of them."""

    def write(home: Path) -> None:
        storage = FileStorage(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))
        with closing(DB(storage)) as db, db.transaction() as connection:
            plant(connection.root())

    return write


def lost(find: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Delete the record of an object, as a broken disk or a careless tool would."""

    def write(home: Path) -> None:
        storage = FileStorage(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))
        with closing(DB(storage)) as db:
            with snapshot(db) as root:
                oid = find(root)._p_oid
            delete_record(db, oid)

    return write


def orphaned(home: Path) -> None:
    """Write the record of an object that nothing refers to."""
    storage = FileStorage(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))
    with closing(DB(storage)) as db, db.transaction() as connection:
        connection.add(OOBTree({"a": 1}))


def first_document(root: Any) -> Any:
    """The first file that is remembered."""
    return next(each for each in root["documents"].values() if own_slots(each)["source"] == "/docs/0.md")


def first_mission(root: Any) -> str:
    """The first mission."""
    return str(root["missions"].minKey())


def unlist(root: Any) -> None:
    """Take a document's range away."""
    del trees_of(root)["ranges"][own_slots(first_document(root))["chunks"][0]]


def queue_nothing(root: Any) -> None:
    """Let a mission wait that is not there."""
    root["queued"].insert("m-01K8S20000000000000000000Z")


def queue_done(root: Any) -> None:
    """Let a mission wait that is done."""
    root["queued"].insert(first_mission(root))


def unpublish(root: Any) -> None:
    """Take a mission's publication back, as far as its status tells of it."""
    status = root["missions"][first_mission(root)][1]
    status.word, status.published = "running", False
    root["tally"]["done"] -= 1
    root["tally"]["running"] = root["tally"].get("running", 0) + 1


def link_wrongly(root: Any) -> None:
    """Let a part of one memory lead to another."""
    number = own_slots(first_document(root))["chunks"][0]
    other = next(each for each in root["documents"].values() if own_slots(each)["source"] == "/docs/1.md")
    trees_of(root)["chunks"][number].document = other


def forget_by_halves(root: Any) -> None:
    """Take a document away, and leave its parts in the indexes."""
    name = own_slots(first_document(root))["name"]
    del root["documents"][name]


def leave_words(root: Any) -> None:
    """Take a document and its parts away, and leave their words in the index."""
    kept, slots = trees_of(root), own_slots(first_document(root))
    first, last = slots["chunks"]
    for number in range(first, last + 1):
        del kept["chunks"][number]
    del kept["ranges"][first]
    for begin, end in list(kept["present"].items()):
        if begin <= first <= end:
            del kept["present"][begin]
            if begin < first:
                kept["present"][begin] = first - 1
            if last < end:
                kept["present"][last + 1] = end
    for tree in ("sources", "digests"):
        for key in [key for key, name in kept[tree].items() if name == slots["name"]]:
            del kept[tree][key]
    del root["documents"][slots["name"]]


def lose_words(root: Any) -> None:
    """Take a segment of words away."""
    kept = trees_of(root)
    number = next(number for number, row in kept["segments"].items() if row[0] == "text")
    del kept["segments"][number]


def add_turn(root: Any) -> None:
    """Add a turn that is no mission."""
    conversation = next(iter(root["conversations"].values()))
    conversation.turns[9] = "m-01K8S20000000000000000000Z"


def swap_method(root: Any) -> None:
    """Put the intent where the method is active."""
    root["brick_prototype_obj"].tamland_facet_ = next(iter(root["methods"].values())).intent


def first_part(root: Any) -> Any:
    """The first part of the first file."""
    return trees_of(root)["chunks"][own_slots(first_document(root))["chunks"][0]]


def first_segment(root: Any) -> Any:
    """The first segment of words."""
    return next(row[-1] for row in trees_of(root)["segments"].values() if row[0] == "text")


FAULTS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a document is lost": ("dangling reference", lost(first_document)),
    "a thought is lost": ("dangling reference", lost(lambda root: root["missions"][first_mission(root)][2])),
    "a part is lost": ("dangling reference", lost(first_part)),
    "a segment is lost": ("dangling reference", lost(first_segment)),
    "a conversation is lost": ("dangling reference", lost(lambda root: next(iter(root["conversations"].values())))),
    "an index entry without its object": ("entry without object", planted(forget_by_halves)),
    "words without their part": ("entry without object", planted(leave_words)),
    "a queue entry without its mission": ("entry without object", planted(queue_nothing)),
    "a queue entry of a mission that is done": ("entry without object", planted(queue_done)),
    "a turn without its mission": ("entry without object", planted(add_turn)),
    "an object without its entry": ("object without entry", planted(unlist)),
    "parts without their words": ("object without entry", planted(lose_words)),
    "a wrong link": ("wrong link", planted(link_wrongly)),
    "a wrong method": ("wrong link", planted(swap_method)),
    "an orphan": ("orphan record", orphaned),
    "an unpublished contribution": ("unpublished contribution", planted(unpublish)),
    "a wrong count": ("wrong count", planted(lambda root: root["tally"].update(done=99))),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which much happened."""
    folder = tmp_path_factory.mktemp("grown")
    asyncio.run(grown(folder))
    return folder


@pytest.mark.parametrize("name", FAULTS)
async def test_a_planted_fault_is_named_mended_and_gone(home: Path, tmp_path: Path, name: str) -> None:
    """By verification, by repair, and by another verification; the image answers afterwards."""
    kind, plant = FAULTS[name]
    copy = await asyncio.to_thread(shutil.copytree, home, tmp_path / "home")
    await asyncio.to_thread(plant, copy)
    async with scripted_uvm(copy, bridge(), memory=False) as uvm:
        found = await asyncio.to_thread(verification.find_faults, uvm.image.db)
        assert kind in {each.kind for each in found}, found
        mended, left = await verification.repair(uvm.image)
        assert (kind in {each.kind for each in mended}, left) == (True, [])
    async with scripted_uvm(copy, bridge(), memory=False) as uvm:
        for mission in await uvm.missions.recover():
            await uvm.missions.run(mission)
        assert (await asked(uvm, "Who winds the lamp now?"))["status"] == "done"
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []


@pytest.mark.parametrize("is_lost", [True, False])
async def test_the_queue_is_mended(home: Path, tmp_path: Path, *, is_lost: bool) -> None:
    """A mission that goes since its thought is lost waits no more, and one that waits is on the list."""
    copy = await asyncio.to_thread(shutil.copytree, home, tmp_path / "home")
    async with scripted_uvm(copy, bridge(), memory=False) as uvm:
        mission = await uvm.missions.submit({"text": "What holds a pier?", "effort": "reflex"})
    if is_lost:
        lost(lambda root: root["missions"][mission][2])(copy)
    else:
        planted(lambda root: root["queued"].remove(mission))(copy)
    async with scripted_uvm(copy, bridge(), memory=False) as uvm:
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) != []
        mended, left = await verification.repair(uvm.image)
        assert (bool(mended), left) == (True, [])
        with uvm.image.snapshot() as root:
            assert list(root["queued"]) == ([] if is_lost else [mission])
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []


async def test_a_fault_that_only_a_backup_mends_is_left_and_named(home: Path, tmp_path: Path) -> None:
    """Nothing of it is guessed."""
    copy = await asyncio.to_thread(shutil.copytree, home, tmp_path / "home")
    lost(lambda root: next(iter(root["methods"].values())).revisions[1])(copy)
    storage = FileStorage(str(copy / "live_image.fs"), blob_dir=str(copy / "blobs"))
    with closing(DB(storage)) as db:
        found = verification.find_faults(db)
    assert {(each.kind, each.mend) for each in found} == {("dangling reference", None)}
    assert "backup" in found[0].as_dict()["repair"]
    assert found[0].as_dict()["can_repair"] is False


async def test_what_is_of_a_wrong_kind_is_named(home: Path, tmp_path: Path) -> None:
    """Lists are not read then: what stands there may be anything."""
    copy = await asyncio.to_thread(shutil.copytree, home, tmp_path / "home")
    planted(lambda root: root.update(missions=PersistentMapping({"m-1": "no record"}), queued="nothing"))(copy)
    with closing(DB(FileStorage(str(copy / "live_image.fs"), blob_dir=str(copy / "blobs")))) as db:
        found = verification.find_faults(db, orphans=False)
    assert {(each.kind, each.where, each.mend) for each in found} == {
        ("wrong kind", "missions", None), ("wrong kind", "queued", None)
    }  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_sound_image_has_no_fault(tmp_path: Path, seed: int) -> None:
    """Whatever happened in its life: missions, memories, edits, undoing, effects, folding."""
    async with scripted_uvm(
        tmp_path / "a", ScriptedBridge(vectors=lived.meaning), memory=False, method_control=0
    ) as uvm:
        await lived.live(uvm, seed)
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
        await uvm.curator.curate(CurationWish("tester", cold_days=0, most=5, by_rule=True))
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
    if seed == 1:
        async with acting(tmp_path) as world:
            told = await world.send("notes", "a.txt", "A line.")
            await world.states()
            await world.ask("undo", mission=told["id"], user="tester")
            assert await asyncio.to_thread(verification.find_faults, world.uvm.image.db) == []


async def test_a_mind_that_is_written_to_meanwhile_has_no_fault(tmp_path: Path) -> None:
    """Every record is read as of one commit."""
    async with scripted_uvm(tmp_path, bridge(), memory=False) as uvm:
        asking = asyncio.gather(*(asked(uvm, f"What is a sluice of {number}?") for number in range(12)))
        while not asking.done():
            assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
        assert {each["status"] for each in await asking} == {"done"}


async def test_the_graph_of_a_storage_without_a_list_of_objects_is_read_too(tmp_path: Path) -> None:
    """A storage in memory lists none: its commits are read."""
    async with scripted_uvm(tmp_path) as uvm:
        await uvm.image.writer.apply(lambda root: lived.learn(1, root))
        graph = read_graph(uvm.image.db)
        assert (graph.lost_records, 0 in graph.references, len(graph.references) > 20) == (frozenset(), True, True)
