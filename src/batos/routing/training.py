"""The router's training: classifiers by words and by meaning, loaded from the image or learnt from the codex."""

from __future__ import annotations

import asyncio
import math
import random
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from operator import mul
from typing import Any, Final, TypeAlias

import numpy as np
import structlog
from numpy.typing import NDArray
from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference.embedder import Embedder, Unembedded
from batos.inference.ollama.bridge import EMBED_BATCH
from batos.routing import lexical
from batos.routing.lexical import Lesson, Lexical, digest_of

Matrix: TypeAlias = NDArray[np.float64]

#: Rounds over all exemplars, the first step, and the pull towards zero: more rounds gain nothing
#: (docs/decisions/0012-router.md).
ROUNDS, STEP, PULL = 6, 2.0, 2e-4
#: An exemplar that is told apart as well as this moves nothing.
_ENOUGH = 0.02
_SEED = 7
#: The weights as the image stores them.
_STORED: Final = "<f4"


@dataclass(frozen=True, slots=True)
class Semantic:
    """A weight for each persona and number of a vector; `centre` is the mean of what it was learnt from."""

    personas: tuple[str, ...]
    centre: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]

    @property
    def width(self) -> int:
        """Return the number of components of a vector."""
        return len(self.centre)

    def logs(self, vector: Sequence[float]) -> list[float]:
        """Return the logarithm of each persona's probability, in their order.

        Raises: ValueError: the vector has another width.
        """
        if len(vector) != self.width:
            raise ValueError(f"a vector has {len(vector)} numbers, the router learnt from {self.width}")
        placed = [value - middle for value, middle in zip(_normal(vector), self.centre, strict=True)]
        return log_shares([sum(map(mul, row, placed)) for row in self.weights])

    def pack(self) -> dict[str, bytes]:
        """Return the model as plain bytes: the centre, then each persona's weights."""
        return {"meaning": np.array([self.centre, *self.weights], _STORED).tobytes()}

    @classmethod
    def unpack(cls, personas: Sequence[str], kept: Mapping[str, bytes]) -> Semantic:
        """Return the model that `pack` stored. Raises: ValueError: the bytes are no such model."""
        numbers = np.frombuffer(kept["meaning"], _STORED)
        if not len(numbers) or len(numbers) % (len(personas) + 1):
            raise ValueError("the router's weights are not of its personas")
        centre, *weights = map(tuple, numbers.reshape(len(personas) + 1, -1).tolist())
        return cls(tuple(personas), centre, tuple(weights))


def learn_meanings(personas: Sequence[str], labelled: Sequence[tuple[str, Sequence[float]]]) -> Semantic:
    """Learn from vectors with their persona; a tenth of a second of CPU for a thousand of 384 numbers: not on the loop.

    The same vectors give the same weights. ValueError for none, and for vectors of several widths.
    """
    width = len(labelled[0][1]) if labelled else 0
    if not width or any(len(vector) != width for _, vector in labelled):
        raise ValueError("the exemplars' vectors are not of one width")
    given = np.array([vector for _, vector in labelled], dtype=np.float64)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    vectors = given / np.where(lengths == 0, 1.0, lengths)
    centre = vectors.mean(axis=0)
    vectors -= centre
    names = tuple(personas)
    asked = [names.index(persona) for persona, _ in labelled]
    learnt = _weights_of(blake2b(repr((len(names), asked)).encode() + vectors.tobytes()).digest())
    if not learnt:
        learnt.append(_train(vectors, asked, len(names)))
    return Semantic(names, tuple(centre.tolist()), tuple(map(tuple, learnt[0].tolist())))


@lru_cache(maxsize=16)  # five for a codex of four personas
def _weights_of(digest: bytes) -> list[Matrix]:
    """Return the list in which the weights for exemplars of this digest are kept once they are learnt."""
    return []


def _train(vectors: Matrix, asked: Sequence[int], personas: int) -> Matrix:
    """Train by stochastic gradient descent, with steps that shrink to nothing and an order that is always the same."""
    rows: Matrix = np.zeros((personas, vectors.shape[1]))
    order, shuffled = list(range(len(vectors))), random.Random(_SEED)
    steps, done = ROUNDS * len(vectors), 0
    for _ in range(ROUNDS):
        shuffled.shuffle(order)
        for at in order:
            done += 1
            pace, vector = STEP * (1 - done / (steps + 1)), vectors[at]
            for place, log in enumerate(log_shares((rows @ vector).tolist())):
                error = math.exp(log) - (place == asked[at])
                if abs(error) > _ENOUGH:
                    rows[place] -= pace * error * vector
        rows *= (1 - STEP * (1 - done / (steps + 1)) * PULL) ** len(vectors)
    return rows


def log_shares(values: Sequence[float]) -> list[float]:
    """Convert values to logarithms of shares that sum to one."""
    top = max(values)
    whole = top + math.log(sum(math.exp(value - top) for value in values))
    return [value - whole for value in values]


def _normal(vector: Iterable[float]) -> list[float]:
    """Scale a vector to length one; a zero vector stays zero."""
    numbers = list(vector)
    length = math.sqrt(sum(map(mul, numbers, numbers))) or 1.0
    return [number / length for number in numbers]


#: The weight of the meaning's logarithms beside those of the words.
MEANING = 1.5
#: Factors that make confidence honest (docs/decisions/0012-router.md), applied to logarithms before they are shares.
WORDS_SHARPNESS, BOTH_SHARPNESS = 1.0, 0.7


@dataclass(frozen=True, slots=True)
class Classifier:
    """Two classifiers of the same labels: words always, meaning where an embedder was there."""

    words: Lexical
    meaning: Semantic | None = None

    def shares(self, text: str, vector: Sequence[float] | None = None) -> dict[str, float]:
        """Score each label by a text's words, and its vector if there is one; the scores sum to 1."""
        logs, sharpness = log_shares(self.words.logs(text)), WORDS_SHARPNESS
        if vector is not None and self.meaning is not None:
            meant, sharpness = self.meaning.logs(vector), BOTH_SHARPNESS
            logs = [word + MEANING * log for word, log in zip(logs, meant, strict=True)]
        shares = log_shares([sharpness * log for log in logs])
        return {name: math.exp(share) for name, share in zip(self.words.labels, shares, strict=True)}

    def pack(self) -> dict[str, bytes]:
        """Return both classifiers as plain bytes."""
        return {**self.words.packed_model, **(self.meaning.pack() if self.meaning is not None else {})}

    @classmethod
    def unpack(cls, labels: Sequence[str], kept: Mapping[str, Any]) -> Classifier:
        """Return the classifiers that `pack` stored.

        Raises: ValueError, KeyError or zlib.error: the bytes are no such classifiers.
        """
        meaning = Semantic.unpack(labels, kept) if "meaning" in kept else None
        return cls(lexical.unpack(tuple(labels), kept["features"], kept["counts"]), meaning)


#: Another format was stored by another version: the lessons are learnt again.
FORMAT = 2
#: The key of the router's record that has the classifiers of each persona's protocols.
PROTOCOLS = "protocols"
#: Exemplars that are embedded between two looks at the clock: one request's.
BATCH = EMBED_BATCH
#: Seconds between two words about how far the embedding is, and those that it may take.
TOLD_AFTER, AT_MOST = 2.0, 600.0
#: The reason for words alone if the daemon has no such model, or is away itself.
NO_EMBEDDER = "the embedder is missing"

_log = structlog.get_logger("batos.router")


@dataclass(frozen=True, slots=True)
class LearntLessons:
    """Words always; meaning where an embedder was there: `embedder` is its name and digest.

    `protocols` has what tells each persona's key protocols from each other and from its ordinary questions.
    """

    lessons: str
    personas: Classifier
    protocols: Mapping[str, Classifier] = field(default_factory=dict)
    embedder: tuple[str, str] | None = None
    #: The reason for words alone, in words for people.
    without: str | None = None

    @property
    def has_meaning(self) -> bool:
        """Test if vectors can be scored."""
        return self.personas.meaning is not None

    def words_alone(self, why: str) -> LearntLessons:
        """Return this without meaning, for that reason."""
        protocols = {persona: Classifier(each.words) for persona, each in self.protocols.items()}
        return LearntLessons(self.lessons, Classifier(self.personas.words), protocols, without=why)


def learn_words(lessons: Sequence[Lesson]) -> LearntLessons:
    """Learn the words of personas and protocols; takes half a second of CPU for a thousand exemplars."""
    protocols = {each.label: Classifier(lexical.learn(each.choices)) for each in lessons if each.protocols}
    return LearntLessons(digest_of(lessons), Classifier(lexical.learn(tuple(lessons))), protocols)


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
    known = kept if kept is not None else await asyncio.to_thread(learn_words, lessons)
    anew = embedder is not None and embedder.identity != known.embedder
    made = await _with_meaning(image, known, lessons, embedder, tell) if embedder is not None and anew else known
    if kept is None or (anew and made.has_meaning):
        await _keep(image.writer.apply, made)
    return replace(made, without=NO_EMBEDDER) if embedder is None else made


async def _with_meaning(
    image: LivingImage, known: LearntLessons, lessons: Sequence[Lesson], embedder: Embedder, tell: Tell
) -> LearntLessons:
    labelled = [text for lesson in lessons for text in lesson.questions]
    clock = asyncio.get_running_loop().time
    told, saved = clock(), SavedVectors(image, (known.lessons, *embedder.identity))
    vectors = await asyncio.to_thread(saved.read)
    try:
        async with asyncio.timeout(AT_MOST):
            for start in range(len(vectors), len(labelled), BATCH):
                vectors += await embedder.vectors(labelled[start : start + BATCH])
                await saved.save(vectors, clock())
                if clock() - told >= TOLD_AFTER:
                    told = clock()
                    tell(len(vectors), len(labelled))
        meant = dict(zip(labelled, vectors, strict=True))
        personas = await asyncio.to_thread(_learn_meaning, known.personas, lessons, meant)
        protocols = {
            each.label: await asyncio.to_thread(_learn_meaning, known.protocols[each.label], each.choices, meant)
            for each in lessons
            if each.protocols
        }
    except (Unembedded, TimeoutError, ValueError) as error:
        why = f"{embedder.model}: {str(error) or 'it took too long'}"
        _log.warning("router.words_alone", reason=why)
        # The weights of an earlier embedder are of another space: its vectors and the new one's have nothing in common.
        return known.words_alone(why)
    return replace(known, personas=personas, protocols=protocols, embedder=embedder.identity, without=None)


def _learn_meaning(known: Classifier, lessons: Sequence[Lesson], vectors: Mapping[str, Sequence[float]]) -> Classifier:
    pairs = [(each.label, vectors[text]) for each in lessons for text in each.exemplars]
    return replace(known, meaning=learn_meanings(known.words.labels, pairs))


def _find_stored(image: LivingImage, lessons: Sequence[Lesson], digest: str) -> LearntLessons | None:
    """Return what the image stores for these lessons; None if it is of other lessons, or not readable."""
    with image.snapshot() as root:
        record = dict(root.get(roots.ROUTER, {}))
    if record.get("format") != FORMAT or record.get("lessons") != digest:
        return None
    try:
        personas = Classifier.unpack([each.label for each in lessons], record)
        protocols = {
            each.label: Classifier.unpack([one.label for one in each.choices], record[PROTOCOLS][each.label])
            for each in lessons
            if each.protocols
        }
    except (ValueError, KeyError, zlib.error) as error:
        _log.warning("router.unread", reason=str(error))  # it is learnt anew: the codex has all of it
        return None
    embedder = (record["embedder"], record["digest"]) if personas.meaning is not None else None
    return LearntLessons(digest, personas, protocols, embedder)


async def _keep(apply: Callable[[Callable[[Any], None]], Awaitable[None]], learnt: LearntLessons) -> None:
    record: dict[str, Any] = {"format": FORMAT, "lessons": learnt.lessons}
    record |= await asyncio.to_thread(learnt.personas.pack)
    record[PROTOCOLS] = {persona: await asyncio.to_thread(each.pack) for persona, each in learnt.protocols.items()}
    if learnt.embedder is not None:
        record["embedder"], record["digest"] = learnt.embedder

    def change(root: Root) -> None:
        root[roots.ROUTER] = PersistentMapping(record)

    await apply(change)


# -- the vectors of a lesson, kept piece by piece: after a crash only the rest is embedded


#: The key of the router's record that has the pieces: {of, pieces {number of the first vector: {size, vectors}}}.
PIECES: Final = "pieces"
#: Seconds between two pieces: each is a commit.
EVERY: Final = 0.5


class SavedVectors:
    """The vectors of one lesson by one embedder (`of`: the lesson's digest, the embedder's name and digest)."""

    def __init__(self, image: LivingImage, of: Sequence[str]) -> None:
        self._image = image
        self._of = tuple(of)
        self._reached = 0
        self._at: float | None = None

    def read(self) -> list[list[float]]:
        """Return what an earlier process was given, from the first on; another lesson's or embedder's is nothing."""
        found: list[list[float]] = []
        with self._image.snapshot() as root:
            record: Mapping[str, Any] = root.get(roots.ROUTER, {})
            kept = dict(record.get(PIECES) or {})
            pieces = kept.get("pieces", {}) if tuple(kept.get("of", ())) == self._of else {}
            while len(found) in pieces:
                piece = pieces[len(found)]
                found += np.frombuffer(piece["vectors"]).reshape(-1, int(piece["size"])).tolist()
        self._reached = len(found)
        return found

    async def save(self, vectors: Sequence[Sequence[float]], now: float) -> None:
        """Keep those that came since the last piece, once it is a while ago; `now` in seconds that only ever grow."""
        self._at = now if self._at is None else self._at
        if now - self._at < EVERY or len(vectors) == self._reached:
            return
        new = vectors[self._reached :]
        size = len(new[0])
        if any(len(each) != size for each in new) or not size:
            return  # no vectors of one space: whoever learns of them says so
        packed = await asyncio.to_thread(lambda: np.array(new, np.float64).tobytes())
        piece, first = {"size": size, "vectors": packed}, self._reached

        def change(root: Root) -> None:
            record = root[roots.ROUTER]
            kept = record.get(PIECES)
            if kept is None or kept["of"] != self._of:
                kept = record[PIECES] = PersistentMapping({"of": self._of, "pieces": PersistentMapping()})
            kept["pieces"][first] = PersistentMapping(piece)

        await self._image.writer.apply(change)
        self._reached, self._at = len(vectors), now
