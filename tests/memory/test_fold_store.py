"""Folding what an image remembers: found by summary, by links and in the archive, and as before when unfolded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import EVERYONE, find, incoming, store_of

from batos.image.image import LivingImage
from batos.memory import backfill
from batos.memory.document_store import DocumentStore
from batos.memory.fold_store import FoldStore
from batos.memory.known_texts import Incoming
from batos.memory.records import memory_archives, memory_records, memory_segments
from batos.memory.search.chunk_search import RecallQuery, VectorQuery
from batos.memory.search.metadata import OWN_WORDS, WITH_SUMMARISED
from batos.memory.search.recollection import Recollection
from batos.protocol.errors import NotFound
from batos.protocol.memory_documents import FoldedRegionLine

NOW = datetime(2026, 11, 26, tzinfo=UTC)
LATER = datetime(2027, 1, 1, tzinfo=UTC)
ARCHIVED = replace(EVERYONE, standings=WITH_SUMMARISED, kinds=OWN_WORDS)


def filler(number: int) -> str:
    """Sentences that no other text has."""
    return " ".join(f"Thing{number}x{each} was there." for each in range(12))


def logs(many: int) -> list[str]:
    """Texts of which a summary takes the first sentence, and of many leaves out the last."""
    return [f"Log{n} of keeper{n} at the rock. {filler(n)} He saw gull{n}." for n in range(many)]


async def folded(
    image: LivingImage, store: DocumentStore, recollection: Recollection
) -> tuple[FoldStore, list[FoldedRegionLine]]:
    """The regions of an image that are folded, and what folded them."""
    folds = FoldStore(image, store, recollection.search, lambda: NOW)
    found = [await folds.fold(*each) for each in list(folds.survey(None, LATER))]
    return folds, [each for each in found if each is not None]


async def test_a_cold_region_is_found_by_its_summary_and_in_the_archive() -> None:
    """Also after its words have left the segments; and by a process that begins afterwards."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(logs(20))])
        before = {query: find(image, recollection, query) for query in ("gull7", "keeper7")}
        folds, lines = await folded(image, store, recollection)
        assert [(line["reason"], len(line["documents"]), line["chunks"], line["left"]) for line in lines] == [
            ("cold", 16, 16, 1),
            ("cold", 4, 4, 1),
        ]
        for each in (recollection, Recollection()):
            assert find(image, each, "gull7") == []
            assert "keeper7" in find(image, each, "keeper7")[0]
            assert find(image, each, "gull7", ARCHIVED) == before["gull7"]
        await folds.tidy()
        with image.snapshot() as root:
            assert memory_archives.stale_numbers(root) == []
            assert min(row.first for _, row in memory_segments.segments_of(root)) > 20
        assert find(image, Recollection(), "gull7", ARCHIVED) == find(image, recollection, "gull7", ARCHIVED)
        back = await folds.unfold(lines[0]["summary"], "ann")
        assert [each["source"] for each in back["documents"]] == [f"/notes/{n}" for n in range(16)]
        assert find(image, recollection, "gull7") == before["gull7"]
        with pytest.raises(NotFound):
            await folds.unfold(lines[0]["summary"], "ann")


async def test_memories_that_say_the_same_are_one_at_once() -> None:
    """Whatever their age, and nothing of them is left out; what differs too much stays."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        text = " ".join(f"On day {n} keeper{n} lit the lamp." for n in range(9))
        await store.remember([incoming(text, "/a"), incoming(f"{text} The oil is low.", "/b"), incoming("Fog.", "/c")])
        folds = FoldStore(image, store, recollection.search, lambda: NOW)
        ((read, written),) = folds.survey("ann", datetime(2020, 1, 1, tzinfo=UTC))
        told = folds.would_fold(read, written)
        assert told is not None
        assert (told["summary"], told["reason"], told["chunks"], told["left"]) == ("", "redundant", 2, 1)
        assert list(folds.survey("bob", LATER)) == []
        assert await folds.fold(read, written) is not None
        assert await folds.fold(read, written) is None
        assert find(image, recollection, "oil keeper7")[0].endswith("The oil is low.")
        assert len(find(image, recollection, "keeper7")) == 1


async def test_a_source_that_changes_brings_back_what_it_was_folded_with() -> None:
    """The summary of its older text is gone; what is forgotten takes the summary along, and nothing else."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        texts = logs(3)
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(texts)])
        await folded(image, store, recollection)
        await store.remember([incoming("Something new.", "/notes/1")])
        assert find(image, recollection, "keeper1 gull1", ARCHIVED) == []
        assert find(image, recollection, "keeper0 gull0") == [texts[0]]
        await folded(image, store, recollection)
        told = await store.forget(["/notes/0"], "ann")
        assert {each["kind"] for each in told["forgotten"]} == {"document", "summary"}
        assert find(image, Recollection(), "keeper0 gull0", ARCHIVED) == []
        assert find(image, recollection, "keeper2 gull2") == [texts[2]]


async def test_a_copy_of_what_is_folded_keeps_its_words() -> None:
    """The content is known; where the first file changes the other place has them still."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        texts = logs(3)
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(texts)])
        await folded(image, store, recollection)
        for place in ("/copies/1", "/copies/0"):
            known = await store.remember([incoming(texts[int(place[-1])], place)])
            assert known["remembered"][0]["state"] == "known"
        assert find(image, recollection, "gull1", ARCHIVED) == [texts[1]]
        await store.remember([incoming("Something new.", "/notes/1")])
        assert find(image, recollection, "keeper1 gull1") == [texts[1]]
        await folded(image, store, recollection)
        await store.remember([incoming(texts[0], "/copies/1")])
        assert find(image, recollection, "keeper1 gull1", ARCHIVED) == []
        assert find(image, recollection, "keeper0 gull0", ARCHIVED) == [texts[0]]


async def test_a_statement_that_gives_way_is_marked_though_it_is_folded() -> None:
    """The region comes back for it; what gave way, and what another gave way to, is not folded again."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()

        def note(text: str) -> Incoming:
            return replace(incoming(text), trust="user")

        await store.remember([note("Tom Berg lives in Ulm."), note("The gull sits on the lamp."), note("Oil is dear.")])
        _, lines = await folded(image, store, recollection)
        assert [len(each["documents"]) for each in lines] == [3]
        await store.remember([note("Tom Berg now lives in Bremen.")])
        assert any("[superseded" in text and "Ulm" in text for text in find(image, recollection, "Tom Berg"))
        assert len(find(image, recollection, "gull")) == 1
        _, lines = await folded(image, store, recollection)
        assert {each["title"] for line in lines for each in line["documents"]} == {
            "The gull sits on the",
            "Oil is dear.",
        }


async def test_a_summary_is_forgotten_with_what_it_stands_for() -> None:
    """No word of it is left in any index or archive."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(logs(3))])
        _, (line,) = await folded(image, store, recollection)
        told = await store.forget([line["summary"]], "ann")
        assert len(told["forgotten"]) == 4
        with image.snapshot() as root:
            assert memory_records.chunk_count(root) == 0
            assert not list(memory_segments.segments_of(root))
            assert not list(memory_archives.rows(root))


async def test_vectors_are_paid_for_once() -> None:
    """They are archived where all parts of a region have one, and are there again when it is unfolded."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(logs(3))])
        await image.writer.apply(lambda root: backfill.add_vectors(root, "m", [1, 2, 3], np.eye(3)))
        folds, (line,) = await folded(image, store, recollection)
        near = RecallQuery("", VectorQuery("m", [0.0, 1.0, 0.0]), "vectors")
        with image.snapshot() as root:
            assert backfill.missing_vectors(root, "m") == [4]
            assert recollection.recall(root, near, EVERYONE, 9)["recalled"] == []
        await folds.unfold(line["summary"], None)
        with image.snapshot() as root:
            assert backfill.missing_vectors(root, "m") == []
            found = recollection.recall(root, near, EVERYONE, 9)["recalled"]
            assert [(each["chunk"], each["score"]) for each in found] == [(2, 1.0), (1, 0.0), (3, 0.0)]


async def test_links_lead_to_the_summary() -> None:
    """A question of two steps is answered through a name of what is archived."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        light = replace(incoming(f"Holm Light was designed by Ada Lund. {filler(1)}", "/notes/1"), title="Holm Light")
        lund = replace(incoming(f"Ada Lund was born in Oslo. {filler(2)}", "/notes/2"), title="Ada Lund")
        await store.remember([light, lund])
        asked = RecallQuery("Where was the designer of Holm Light born?")
        with image.snapshot() as root:
            before = [each["path"] for each in recollection.recall(root, asked, EVERYONE, 2)["recalled"]]
        assert any(before)
        await folded(image, store, recollection)
        with image.snapshot() as root:
            (found,) = recollection.recall(root, asked, EVERYONE, 2)["recalled"]
        assert "named in the question" in found["why"]
        assert "born in Oslo" in found["text"]


async def test_segments_are_written_anew_once_much_of_them_is_archived() -> None:
    """Little is left where it is: nobody finds it there."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(logs(2))])
        folds, _ = await folded(image, store, recollection)
        await store.remember([incoming(f"Fog{n} came.", f"/fog/{n}") for n in range(40)])
        with image.snapshot() as root:
            before = memory_archives.stale_numbers(root)
        await folds.tidy()
        with image.snapshot() as root:
            assert memory_archives.stale_numbers(root) == before == [(1, 2)]
        await store.forget([f"/fog/{n}" for n in range(30)], "ann")
        await folds.tidy()
        with image.snapshot() as root:
            assert memory_archives.stale_numbers(root) == []
            numbers = [each for _, row in memory_segments.segments_of(root, "text") for each in (row.first, row.last)]
            assert all(one <= other for one, other in pairwise(numbers))
        assert find(image, recollection, "gull1", ARCHIVED) == [logs(2)[1]]
