"""Vectors of a lesson, kept piece by piece while the router learns: after a crash only the rest is embedded."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import Root

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
                vectors, size = array("d", piece["vectors"]), int(piece["size"])
                found += [vectors[start : start + size].tolist() for start in range(0, len(vectors), size)]
        self._reached = len(found)
        return found

    async def save(self, vectors: Sequence[Sequence[float]], now: float) -> None:
        """Keep those that came since the last piece, once it is a while ago; `now` in seconds that only ever grow."""
        if self._at is None:
            self._at = now
        if now - self._at < EVERY or len(vectors) == self._reached:
            return
        new = vectors[self._reached :]
        size = len(new[0])
        if any(len(each) != size for each in new) or not size:
            return  # no vectors of one space: whoever learns of them says so
        packed = await asyncio.to_thread(lambda: array("d", [value for each in new for value in each]).tobytes())
        piece, first = {"size": size, "vectors": packed}, self._reached

        def change(root: Root) -> None:
            record = root[roots.ROUTER]
            kept = record.get(PIECES)
            if kept is None or kept["of"] != self._of:
                kept = record[PIECES] = PersistentMapping({"of": self._of, "pieces": PersistentMapping()})
            kept["pieces"][first] = PersistentMapping(piece)

        await self._image.writer.apply(change)
        self._reached, self._at = len(vectors), now
