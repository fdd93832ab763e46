"""Retention of the journal: the words of calls go when their mission ended long ago; their fields and digests stay.

A mission that has not ended keeps its words, and so does each one that it may be served from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import JournalRoot, Root
from batos.image.transactions import snapshot
from batos.inference.journal import MISSIONS, MissionLog

#: Logs that one commit changes: the writers of missions wait for it.
BATCH: Final = 8


async def erase_old_words(image: LivingImage, before: datetime) -> int:
    """Erase the words of all calls whose mission ended before a moment; return how many calls they were."""
    due = await asyncio.to_thread(list_due, image, before)
    erased = 0
    for start in range(0, len(due), BATCH):
        erased += await image.journal_writer.apply(partial(_erase_logs, names=due[start : start + BATCH]))
    return erased


def list_due(image: LivingImage, before: datetime) -> list[str]:
    """Return the logs whose words are to go."""
    with image.snapshot() as root, snapshot(image.journal_db) as journal:
        logs: Mapping[str, MissionLog] = journal.get(MISSIONS) or {}
        held = set(_held_logs(root))
        return [
            name for name, log in logs.items() if name not in held and log.has_words and _ended(root, name, log, before)
        ]


def _held_logs(root: Root) -> Iterator[str]:
    """Yield the logs of missions that have not ended, and of those that these may be served from, each once.

    A hostile mind may have missions that come from each other in a circle.
    """
    seen: set[str] = set()
    for name in root[roots.UNFOLDED]:
        held: str | None = name
        while held is not None and held not in seen:
            seen.add(held)
            yield held
            record = roots.find_record(root, held)
            held = None if record is None else record.brief.value.get("ancestor")


def _ended(root: Root, name: str, log: MissionLog, before: datetime) -> bool:
    """Tell whether a mission ended before a moment; a log of none (a dream, a generation) ends with its last call."""
    record = roots.find_record(root, name)
    if record is not None:
        return datetime.fromisoformat(record.status.at) < before
    moments = [each.fields["ended"] or each.fields["started"] for each in log.entries]
    return bool(moments) and max(map(datetime.fromisoformat, moments)) < before


def _erase_logs(root: JournalRoot, *, names: Sequence[str]) -> int:
    logs: Any = root.get(MISSIONS) or {}
    return sum(logs[name].erase_words() for name in names if name in logs)
