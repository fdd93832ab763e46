"""Claims in the image: the newest first, facts by their keys, marks on chunks, and all of it gone with its document."""

from __future__ import annotations

from dataclasses import replace

from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_claims, memory_records, memory_standings
from batos.memory.records.memory_claims import ClaimMark
from batos.objects.prototype import UvmObject, own_slots


def chunk_of(root: Root, name: str) -> UvmObject:
    """The first chunk of a document."""
    return next(iter(memory_records.chunks_of(root, root[roots.DOCUMENTS][name])))


async def test_claims_are_listed_newest_first_and_by_key() -> None:
    """Of one user and scope; a document that is forgotten is in no list."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            assert memory_claims.newest_claims(root, "ann", "default", 9) == []
            assert memory_claims.newest_claims_within(root, "ann", None, 9) == []
            facts = [replace(document(f"d-{n}"), kind="fact", key="date") for n in (1, 2, 3)]
            add(root, *facts, document("d-4", scope="work"))
            for each in facts:
                memory_claims.note_claims(root, root[roots.DOCUMENTS][each.name], "date")
            memory_claims.note_claims(root, root[roots.DOCUMENTS]["d-4"])
            assert memory_claims.newest_claims(root, "ann", "default", 2) == ["d-3", "d-2"]
            assert memory_claims.newest_claims(root, "ann", "work", 2) == ["d-4"]
            assert memory_claims.newest_claims_within(root, "ann", None, 3) == ["d-4", "d-3", "d-2"]
            assert memory_claims.newest_claims_within(root, "ann", {"work", "none"}, 3) == ["d-4"]
            assert memory_claims.newest_claims_within(root, "an", None, 3) == []
            assert memory_claims.facts_of_family(root, "ann", "default", "date", 4) == ["d-3", "d-2", "d-1"]
            assert memory_claims.facts_of_family(root, "ann", "default", "dat", 4) == []
            memory_records.forget(root, ["d-2"])
            assert memory_claims.newest_claims(root, "ann", "default", 9) == ["d-3", "d-1"]
            assert memory_claims.facts_of_family(root, "ann", "default", "date", 4) == ["d-3", "d-1"]

        await image.writer.apply(change)


async def test_what_is_said_of_a_subject_is_listed_until_it_is_forgotten() -> None:
    """The newest first; a subject is no beginning of another."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"))
            for name in ("d-1", "d-2", "d-2"):
                memory_claims.note_statement(root, root[roots.DOCUMENTS][name], "launch orion", (name[-1],))
            memory_claims.note_statement(root, root[roots.DOCUMENTS]["d-2"], "launch", ("x",))
            about = memory_claims.statements_about(root, "ann", "default", "launch orion")
            assert about == [("d-2", "2"), ("d-1", "1")]
            assert memory_claims.statements_about(root, "ann", "work", "launch orion") == []
            memory_records.forget(root, ["d-2"])
            assert memory_claims.statements_about(root, "ann", "default", "launch orion") == [("d-1", "1")]
            assert memory_claims.statements_about(root, "ann", "default", "launch") == []

        await image.writer.apply(change)


async def test_marks_stay_until_their_maker_is_forgotten() -> None:
    """A span is marked once; then the older fact holds again."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"))
            chunk = chunk_of(root, "d-1")
            first = ClaimMark(0, 4, "superseded", "", "d-2", "2026-11-24T00:00:00Z")
            memory_claims.add_marks(chunk, [first])
            memory_claims.add_marks(chunk, [ClaimMark(0, 4, "untrusted"), ClaimMark(5, 6, "asked")])
            assert memory_claims.marks_of(chunk) == (first, ClaimMark(5, 6, "asked"))
            maker = root[roots.DOCUMENTS]["d-2"]
            memory_claims.note_marked(maker, "d-1")
            memory_claims.note_marked(maker, "d-1")
            memory_standings.supersede(root, "d-1", "d-2", "2026-11-24T00:00:00Z")
            memory_records.forget(root, ["d-2"])
            assert memory_claims.marks_of(chunk) == (ClaimMark(5, 6, "asked"),)
            slots = own_slots(root[roots.DOCUMENTS]["d-1"])
            assert slots["standing"] == "current"

        await image.writer.apply(change)


async def test_what_is_retracted_takes_no_place() -> None:
    """Until it comes back; the standing of a retracted fact is not changed by that."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1"), document("d-2"), document("d-3"))
            documents, mark = root[roots.DOCUMENTS], ClaimMark(0, 4, "superseded", "", "d-2")
            for name in ("d-1", "d-3"):
                memory_claims.add_marks(chunk_of(root, name), [mark])
                memory_claims.note_marked(documents["d-2"], name)
                memory_standings.supersede(root, name, "d-2", "2026-11-24T00:00:00Z")
            memory_standings.set_standing(root, "d-3", "retracted")
            for standing in ("retracted", "edited"):
                memory_standings.set_standing(root, "d-2", standing)
                assert memory_claims.marks_of(chunk_of(root, "d-1")) == ()
                assert [documents[name].standing for name in ("d-1", "d-3")] == ["current", "retracted"]
            memory_standings.set_standing(root, "d-2", "current")
            assert memory_claims.marks_of(chunk_of(root, "d-1")) == (mark,)
            assert [documents[name].standing for name in ("d-1", "d-3")] == ["superseded", "retracted"]

        await image.writer.apply(change)
