"""Texts that are known, and those that come twice in a batch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming

from batos.memory.document_store import DocumentStore
from batos.memory.known_texts import Incoming, SortedTexts, fact_of
from batos.memory.records import memory_records
from batos.memory.records.memory_records import NewDocument
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import RecallView, Recollection


def document(given: Incoming, name: str) -> NewDocument:
    """A document of a text."""
    return NewDocument(
        name, given.user, given.scope, given.source, given.title, given.media_type, given.sha256, 4, "user", "", ()
    )


async def test_texts_are_known_by_the_image_or_by_their_twins() -> None:
    """The line has the source that was given; a place that is noted already is no further one."""
    async with open_image(None) as image:
        store = DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC))
        await store.remember([incoming("Oil.", "/a"), incoming("Oil.", "/b")])
        found = SortedTexts()
        found.take_new(0, document(incoming("Gas.", "/c"), "d-new"))
        given = [
            ("Oil.", "/a"),
            ("Oil.", "/b"),
            ("Oil.", "/d"),
            ("Gas.", "/c"),
            ("Gas.", "/e"),
            ("Gas.", ""),
            ("W", ""),
        ]
        with image.snapshot() as root:
            known = [
                found.take_known(root, number, incoming(text, source)) for number, (text, source) in enumerate(given, 1)
            ]
        assert known == [True] * 6 + [False]
        assert [each["source"] for each in found.lines.values()] == ["/a", "/b", "/d", "/c", "/e", "/c"]
        assert [place for _, place in found.copies] == ["/d", "/e"]
        assert found.copies[1][0] == "d-new"


async def test_typed_words_that_were_known_from_a_file_are_their_authors_own() -> None:
    """They get the class of the person; said again, or found in the file again, they are known as that."""
    async with open_image(None) as image:
        store = DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC))
        typed, file = replace(incoming("Oil is dear."), trust="user"), incoming("Oil is dear.", "/a")
        assert file.trust == "external"
        states = []
        for each in (file, typed, typed, file, replace(file, source="")):
            (line,) = (await store.remember([each]))["remembered"]
            states.append(line["state"])
        assert states == ["new", "new", "known", "known", "known"]
        with image.snapshot() as root:
            listed = Recollection().list_memories(root, MemoryReach("ann"), 9)["memories"]
        assert [each["trust"] for each in listed] == ["user"]


async def test_a_source_that_is_the_name_of_a_memory_leaves_that_alone() -> None:
    """Whoever gives it: the other's text is known, listed and shown, and found by its name."""
    async with open_image(None) as image:
        store, recollection = DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC)), Recollection()
        oil = replace(incoming("Oil is dear.", "/a"), kind="turn")
        (name,) = [each["document"] for each in (await store.remember([oil]))["remembered"]]
        await store.remember([incoming("Gas.", name, user="bob"), incoming("Wax.", name, scope="work")])
        (line,) = (await store.remember([oil]))["remembered"]
        assert (line["state"], line["document"]) == ("known", name)
        with image.snapshot() as root:
            assert memory_records.find_document(root, name).name == name
            assert memory_records.find_document(root, name, "bob").name != name
            listed = recollection.list_memories(root, MemoryReach(None), 9, [oil.sha256])["memories"]
            assert [each["document"] for each in listed] == [name]
            newest = recollection.recall(root, RecallQuery("fog"), MemoryReach("ann"), 9, RecallView(newest=True))
            assert [each["document"] for each in newest["recalled"]] == [name]


async def test_a_fact_is_known_by_its_key() -> None:
    """The same words under another key, or as a document, are something else; a fact has no place of its own."""
    async with open_image(None) as image:
        store = DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC))
        fact = fact_of(incoming("18 March", "/a"), "launch_date")
        await store.remember([fact])
        found = SortedTexts()
        others = [fact, incoming("18 March", "/a"), fact_of(incoming("18 March"), "end_date")]
        with image.snapshot() as root:
            known = [found.take_known(root, number, each) for number, each in enumerate(others)]
        assert known == [True, False, False]
        assert found.copies == []


async def test_a_known_value_that_takes_the_place_of_another_fact_is_a_new_one() -> None:
    """Said again with no more than that, or with less, it is known."""
    async with open_image(None) as image:
        store = DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC))

        async def remember(key: str, text: str, **names: Any) -> tuple[str, int]:
            (line,) = (await store.remember([fact_of(incoming(text), key, **names)]))["remembered"]
            return line["state"], len(line["superseded"])

        assert [await remember("town", "Ulm"), await remember("city", "Bonn")] == [("new", 0), ("new", 0)]
        assert await remember("city", "Bonn", supersedes="town") == ("new", 2)
        assert await remember("city", "Bonn", supersedes="town") == ("known", 0)
        assert await remember("city", "Bonn", supersedes="town", depends_on=("job",)) == ("new", 1)
        assert await remember("city", "Bonn") == ("known", 0)
        with image.snapshot() as root:
            listed = Recollection().list_memories(root, MemoryReach("ann"), 9)["memories"]
            assert [(each["title"], each["standing"]) for each in listed] == [("city", "current")]
