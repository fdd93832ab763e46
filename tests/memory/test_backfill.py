"""The backfill: every part gets a vector, a failure has a reason, a stopped one goes on, another model takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of
from tests.waiting import HANG

from batos.image.image import LivingImage
from batos.inference.embedder import Embedder
from batos.inference.ollama.bridge import Embedding
from batos.memory.backfill import BUSY_BATCH, BackfillState, VectorBackfill, embedded_text, missing_count
from batos.memory.records import memory_records, memory_segments
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery, VectorQuery
from batos.memory.search.metadata import MemoryReach
from batos.objects.prototype import UvmObject
from batos.protocol.errors import ContextOverflow, DiskFull, IndexDamaged, OllamaUnreachable, message_of


class CountingDaemon:
    """Embeds each text to its length and its number of `lamp`s. `failure` is raised from the second call on."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.calls: list[list[str]] = []

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, Any] | None = None,
        keep_alive: float | str | None = None,
    ) -> Embedding:
        """Return the vectors."""
        if self.failure is not None and self.calls:
            raise self.failure
        self.calls.append(list(texts))
        return Embedding([[float(len(text)), float(text.count("amp"))] for text in texts], 1, 0.0, 0.0)


def backfill_of(
    image: LivingImage,
    daemon: CountingDaemon,
    digest: str = "one",
    is_idle: Callable[[], bool] = lambda: True,
    tell: Callable[[BackfillState], None] = lambda state: None,
) -> VectorBackfill:
    """What a backfill works with here."""

    async def find_embedder() -> Embedder:
        return Embedder(daemon, "all-minilm:latest", digest)

    backfill = VectorBackfill(image, store_of(image), find_embedder, is_idle, tell)
    backfill.job.start()
    return backfill


async def fill(backfill: VectorBackfill) -> tuple[BackfillState, list[int]]:
    """Fill in what is missing; return the end, and how many were missing after each batch."""
    left: list[int] = []
    return await backfill.wait(lambda state: left.append(state.missing)), left


async def test_every_part_gets_a_vector() -> None:
    """Of its title and text; a search by a vector finds it, and a second look asks for nothing."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp.", "/a"), incoming("A gull cries.", "/b")])
        daemon = CountingDaemon()
        state, left = await fill(backfill_of(image, daemon))
        assert (state, left) == (BackfillState("all-minilm:latest"), [0])
        with image.snapshot() as root:
            chunks = [memory_records.find_chunk(root, number) for number in (1, 2)]
            assert daemon.calls == [[embedded_text(each) for each in chunks if each is not None]]
            query = RecallQuery("", VectorQuery("one", [1.0, 9.0]), "vectors")
            found = ChunkSearch().recall(root, query, MemoryReach(None), 1).parts
            assert [each.id for each in found] == [1]
        assert (await fill(backfill_of(image, daemon)))[1] == []
        assert len(daemon.calls) == 1


async def test_an_empty_memory_asks_nobody() -> None:
    """Where nothing is remembered no embedder is looked for."""

    async def find_embedder() -> Embedder:
        raise AssertionError

    async with open_image(None) as image:
        backfill = VectorBackfill(image, store_of(image), find_embedder, lambda: True, lambda state: None)
        backfill.job.start()
        assert (await fill(backfill))[0] == BackfillState()


async def test_no_embedder_is_a_reason() -> None:
    """The number of parts without a vector is told, and why."""

    async def find_embedder() -> Embedder:
        raise OllamaUnreachable("nobody listens")

    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp.")])
        backfill = VectorBackfill(image, store_of(image), find_embedder, lambda: True, lambda state: None)
        backfill.job.start()
        state, _ = await fill(backfill)
        assert (state.model, state.missing) == ("", 1)
        assert "nobody listens" in state.reason


async def test_what_was_broken_off_goes_on() -> None:
    """Batches that were written stay; the next look asks for the others alone."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming(f"Lamp {number}.", f"/{number}") for number in range(20)])
        broken = CountingDaemon(OllamaUnreachable("gone"))
        state, left = await fill(backfill_of(image, broken, is_idle=lambda: False))
        assert (state.missing, left) == (20 - BUSY_BATCH, [20 - BUSY_BATCH])
        assert "gone" in state.reason
        daemon = CountingDaemon()
        state, _ = await fill(backfill_of(image, daemon))
        assert (state.missing, sum(map(len, daemon.calls))) == (0, 20 - BUSY_BATCH)


async def test_it_looks_again_only_if_parts_were_left() -> None:
    """After a failure a mission's end is a reason to look; with all vectors there it is none."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("Lamp one.", "/1"), incoming("Lamp two.", "/2")])
        daemon = CountingDaemon(OllamaUnreachable("gone"))
        daemon.calls.append([])
        backfill = backfill_of(image, daemon)
        assert (await backfill.wait(lambda state: None)).missing == 2
        daemon.failure = None
        backfill.wake_again()
        assert (await backfill.wait(lambda state: None)).missing == 0
        calls = len(daemon.calls)
        backfill.wake_again()
        await backfill.job.stop()
        assert len(daemon.calls) == calls


@pytest.mark.parametrize("failure", [DiskFull("no room"), IndexDamaged("a segment is cut"), RuntimeError("odd")])
async def test_any_failure_is_a_reason_and_is_tried_again(failure: Exception) -> None:
    """A backfill that cannot go on ends nobody else's work: the group goes on, and the next wake fills in the rest."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming(f"Lamp {number}.", f"/{number}") for number in range(20)])
        daemon = CountingDaemon(failure)
        backfill = backfill_of(image, daemon, is_idle=lambda: False)
        state = await backfill.wait(lambda state: None)
        assert (state.missing, message_of(failure) in state.reason) == (20 - BUSY_BATCH, True)
        daemon.failure = None
        backfill.wake_again()
        assert await backfill.wait(lambda state: None) == BackfillState("all-minilm:latest")


async def test_an_image_that_refuses_gets_no_vectors() -> None:
    """Nobody is asked for a vector that cannot be written; the reason is the image's."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp.")])
        image.refusing = DiskFull("no room")
        daemon = CountingDaemon()
        state, _ = await fill(backfill_of(image, daemon))
        assert "no room" in state.reason
        assert daemon.calls == []


async def test_another_model_takes_over_when_it_has_all() -> None:
    """Until then the old vectors are there; then they go."""
    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp.", "/a"), incoming("A gull cries.", "/b")])
        await fill(backfill_of(image, CountingDaemon()))
        seen: list[list[str]] = []

        def look(_state: BackfillState) -> None:
            with image.snapshot() as root:
                seen.append(sorted(memory_segments.embedded_digests(root)))

        await fill(backfill_of(image, CountingDaemon(), "two", tell=look))
        assert seen == [["one", "two"]]
        with image.snapshot() as root:
            assert memory_segments.embedded_digests(root) == ["two"]
            assert missing_count(root, "two") == 0


async def test_parts_that_come_meanwhile_are_found_too() -> None:
    """A wake while it works makes it look once more."""
    async with open_image(None) as image:
        store = store_of(image)
        await store.remember([incoming("The lamp.", "/a")])
        daemon = CountingDaemon()
        backfill = backfill_of(image, daemon)
        backfill.job.wake()
        waiting = asyncio.ensure_future(backfill.wait(lambda state: None))
        await store.remember([incoming("Another lamp.", "/b")])
        backfill.job.wake()
        await waiting  # this may have ended before the second part came
        assert (await backfill.wait(lambda state: None)).missing == 0
        await backfill.job.stop()
        with image.snapshot() as root:
            assert missing_count(root, "one") == 0


async def test_closing_stops_it() -> None:
    """It ends although the daemon does not answer."""

    was_asked = asyncio.Event()

    class Hanging(CountingDaemon):
        async def embed(self, *_given: Any, **_more: Any) -> Embedding:
            was_asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    async with open_image(None) as image:
        await store_of(image).remember([incoming("The lamp.")])
        async with asyncio.timeout(HANG):
            backfill = backfill_of(image, Hanging())
            backfill.job.wake()
            await was_asked.wait()
            await backfill.job.stop()


async def test_a_text_that_is_too_long_is_embedded_shorter() -> None:
    """Twice shorter, then it is given up with a reason."""

    class Narrow(CountingDaemon):
        async def embed(self, model: str, texts: Sequence[str], **_more: Any) -> Embedding:
            if max(map(len, texts)) > self.widest:
                raise ContextOverflow(400, 256)
            return await super().embed(model, texts)

        widest = 60

    async with open_image(None) as image:
        await store_of(image).remember([incoming("灯塔。" * 300)])
        daemon = Narrow()
        assert (await fill(backfill_of(image, daemon)))[0].missing == 0
        daemon.widest = 10
        state, _ = await fill(backfill_of(image, daemon, "two"))
        assert state.missing
        assert "256" in state.reason


@pytest.mark.parametrize("text", ["", "x"])
def test_the_text_of_a_part_has_its_headings(text: str) -> None:
    """Title, headings and text, without what is empty."""
    parts = (memory_records.ChunkText(0, "Skarn", text),)
    document = memory_records.NewDocument(
        "d-1", "ann", "default", "", "The lamp", "text/plain", "0", 1, "user", "2026", parts
    )
    made = UvmObject(memory_records.document_slots(document, 1))
    chunk = UvmObject(memory_records.chunk_slots(made, 1, parts[0]))
    assert embedded_text(chunk) == "The lamp\nSkarn" + (f"\n{text}" if text else "")
