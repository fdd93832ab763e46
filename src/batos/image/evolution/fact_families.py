"""Format 3: a fact names the family of its key, by which it is taken off the list of claims in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots

#: The list of claims among the records of memories, and what its keys of facts begin with.
_CLAIMS, _FAMILIES = "claims", "k\0"


def find_facts(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the facts behind a key of the list of claims that name no family, each with its change."""
    documents = root[roots.DOCUMENTS]
    for key, name, family in _families_of_facts(root, after):
        if name in documents and "family" not in own_slots(documents[name]):
            yield key, partial(_name_family, documents[name], family)


def _families_of_facts(root: Root, after: str) -> Iterator[tuple[str, str, str]]:
    claims = root[roots.MEMORIES].get(_CLAIMS)
    for key, name in () if claims is None else claims.items(max(after, _FAMILIES), excludemin=after > _FAMILIES):
        if not key.startswith(_FAMILIES):
            return
        yield key, name, key.split("\0")[3]


def _name_family(document: UvmObject, family: str) -> None:
    document.family = family
