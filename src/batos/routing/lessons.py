"""The codex's examples of each persona's questions, and the digest by which their training is found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lesson:
    """The codex's examples of a persona's questions."""

    persona: str
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]


def digest_of(lessons: Sequence[Lesson]) -> str:
    """Return the sha256 (hex) of everything that is learnt from, so that other changes of the codex need no
    training.
    """
    written = json.dumps(
        [(each.persona, each.triggers, each.exemplars) for each in lessons], ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
