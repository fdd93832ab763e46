"""What the codex says of each persona's questions, and the digest by which what was learnt of it is found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lesson:
    """What the codex says of a persona's questions."""

    persona: str
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]


def digest_of(lessons: Sequence[Lesson]) -> str:
    """sha256 (hex) over all that is learnt from: other texts of the codex may change without learning anew."""
    written = json.dumps(
        [(each.persona, each.triggers, each.exemplars) for each in lessons], ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
