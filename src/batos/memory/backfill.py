"""Gives vectors to the parts that have none of today's embedder, in the background, batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from batos.concurrency.jobs import Job
from batos.concurrency.threads import finish_despite_cancel
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference.embedder import Embedder, Unembedded
from batos.memory.document_store import DocumentStore
from batos.memory.indexes import vectors
from batos.memory.records import memory_records, memory_segments
from batos.memory.records.memory_segments import VECTORS, NewSegment
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BatosError, message_of

T = TypeVar("T")

#: Parts of a batch, which is one request and one commit; and while missions run.
BATCH, BUSY_BATCH = 64, 8
#: Seconds between two batches while missions run: they have the daemon.
BUSY_PAUSE: Final = 0.5
#: Seconds before a failed run is tried again: it may load a model.
_RETRY: Final = (60.0, 3_600.0)


@dataclass(frozen=True, slots=True)
class BackfillState:
    """The progress of a backfill: `missing` parts have no vector of the `model` ("": none is there).

    `reason` says why they have none, where nobody is giving them any.
    """

    model: str = ""
    missing: int = 0
    reason: str = ""


#: Hears of each batch.
OnProgress: TypeAlias = Callable[[BackfillState], None]


class VectorBackfill:
    """Fills in the vectors that are missing, each batch in a commit of its own: what is killed goes on there.

    When all parts have a vector of today's embedder, those of others are dropped; until then recall has the old ones.
    `find` asks what embeds today; it raises BatosError or Unembedded with the reason why nothing does.
    """

    def __init__(
        self,
        image: LivingImage,
        store: DocumentStore,
        find: Callable[[], Awaitable[Embedder]],
        is_idle: Callable[[], bool],
        tell: OnProgress,
    ) -> None:
        self._image, self._store, self._find_embedder, self._is_idle = image, store, find, is_idle
        self.job = Job("vectors", self._run, lambda: image.publishing.is_here, retry=_RETRY)
        self._listeners: list[OnProgress] = [tell]
        self._state = BackfillState()

    def wake_again(self) -> None:
        """Look once more if the last time parts were left without a vector, or it failed: the daemon may be back."""
        if self._state.missing or self._state.reason:
            self.job.wake()

    async def wait(self, on_progress: OnProgress) -> BackfillState:
        """Fill in what is missing, and return how far that came."""
        self._listeners.append(on_progress)
        try:
            await self.job.finish()
            return self._state
        finally:
            self._listeners.remove(on_progress)

    async def _run(self) -> None:
        """Fill in what is missing now; a failure is a reason for no vectors."""
        refusing = self._image.refusing
        try:
            self._state = (
                replace(self._state, reason=message_of(refusing)) if refusing is not None else await self._look()
            )
        except Exception as error:
            self._state = replace(self._state, reason=message_of(error))
            raise

    async def _look(self) -> BackfillState:
        """Fill in what is missing now."""
        if not await self._read(memory_records.chunk_count):
            return BackfillState()
        try:
            embedder = await self._find_embedder()
        except (BatosError, Unembedded) as error:
            return BackfillState(missing=await self._read(_least_missing), reason=message_of(error))
        try:
            while await self._fill(embedder):
                if not self._is_idle():
                    await asyncio.sleep(BUSY_PAUSE)
        except Unembedded as error:
            missing = await self._read(partial(missing_count, digest=embedder.digest))
            return BackfillState(embedder.model, missing, str(error))
        await self._drop_others(embedder.digest)
        return BackfillState(embedder.model)

    async def _fill(self, embedder: Embedder) -> bool:
        """Give vectors to a batch; return False if no part lacks one. Raises: Unembedded."""
        most = BATCH if self._is_idle() else BUSY_BATCH
        texts = await self._read(partial(_texts, digest=embedder.digest, most=most))
        if not texts:
            return False
        matrix = np.array(await embedder.vectors(list(texts.values())), np.float32)
        write = self._image.shared.apply(
            partial(add_vectors, digest=embedder.digest, numbers=list(texts), matrix=matrix)
        )
        await finish_despite_cancel(asyncio.ensure_future(write))
        await self._store.merge()
        missing = await self._read(partial(missing_count, digest=embedder.digest))
        state = BackfillState(embedder.model, missing)
        self._state = state
        for tell in tuple(self._listeners):
            tell(state)
        return True

    async def _drop_others(self, digest: str) -> None:
        for other in await self._read(memory_segments.embedded_digests):
            if other != digest:
                await self._image.shared.apply(partial(memory_segments.drop_vectors, digest=other))

    async def _read(self, look: Callable[[Root], T]) -> T:
        """Return what is found in the image now, by a thread."""

        def read() -> T:
            with self._image.snapshot() as root:
                return look(root)

        return await asyncio.to_thread(read)


def _texts(root: Root, digest: str, most: int) -> dict[int, str]:
    """Return the texts of the first parts without a vector, by their numbers."""
    chunks = {number: memory_records.find_chunk(root, number) for number in missing_vectors(root, digest, most)}
    return {number: embedded_text(chunk) for number, chunk in chunks.items() if chunk is not None}


def _least_missing(root: Root) -> int:
    """Return the number of parts that have no vector of the model that gave most."""
    return min(missing_count(root, each) for each in memory_segments.embedded_digests(root) or [""])


def embedded_text(chunk: UvmObject) -> str:
    """Return the words of a part that its vector stands for: the title and the headings above it, then its text."""
    slots = own_slots(chunk)
    return "\n".join(filter(None, (own_slots(slots["document"])["title"], slots["heading"], slots["text"])))


# -- the vectors of chunks: which chunks a model has not seen yet, and where what it said of others is kept


def add_vectors(root: Root, digest: str, numbers: Sequence[int], matrix: NDArray[Any]) -> int:
    """Add the vectors of chunks, a row for each, as a model of this digest made them; return how many were added.

    Chunks that are gone meanwhile, or that have a vector of this model, are left out.
    """
    missing = [range(first, last + 1) for first, last in memory_segments.missing_vectors(root, digest)]
    kept = [row for row, number in enumerate(numbers) if any(number in each for each in missing)]
    if not kept:
        return 0
    chosen = [numbers[row] for row in kept]
    data = vectors.build(np.array(chosen, np.int64), np.asarray(matrix)[kept])
    memory_segments.add_segment(root, NewSegment(VECTORS, data, min(chosen), max(chosen), digest))
    memory_segments.note_embedded(root, digest, chosen)
    return len(kept)


def missing_vectors(root: Root, digest: str, most: int | None = None) -> list[int]:
    """Return the numbers of the first chunks that have no vector of a model, at most so many (None: all)."""
    missing = memory_segments.missing_vectors(root, digest)
    return list(islice((number for first, last in missing for number in range(first, last + 1)), most))


def missing_count(root: Root, digest: str) -> int:
    """Return the number of chunks that have no vector of a model."""
    return sum(last - first + 1 for first, last in memory_segments.missing_vectors(root, digest))
