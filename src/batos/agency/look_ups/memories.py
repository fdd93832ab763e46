"""The look-up in memory: what the user has given to remember, in process and first of all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from batos.agency.look_ups.look_up import MOST_SNIPPET, Hit
from batos.agency.look_ups.web_documents import Document
from batos.image.ids import iso
from batos.memory.evidence import Passage
from batos.memory.segmentation import clip_line
from batos.protocol.errors import LookUpFailed

#: Returns the passages that are recalled for a query, the best first.
FindPassages: TypeAlias = Callable[[str], Awaitable[Sequence[Passage]]]
#: Returns the whole text of a document by its id; None where there is none of the user's.
ReadText: TypeAlias = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class MemoryLookUp:
    """The documents that a mission may recall; the address of one is its id."""

    find: FindPassages
    read: ReadText
    clock: Callable[[], datetime]

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return the documents whose passages are recalled, each once, at its best passage."""
        found: dict[str, Hit] = {}
        for each in await self.find(query):
            if each.document:
                snippet = clip_line(each.text, MOST_SNIPPET)
                found.setdefault(each.document, Hit(each.name, each.document, snippet, each.day[:10], "memory"))
        return list(found.values())[:limit]

    async def fetch(self, address: str) -> Document:
        """Return the text of a document."""
        text = self.read(address)
        if text is None:
            raise LookUpFailed(f"memory has no document {address[:80]!r}", remedy="Fetch the address of a hit.")
        return Document(address, text, address, iso(self.clock()), source="memory")
