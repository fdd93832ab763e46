"""Format 3: a fact names the family of its key, by which it is taken off the list of claims in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from batos.image import memory_claims, roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots


def find_facts(root: Root, after: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the facts behind a key of the list of claims that name no family, each with its change."""
    documents = root[roots.DOCUMENTS]
    for key, name, family in memory_claims.families_of_facts(root, after):
        if name in documents and "family" not in own_slots(documents[name]):
            yield key, partial(_name_family, documents[name], family)


def _name_family(document: UvmObject, family: str) -> None:
    document.family = family
