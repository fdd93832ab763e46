"""The router's training: loaded from the image, or learnt from the codex in a thread and stored there."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference.ollama.bridge import EMBED_BATCH
from batos.routing import lexical, semantic
from batos.routing.lesson_vectors import SavedVectors
from batos.routing.lessons import Lesson, digest_of
from batos.routing.lexical import Lexical
from batos.routing.semantic import Semantic
from batos.routing.vectors import Embedder, Unembedded

#: Another format was stored by another version: the lessons are learnt again.
FORMAT = 1
#: Exemplars that are embedded between two looks at the clock: one request's.
BATCH = EMBED_BATCH
#: Seconds between two words about how far the embedding is, and those that it may take.
TOLD_AFTER, AT_MOST = 2.0, 600.0
#: The reason for words alone if the daemon has no such model, or is away itself.
NO_EMBEDDER = "the embedder is missing"

_log = structlog.get_logger("batos.router")


@dataclass(frozen=True, slots=True)
class LearntLessons:
    """Words always; meaning where an embedder was there: `embedder` is its name and digest."""

    lessons: str
    words: Lexical
    meaning: Semantic | None = None
    embedder: tuple[str, str] | None = None
    #: The reason for words alone, in words for people.
    without: str | None = None


Tell = Callable[[int, int], None]


async def find_or_learn(
    image: LivingImage, lessons: Sequence[Lesson], embedder: Embedder | None, tell: Tell
) -> LearntLessons:
    """Return what the image stores for these lessons and this embedder, else learn it now and store it.

    Never fails because of the embedder: without its vectors only the words are learnt, and `without` gives the reason.
    `tell` gets the number of embedded exemplars and of all, every `TOLD_AFTER` seconds.
    """
    digest = digest_of(lessons)
    kept = await asyncio.to_thread(_find_stored, image, lessons, digest)
    known = kept or LearntLessons(digest, await asyncio.to_thread(lexical.learn, lessons))
    anew = embedder is not None and embedder.identity != known.embedder
    made = await _with_meaning(image, known, lessons, embedder, tell) if embedder is not None and anew else known
    if kept is None or (anew and made.meaning is not None):
        await _keep(image.writer.apply, made)
    return replace(made, without=NO_EMBEDDER) if embedder is None else made


async def _with_meaning(
    image: LivingImage, known: LearntLessons, lessons: Sequence[Lesson], embedder: Embedder, tell: Tell
) -> LearntLessons:
    labelled = [(lesson.persona, text) for lesson in lessons for text in lesson.exemplars]
    clock = asyncio.get_running_loop().time
    told, saved = clock(), SavedVectors(image, (known.lessons, *embedder.identity))
    vectors = await asyncio.to_thread(saved.read)
    try:
        async with asyncio.timeout(AT_MOST):
            for start in range(len(vectors), len(labelled), BATCH):
                vectors += await embedder.vectors([text for _, text in labelled[start : start + BATCH]])
                await saved.save(vectors, clock())
                if clock() - told >= TOLD_AFTER:
                    told = clock()
                    tell(len(vectors), len(labelled))
        pairs = [(persona, vector) for (persona, _), vector in zip(labelled, vectors, strict=True)]
        meaning = await asyncio.to_thread(semantic.learn, known.words.personas, pairs)
    except (Unembedded, TimeoutError, ValueError) as error:
        why = f"{embedder.model}: {str(error) or 'it took too long'}"
        _log.warning("router.words_alone", reason=why)
        # The weights of an earlier embedder are of another space: its vectors and the new one's have nothing in common.
        return replace(known, meaning=None, embedder=None, without=why)
    return replace(known, meaning=meaning, embedder=embedder.identity, without=None)


def _find_stored(image: LivingImage, lessons: Sequence[Lesson], digest: str) -> LearntLessons | None:
    """Return what the image stores for these lessons; None if it is of other lessons, or not readable."""
    with image.snapshot() as root:
        record = dict(root.get(roots.ROUTER, {}))
    if record.get("format") != FORMAT or record.get("lessons") != digest:
        return None
    personas = [lesson.persona for lesson in lessons]
    try:
        words = Lexical.unpack(personas, record)
        meaning = Semantic.unpack(personas, record) if "meaning" in record else None
    except (ValueError, KeyError, zlib.error) as error:
        _log.warning("router.unread", reason=str(error))  # it is learnt anew: the codex has all of it
        return None
    embedder = (record["embedder"], record["digest"]) if meaning is not None else None
    return LearntLessons(digest, words, meaning, embedder)


async def _keep(apply: Callable[[Callable[[Any], None]], Awaitable[None]], learnt: LearntLessons) -> None:
    record: dict[str, Any] = {"format": FORMAT, "lessons": learnt.lessons}
    record |= await asyncio.to_thread(lambda: learnt.words.packed_model)
    if learnt.meaning is not None and learnt.embedder is not None:
        record |= learnt.meaning.pack()
        record["embedder"], record["digest"] = learnt.embedder

    def change(root: Root) -> None:
        root[roots.ROUTER] = PersistentMapping(record)

    await apply(change)
