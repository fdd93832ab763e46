"""Vectors of sentences for a mission: from its journal, else from the embedder, and written to the journal at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from batos.inference.embedder import Embedder, Unembedded
from batos.routing.question_vectors import JournaledVectors
from batos.routing.router import EMBED_SECONDS, Router

#: Texts of one request.
MOST_TEXTS: Final = 32

_log = structlog.get_logger("batos.vectors")


@dataclass(slots=True)
class MissionVectors:
    """The vectors of one mission's sentences. After a failure of the embedder the mission asks for no more.

    `on_paid` is called for each request to the embedder.
    """

    router: Router
    journaled: JournaledVectors
    on_paid: Callable[[], None]
    _failed: bool = False

    @property
    def digest(self) -> str:
        """Return the digest of the embedder; "" if there is none."""
        return self.router.embedder.digest if self.router.embedder is not None else ""

    async def vectors(self, texts: Sequence[str], path: str) -> Sequence[Sequence[float]] | None:
        """Return the vectors of at most MOST_TEXTS texts, or None where no embedder gives any.

        Vectors that the journal has for `path` are read from there, so that a later attempt finds the same.
        """
        embedder = self.router.embedder
        if embedder is None or not texts or len(texts) > MOST_TEXTS:
            return None
        paid = self.journaled.find_all(embedder, texts, path)
        if paid is not None or self._failed or not self.router.may_embed:
            return paid
        try:
            return await self.journaled.keep_all(embedder, texts, path, lambda: self._pay(embedder, texts))
        except (Unembedded, ValueError) as error:
            self._failed = True
            self.router.leave_alone()
            _log.warning("sentences.words_alone", model=embedder.model, reason=str(error))
            return None

    async def _pay(self, embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if self.router.known.find(embedder.digest, text) is None]
        if new:
            self.on_paid()
            for text, vector in zip(new, await embedder.vectors_within(new, EMBED_SECONDS), strict=True):
                self.router.known.keep(embedder.digest, text, vector)
        found = [self.router.known.find(embedder.digest, text) for text in texts]
        return [vector for vector in found if vector is not None]
