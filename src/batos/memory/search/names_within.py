"""Resolves names to the chunks within reach: those that have a name, and those that say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from batos.memory.indexes.entries import Numbers
from batos.memory.indexes.links import MOST_NAMED, LinkIndex
from batos.memory.indexes.text import TextIndex
from batos.memory.mentions import Mention, key_of, mentions, names_of
from batos.objects.prototype import UvmObject, own_slots

#: A name that more than one in so many parts says joins none of them.
FEW: Final = 10


class ChunksWithin:
    """The chunks that some spans hold, by their numbers; uncommitted ones count from the end."""

    def __init__(self, spans: tuple[Numbers, Numbers], others: Sequence[bool]) -> None:
        firsts, lasts = spans
        self._held: NDArray[np.bool_] = np.zeros((int(lasts.max()) if len(lasts) else 0) + 1 + len(others), bool)
        room = len(self._held) + 1
        begun = np.cumsum(np.bincount(firsts, minlength=room))
        self._held |= (begun > np.cumsum(np.bincount(lasts + 1, minlength=room)))[:-1]
        for place, held in enumerate(others, start=1):
            self._held[-place] = held

    @property
    def count(self) -> int:
        """Return the number of chunks."""
        return int(np.count_nonzero(self._held))

    def mask(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Tell of each of some numbers if it is within."""
        known = numbers < len(self._held)
        return self._held[numbers] if known.all() else self._held[np.where(known, numbers, 0)] & known


class NamesWithin:
    """The names of chunks within reach, for one search: a name that only others have is none."""

    def __init__(
        self, index: LinkIndex, words: TextIndex, within: ChunksWithin, document_of: Callable[[int], UvmObject | None]
    ) -> None:
        self._index = index
        self._within = within
        self._document_of = document_of
        self._is_named = cache(partial(index.names_any, among=within.mask))
        self._say = cache(partial(words.holding, among=within.mask))
        self._most_sharing = min(MOST_NAMED, within.count // FEW)

    def __contains__(self, name: object) -> bool:
        return self._is_named(str(name))

    def mentions(self, text: str) -> Sequence[Mention]:
        """Return the names that a text mentions."""
        return list(mentions(text, self))

    def resolve(self, name: str) -> Sequence[int]:
        """Return the parts of a name."""
        return self._index.resolve(name, self._within.mask)

    def beside(self, name: str, part: int) -> Sequence[int]:
        """Return the parts of a name but this one, and those that have it for the title of the same document."""
        others = [each for each in self.resolve(name) if each != part]
        own = self._document_of(part) if others else None
        if own is None or key_of(own_slots(own)["title"]) != name:
            return others
        return [each for each in others if self._document_of(each) is not own]

    def sharing(self, name: str, part: int) -> Sequence[int]:
        """Return the parts of other documents that say a name; none where too many do."""
        own, ids = self._document_of(part), self._say(name)
        if own is not None and part > 0:
            first, last = own_slots(own)["chunks"]
            ids = ids[(ids < first) | (ids > last)]
        others = [] if len(ids) > 2 * self._most_sharing else ids.tolist()
        if part < 0:  # uncommitted: its document has no range
            others = [each for each in others if each > 0 or self._document_of(each) is not own]
        return others if len(others) <= self._most_sharing else ()

    def count(self, name: str) -> int:
        """Return the number of parts that say a name."""
        return len(self._say(name))

    def title(self, part: int) -> str:
        """Return the title of a part's document as names are compared, "" for none that tells anything."""
        own = self._document_of(part)
        title = "" if own is None else own_slots(own)["title"]
        return key if (key := key_of(title)) in names_of(title, "", "", True) else ""
