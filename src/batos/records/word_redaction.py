"""Redaction: words are taken out of whatever objects of a database hold them, each kind of object in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from BTrees.Length import Length
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.serialize import referencesf
from ZODB.utils import z64

from batos.image import roots
from batos.image.records import Approval, Archive, Attachment, Brief, Segment, Status
from batos.image.roots import AnyRoot, Root, connection_of
from batos.objects.method import Method
from batos.protocol.method_documents import CandidateDocument
from batos.records import methods
from batos.records.erased_words import ErasedWords

#: Kinds of records that are taken out whole and never changed: a digest or an index speaks of their bytes, or they have
#: the kernel's own words beside those of a person.
_WHOLE: Final = (Archive, Attachment, Blob, Brief, Length, Segment, Status)
#: The keys by which a line about the outcome of an effect is known: a chain is over it, and it has no words.
_CHAINED: Final = frozenset({"fingerprint", "prev", "attempts"})


def find_holding(root: AnyRoot, words: ErasedWords) -> Iterator[bytes]:
    """Yield the oids of the objects of a database, as far as they can be reached, whose records have the words.

    Records are read as bytes: nothing is loaded for it.
    """
    storage = connection_of(root)._storage
    seen, left = {z64}, [z64]
    while left:
        oid = left.pop()
        record, _ = storage.load(oid)
        if words.are_in_bytes(record):
            yield oid
        for each in referencesf(record):
            if each not in seen:
                seen.add(each)
                left.append(each)


def redact_objects(root: AnyRoot, oids: Iterable[bytes], words: ErasedWords, at: str) -> int:
    """Take words out of objects, within a change; return how many were changed.

    Files, archives and parts of indexes stay as they are: they go with what they belong to.
    """
    changed = 0
    for oid in oids:
        changed += _redact_object(root, connection_of(root).get(oid), words, at)
    return changed


def _redact_object(root: AnyRoot, found: Persistent, words: ErasedWords, at: str) -> bool:
    if isinstance(found, _WHOLE):
        return False
    if isinstance(found, Method):
        if not any(words.are_in_value(value) for value in found.as_dict().values()):
            return False
        methods.erase(found, words, at)
        return True
    if type(found).__module__.startswith("BTrees."):
        return _redact_tree(found, words)
    if isinstance(found, Approval) and words.are_in_value(found.candidate):
        withdraw_approval(cast("Root", root), found, at)
    found._p_activate()
    state = found.__getstate__()
    redacted = words.redact_value(state)
    if redacted == state:
        return False
    found.__setstate__(redacted)
    found._p_changed = True
    return True


def _redact_tree(tree: Any, words: ErasedWords) -> bool:
    """Take words out of the values of a tree, or of a part of one; keys stay: others name the same things by them."""
    if not hasattr(tree, "items"):
        return False
    changed = False
    for key, value in list(tree.items()):
        if isinstance(value, dict) and value.keys() >= _CHAINED:
            continue
        redacted = words.redact_value(value)
        if redacted is not value:
            tree[key] = redacted
            changed = True
    return changed


def withdraw_approval(root: Root, approval: Approval, at: str) -> None:
    """Take the source out of a question to a person; one that waits lapses: nobody can say yes to what is gone."""
    before: dict[str, Any] = {**approval.candidate}
    nothing: dict[str, object] = {
        "source": methods.NO_SOURCE,
        "checks": (),
        "methods": [],
        "former": None,
        "wish": None,
        "forgets": (),
    }
    approval.candidate = cast("CandidateDocument", {**before, **nothing})
    if approval.word == "asked":
        approval.become("outdated", at, None, "its words were erased")
        root[roots.AWAITED].discard(approval.name)


def drop_keys(root: Root, words: ErasedWords) -> int:
    """Forget the idempotency keys that have the words; return how many went."""
    repeats = root[roots.REPEATS]
    gone = [key for key in repeats if words.are_in(key)]
    for key in gone:
        del repeats[key]
    return len(gone)
