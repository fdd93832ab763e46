"""A note in the image about the erasure under way, by which one that was cut off is finished by the next process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.roots import Root
from batos.protocol.image_documents import ErasureLine

#: Stages: nothing of the image is erased yet; lines of logs are left, and history; history alone is left.
BEGUN, LINES, HISTORY = "begun", "lines", "history"


class Lines(NamedTuple):
    """The lines of logs that an erasure takes out: those with these words, and those about these missions."""

    words: tuple[str, ...]
    about: tuple[str, ...]


def read(root: Root) -> Mapping[str, Any] | None:
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


def describe(root: Root) -> ErasureLine | None:
    """Return what people may know of an erasure that is under way or was cut off: none of its words."""
    kept = read(root)
    return None if kept is None else {"at": kept["at"], "by": kept["by"], "stage": kept["stage"]}


def begin(root: Root, request: Mapping[str, object], lines: Lines, at: str) -> None:
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


def end(root: Root) -> None:
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
