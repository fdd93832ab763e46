"""Keeps what a mission's question was embedded to: written to the journal at once, read there by later attempts."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from batos.image.ids import iso
from batos.inference.embedder import OPTIONS, Embedder, clip
from batos.inference.journal import Journal, Record
from batos.inference.journaled_requests import embedding_key

#: The place of the route's vector in the cycle.
PATH: Final = "route#0"
#: The numbers of a vector as the journal has them, which is how precise a daemon's vectors are.
_STORED: Final = "<f4"


@dataclass(frozen=True, slots=True)
class JournaledVectors:
    """The vectors of a mission and of those whose answers it may use; `missions` begins with the mission itself."""

    journal: Journal
    missions: Sequence[str]
    clock: Callable[[], datetime]

    def find(self, embedder: Embedder, text: str) -> list[float] | None:
        """Return the vector that the journal has for this text of this embedder; None: it has none."""
        response = self._response(embedding_key(embedder.digest, clip(text), OPTIONS, PATH))
        return None if response is None else _unpack(str(response["vector"]))

    def find_all(self, embedder: Embedder, texts: Sequence[str], path: str) -> list[list[float]] | None:
        """Return the vectors that the journal has for these texts at this path; None: it has none."""
        response = self._response(embedding_key(embedder.digest, _in_lines(texts), OPTIONS, path))
        return None if response is None else [_unpack(str(packed)) for packed in response["vectors"]]

    def _response(self, key: str) -> Mapping[str, Any] | None:
        found = (each for each in self.journal.sound(self.missions) if each.key == key and each.state == "done")
        return next((each.response for each in found), None)

    async def pay(self, embedder: Embedder, text: str, seconds: float) -> list[float]:
        """Return the vector as it stands in the journal when this returns. Unembedded: there is none."""
        began = iso(self.clock())
        packed = _pack(await embedder.vector(text, seconds))
        await self._write(embedder, clip(text), PATH, began, {"vector": packed})
        return _unpack(packed)

    async def keep_all(
        self, embedder: Embedder, texts: Sequence[str], path: str, pay: Callable[[], Awaitable[list[list[float]]]]
    ) -> list[list[float]]:
        """Return the vectors of texts, which `pay` gets, as they stand in the journal, in one entry, when this returns.

        Raises: Unembedded: there are none.
        """
        began = iso(self.clock())
        packed = [_pack(vector) for vector in await pay()]
        await self._write(embedder, _in_lines(texts), path, began, {"vectors": packed})
        return [_unpack(each) for each in packed]

    async def _write(self, embedder: Embedder, text: str, path: str, began: str, reply: Mapping[str, object]) -> None:
        record = Record(
            embedding_key(embedder.digest, text, OPTIONS, path),
            self.missions[0],
            path,
            embedder.model,
            embedder.digest,
            {"input": text, "options": dict(OPTIONS)},
            "done",
            began,
            iso(self.clock()),
            reply,
        )
        await self.journal.write(record)


def _in_lines(texts: Sequence[str]) -> str:
    """Return texts a line each, as the journal has them."""
    return "\n".join(" ".join(clip(text).split()) for text in texts)


def _pack(vector: Sequence[float]) -> str:
    """Return a vector as base64 of its numbers."""
    return base64.b64encode(np.array(vector, _STORED).tobytes()).decode()


def _unpack(packed: str) -> list[float]:
    numbers: list[float] = np.frombuffer(base64.b64decode(packed), _STORED).tolist()
    return numbers
