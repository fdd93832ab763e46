"""Remembering: known content once, a source once, segments merged, and forgotten words found by nobody."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.image.open_image import open_image

from batos.image import roots
from batos.image.image import LivingImage
from batos.memory.document_store import MERGED, DocumentStore
from batos.memory.known_texts import Incoming
from batos.memory.records import memory_records, memory_segments, memory_standings
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import Recollection
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound
from batos.protocol.memory_documents import RememberedPage

EVERYONE = MemoryReach(None)


def incoming(text: str, source: str = "", user: str = "ann", scope: str = "default") -> Incoming:
    """A text of a user's."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Incoming(user, scope, source, text[:20], "text/plain", text, digest, "external")


def store_of(image: LivingImage) -> DocumentStore:
    """A store over an image, whose clock stands still."""
    return DocumentStore(image, lambda: datetime(2026, 11, 24, tzinfo=UTC))


def find(image: LivingImage, recollection: Recollection, query: str, reach: MemoryReach = EVERYONE) -> list[str]:
    """The texts that a query finds."""
    with image.snapshot() as root:
        return [each["text"] for each in recollection.recall(root, RecallQuery(query), reach, 9)["recalled"]]


async def test_known_content_is_not_stored_again() -> None:
    """For the same user in the same scope; of two equal texts that come together one is stored."""
    async with open_image(None) as image:
        store = store_of(image)
        first = (await store.remember([incoming("The lamp burns.", "/a")]))["remembered"]
        assert [each["state"] for each in first] == ["new"]
        again = (await store.remember([incoming("The lamp burns.", "/b"), incoming("Oil.")]))["remembered"]
        assert [each["state"] for each in again] == ["known", "new"]
        assert again[0]["document"] == first[0]["document"]
        other = await store.remember([incoming("The lamp burns.", user="bob"), incoming("The lamp burns.", scope="s")])
        assert [each["state"] for each in other["remembered"]] == ["new", "new"]
        twice = await store.remember([incoming("Fog.", "/c"), incoming("Fog.", "/d")])
        assert [each["state"] for each in twice["remembered"]] == ["new", "known"]


async def test_a_changed_source_takes_the_place_of_the_older() -> None:
    """Nobody finds the older words any more; who asks for the new ones finds them at once."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("The lamp burns oil.", "/a")])
        assert find(image, recollection, "oil") == ["The lamp burns oil."]
        (line,) = (await store.remember([incoming("The lamp burns gas.", "/a")]))["remembered"]
        assert line["state"] == "replaced"
        assert find(image, recollection, "oil gas") == ["The lamp burns gas."]
        assert find(image, Recollection(), "oil gas") == ["The lamp burns gas."]


async def test_segments_stay_few() -> None:
    """Those of one size are merged, and everything is found as before."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        for number in range(3 * MERGED):
            await store.remember([incoming(f"Lamp number{number} burns.")])
        with image.snapshot() as root:
            assert len(list(memory_segments.segments_of(root))) < MERGED
        assert find(image, recollection, "number7") == ["Lamp number7 burns."]
        assert find(image, Recollection(), f"number{3 * MERGED - 1}") == [f"Lamp number{3 * MERGED - 1} burns."]


async def test_documents_are_forgotten_together_or_not() -> None:
    """One that is not there, or is another's, leaves all; what is forgotten is found by no search, old or new."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember(
            [incoming("Lamp one.", "/a"), incoming("Lamp two.", "/b"), incoming("Lamp three.", user="bob")]
        )
        assert len(find(image, recollection, "lamp")) == 3
        with pytest.raises(NotFound):
            await store.forget(["/a", "/none"], "ann")
        assert len(find(image, recollection, "lamp")) == 3
        told = await store.forget(["/a", "/b"], "ann")
        assert [each["source"] for each in told["forgotten"]] == ["/a", "/b"]
        assert "history" in told["note"]
        assert find(image, recollection, "lamp one two") == find(image, Recollection(), "lamp") == ["Lamp three."]


def states(told: RememberedPage) -> list[str]:
    """What became of each text."""
    return [each["state"] for each in told["remembered"]]


async def test_a_content_outlives_one_of_its_files() -> None:
    """A copy is stored once; when the file changes that it was taken from, it is still found, as the copy's."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("The lamp burns oil.", "/a")])
        (copy,) = (await store.remember([incoming("The lamp burns oil.", "/b")]))["remembered"]
        assert (copy["state"], copy["source"]) == ("known", "/b")
        assert states(await store.remember([incoming("The lamp burns gas.", "/a")])) == ["replaced"]
        assert sorted(find(image, recollection, "lamp")) == ["The lamp burns gas.", "The lamp burns oil."]
        assert find(image, Recollection(), "oil", MemoryReach(None, sources=frozenset({"/b"})))
        assert states(await store.remember([incoming("The lamp burns wax.", "/b")])) == ["replaced"]
        assert sorted(find(image, recollection, "lamp oil")) == ["The lamp burns gas.", "The lamp burns wax."]


@pytest.mark.parametrize("together", [True, False])
async def test_files_change_places(together: bool) -> None:
    """Two files that are exchanged, and one whose content moved on: nothing is stored twice, and nothing is lost."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Oil.", "/a"), incoming("Gas.", "/b")])
        for texts in (
            [incoming("Gas.", "/a"), incoming("Oil.", "/b")],
            [incoming("Wax.", "/a"), incoming("Gas.", "/b"), incoming("Oil.", "/c")],
        ):
            for some in [texts] if together else [[each] for each in texts]:
                await store.remember(some)
            assert sorted(find(image, recollection, "oil gas wax")) == sorted(each.text for each in texts)
            with image.snapshot() as root:
                sources = {
                    each.source: own_slots(memory_records.find_document(root, each.source))["sha256"] for each in texts
                }
            assert sources == {each.source: each.sha256 for each in texts}


async def test_contents_are_recognised_without_their_texts() -> None:
    """Where they came from is noted, and what came from there before goes."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Oil.", "/a"), incoming("Gas.", "/b")])
        moved = [incoming("Oil.", "/b"), incoming("Wax.", "/c"), incoming("Oil.", "/d")]
        told = await store.recognise(moved)
        assert [(each["source"], each["state"]) for each in told["remembered"]] == [("/b", "known"), ("/d", "known")]
        assert find(image, recollection, "oil gas") == ["Oil."]
        assert (await store.recognise([incoming("Wax.", "/c")])) == {"remembered": []}
        (gone,) = (await store.forget(["/d"]))["forgotten"]
        assert gone["source"] == "/a"
        assert (await store.recognise([incoming("Oil.", "/a")])) == {"remembered": []}


async def test_a_typed_text_outlives_the_files_that_say_the_same() -> None:
    """It came from nobody's file, so no file's change takes it away."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Oil is dear.")])
        await store.remember([incoming("Oil is dear.", "/a")])
        await store.remember([incoming("Gas is cheap.", "/a")])
        assert sorted(find(image, recollection, "oil gas")) == ["Gas is cheap.", "Oil is dear."]


async def test_turns_are_known_again() -> None:
    """By their digest, which tells them from other turns in the same words."""
    async with open_image(None) as image:
        store = store_of(image)
        turns = [
            replace(incoming("Yes.", f"/log#{number}"), sha256=f"{number:064}", kind="turn", speaker="ann")
            for number in range(2)
        ]
        assert states(await store.remember(turns)) == ["new", "new"]
        assert states(await store.remember(turns)) == ["known", "known"]


async def test_a_pin_stays_with_a_file_whose_words_somebody_typed_meanwhile() -> None:
    """The typed words and the file become one document when the file is looked at again."""
    async with open_image(None) as image:
        store, file = store_of(image), replace(incoming("The lamp burns.", "/a"), trust="external")
        (first,) = (await store.remember([file]))["remembered"]
        await image.writer.apply(lambda root: memory_standings.pin(root, first["document"], ""))
        (typed,) = (await store.remember([replace(file, source="", trust="user")]))["remembered"]
        assert typed["state"] == "new"
        await store.recognise([file])
        with image.snapshot() as root:
            assert list(memory_standings.list_pinned(root, "ann")) == [typed["document"]]


async def test_a_pin_stays_with_a_file_that_changes() -> None:
    """Whoever pinned it meant the file."""
    async with open_image(None) as image:
        store = store_of(image)
        (first,) = (await store.remember([incoming("The lamp burns.", "/a")]))["remembered"]
        await image.writer.apply(lambda root: memory_standings.pin(root, first["document"], ""))
        (changed,) = (await store.remember([incoming("The lamp is out.", "/a")]))["remembered"]
        with image.snapshot() as root:
            assert list(memory_standings.list_pinned(root, "ann")) == [changed["document"]]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("2099-11-25T00:00:00.000Z", "2026-11-24T00:00:00.000Z"),
        ("2025-01-02T00:00:00.000Z", "2025-01-02T00:00:00.000Z"),
    ],
)
async def test_nothing_was_said_later_than_it_is_remembered(told: str, kept: str) -> None:
    """A file may tell of any day; a day to come is not the one on which it was said."""
    async with open_image(None) as image:
        store = store_of(image)
        (line,) = (await store.remember([replace(incoming("Lamp.", "/a#1"), kind="turn", said_at=told)]))["remembered"]
        with image.snapshot() as root:
            assert own_slots(root[roots.DOCUMENTS][line["document"]])["said_at"] == kept
