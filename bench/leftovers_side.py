"""Processes of a hostile server that are still there, found by a word of their command lines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

#: Seconds after which what is still there is left over.
PATIENCE = 15.0


def list_left(word: str) -> list[int]:
    """Return the processes that run and have a word in their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_dead = (place / "stat").read_text("latin-1").rpartition(")")[2].split()[0] == "Z"
            if word.encode() in (place / "cmdline").read_bytes() and not is_dead:
                found.append(int(place.name))
    return found


async def none_left(word: str) -> bool:
    """Return if all of them go, within a patience that only those need that are left over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while list_left(word):  # noqa: ASYNC110 - nothing tells of the end of a stranger's process
                await asyncio.sleep(0.02)
    return not list_left(word)
