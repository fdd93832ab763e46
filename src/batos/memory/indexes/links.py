"""Find entries by their names: titles, headings and what texts open with, resolved to the chunks that they name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import islice
from typing import Final

import numpy as np

from batos.memory.indexes import postings
from batos.memory.indexes.postings import Among, Entry
from batos.memory.mentions import names_of

KIND: Final = b"name"
#: A name of more chunks than this names none of them.
MOST_NAMED: Final = 6
#: Chunks of one name that are looked at together.
_AT_ONCE: Final = 1_024


def build(entries: Iterable[Entry]) -> bytes:
    """Return a segment of the names of entries. Of one id the last entry counts."""
    return build_named(
        {entry.id: names_of(entry.title, entry.heading, entry.text, entry.is_first) for entry in entries}
    )


def build_named(named: Mapping[int, Iterable[str]]) -> bytes:
    """Return a segment of entries that have these names, as `names_of` gives them."""
    return postings.build(KIND, {id_: dict.fromkeys(sorted(set(names)), 1) for id_, names in named.items()})


class LinkIndex:
    """The names of a memory's chunks, in memory: a text that mentions one of them is linked to what has it."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, dict[str, list[int]]] = {}
        self._ids: dict[Hashable, set[int]] = {}
        self._named: dict[str, set[int]] = {}

    def add(self, key: Hashable, segment: bytes) -> None:
        """Add a segment under a key, in the place of what had that key. Damaged bytes raise IndexDamaged."""
        read = postings.read_segment(KIND, segment)
        self.drop(key)
        words = [word.decode("utf-8", "surrogatepass") for word in read.word_list()]
        runs = np.split(read.ids[read.places], read.runs[1:-1]) if words else []
        self._parts[key] = {word: run.tolist() for word, run in zip(words, runs, strict=True)}
        self._ids[key] = set(read.ids.tolist())
        for word, ids in self._parts[key].items():
            self._named.setdefault(word, set()).update(ids)

    def drop(self, key: Hashable) -> None:
        """Leave out the segment of a key; an unknown key is no fault."""
        gone = self._parts.pop(key, {})
        self._ids.pop(key, None)
        for word in gone:
            left = {id_ for part in self._parts.values() for id_ in part.get(word, ())}
            if left:
                self._named[word] = left
            else:
                del self._named[word]

    def ids(self) -> set[int]:
        """Return the ids of all entries, also of those without a name."""
        return {id_ for ids in self._ids.values() for id_ in ids}

    def names_any(self, name: str, among: Among) -> bool:
        """Test if a name is that of a chunk among some, or of several of them."""
        ids = iter(self._named.get(name, ()))
        while several := list(islice(ids, _AT_ONCE)):
            if among(np.array(several, np.int64)).any():
                return True
        return False

    def resolve(self, name: str, among: Among) -> list[int]:
        """Return the chunks among some that a name names, in order; none where it names too many."""
        named = np.array(sorted(self._named.get(name, ())), np.int64)
        found: list[int] = named[among(named)].tolist()
        return found if len(found) <= MOST_NAMED else []
