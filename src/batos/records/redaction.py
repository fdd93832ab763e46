"""Redaction: words are taken out of whatever objects of a database hold them, under a note that outlives a crash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from BTrees.Length import Length
from persistent import Persistent
from persistent.mapping import PersistentMapping
from ZODB.blob import Blob
from ZODB.serialize import referencesf
from ZODB.utils import z64

from batos.image import roots
from batos.image.records import Approval, Archive, Attachment, Brief, Segment, Status
from batos.image.roots import AnyRoot, Root, connection_of
from batos.objects.method import Method
from batos.protocol.image_documents import ErasureLine
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
        "effects": (),
        "frame": None,
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


#: Stages: nothing of the image is erased yet; lines of logs are left, and history; history alone is left.
BEGUN, LINES, HISTORY = "begun", "lines", "history"


class Lines(NamedTuple):
    """The lines of logs that an erasure takes out: those with these words, and those about these missions."""

    words: tuple[str, ...]
    about: tuple[str, ...]


def read_erasure(root: Root) -> Mapping[str, Any] | None:
    """Return what is noted of the erasure under way; None: there is none.

    A note that no version writes, as a stranger's backup may have it, counts for none.
    """
    kept = root.get(roots.ERASURE)
    return dict(kept) if kept and _is_note(kept) else None


def _is_note(kept: Mapping[str, Any]) -> bool:
    """Test if something is a note as `begin`, `note_lines` or `note_history` leave it."""
    if not all(isinstance(kept.get(name), str) for name in ("at", "by", "stage")):
        return False
    words: Any = kept.get("words")
    words = words if isinstance(words, PersistentMapping) else {}
    lines = words.get("lines")
    has_lines = isinstance(lines, tuple) and len(lines) == len(Lines._fields)
    wanted = {BEGUN: has_lines and isinstance(words.get("request"), Mapping), LINES: has_lines, HISTORY: True}
    return wanted.get(kept["stage"], False)


def describe_erasure(root: Root) -> ErasureLine | None:
    """Return what people may know of an erasure that is under way or was cut off: none of its words."""
    kept = read_erasure(root)
    return None if kept is None else {"at": kept["at"], "by": kept["by"], "stage": kept["stage"]}


def begin_erasure(root: Root, request: Mapping[str, object], lines: Lines, at: str) -> None:
    """Note what was asked for, before anything of it is erased; within a change.

    The words are in an object of their own, which no later commit writes again.
    """
    if roots.ERASURE not in root:
        root[roots.ERASURE] = PersistentMapping()
    words: Any = PersistentMapping(request=dict(request), lines=tuple(lines))
    _replace(root, {"at": at, "by": request["by"], "stage": BEGUN, "words": words})


def note_lines(root: Root, lines: Lines) -> None:
    """Note that the records are erased, in the change that erases them, and what is still to go from logs."""
    kept = root[roots.ERASURE]
    kept["stage"] = LINES
    if lines_of(kept) != lines:
        kept["words"]["lines"] = tuple(lines)


def request_of(kept: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the request of a note whose records are still to be erased; None: they are erased."""
    return kept["words"]["request"] if kept["stage"] == BEGUN else None


def lines_of(kept: Mapping[str, Any]) -> Lines:
    """Return what is still to go from logs, by a note."""
    return Lines(*kept["words"]["lines"]) if "words" in kept else Lines((), ())


def note_history(root: Root) -> None:
    """Note that only history has the words now, and this note no longer; within a change."""
    kept = root[roots.ERASURE]
    if "words" in kept:
        kept["words"].clear()
    _replace(root, {"at": kept["at"], "by": kept["by"], "stage": HISTORY})


def end_erasure(root: Root) -> None:
    """Note that nothing is left to do; within a change."""
    kept = root.get(roots.ERASURE)
    if kept:
        if "words" in kept:
            kept["words"].clear()
        kept.clear()


def oids_of(root: Root) -> frozenset[bytes]:
    """Return the oids of the note, which has words for a while; none if there never was one."""
    kept = root.get(roots.ERASURE)
    found = () if kept is None else (kept, *(each for each in kept.values() if isinstance(each, PersistentMapping)))
    return frozenset(each._p_oid for each in found if each._p_oid is not None)


def _replace(root: Root, told: Mapping[str, object]) -> None:
    kept = root[roots.ERASURE]
    kept.clear()
    kept.update(told)
