"""The codex's examples of the questions of each persona and each key protocol, and the digest of them all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from batos.genesis.codex.codex import Persona

#: The label of the questions of a persona that no protocol of it is meant for.
ORDINARY: Final = ""


@dataclass(frozen=True, slots=True)
class Lesson:
    """The codex's examples of the questions of a persona, or of one of its `protocols` (`label` is its slot)."""

    label: str
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]
    protocols: tuple[Lesson, ...] = ()

    @property
    def questions(self) -> tuple[str, ...]:
        """Return all exemplars once: the persona's own, then those of its protocols."""
        return tuple(dict.fromkeys((*self.exemplars, *self._protocol_exemplars)))

    @property
    def choices(self) -> tuple[Lesson, ...]:
        """Return what the choice among the protocols is learnt from: theirs, and the persona's ordinary questions."""
        meant = set(self._protocol_exemplars)
        ordinary = tuple(text for text in self.exemplars if text not in meant)
        return (*self.protocols, Lesson(ORDINARY, (), ordinary)) if self.protocols else ()

    @property
    def _protocol_exemplars(self) -> tuple[str, ...]:
        return tuple(text for each in self.protocols for text in each.exemplars)


def lessons_of(personas: Iterable[Persona]) -> tuple[Lesson, ...]:
    """Return the lessons of a codex's personas; a protocol without examples is chosen by its conditions alone."""
    found: list[Lesson] = []
    for each in personas:
        protocols = (Lesson(one.slot, one.triggers, one.exemplars) for one in each.protocols if one.by_meaning)
        found.append(Lesson(each.name, each.triggers, each.exemplars, tuple(protocols)))
    return tuple(found)


def digest_of(lessons: Sequence[Lesson]) -> str:
    """Return the sha256 (hex) of everything that is learnt from: other changes of the codex need no training."""
    written = json.dumps([_plain(each) for each in lessons], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(lesson: Lesson) -> list[object]:
    return [lesson.label, lesson.triggers, lesson.exemplars, [_plain(each) for each in lesson.protocols]]
