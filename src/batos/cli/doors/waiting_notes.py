"""Notes beside an image: a process that waits for it says so, and one that has it only to tidy up gives it back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from batos.client.wire import server_file

#: Seconds between two looks for a process that waits. That process makes a file, and without a library for each
#: system nothing tells of a new file.
_PAUSE: Final = 0.2


@contextmanager
def announce_wait(image: Path | None) -> Iterator[None]:
    """Say beside the image's file that this process waits for it; one that is no file is waited for in silence."""
    mine = None if image is None else Path(f"{image}.wanted-{os.getpid()}")
    if mine is not None:
        with suppress(OSError):  # nobody needs to know
            mine.write_text(server_file.birth_time(os.getpid()) or "", encoding="utf-8")
    try:
        yield
    finally:
        if mine is not None:
            with suppress(OSError):
                mine.unlink(missing_ok=True)


def is_wanted(image: Path) -> bool:
    """Say whether a process waits for the image; remove what an ended one left."""
    found = False
    for each in image.parent.glob(f"{image.name}.wanted-*"):
        pid = each.name.rpartition("-")[2]
        with suppress(OSError):
            born = server_file.birth_time(int(pid)) if pid.isdecimal() else None
            # The file is empty for the moment between being made and being written.
            if born is None or each.read_text(encoding="utf-8") not in ("", born):
                each.unlink()
            else:
                found = found or int(pid) != os.getpid()
    return found


async def wait_until_wanted(image: Path) -> None:
    """Return when another process waits for the image."""
    while True:
        if await asyncio.to_thread(is_wanted, image):
            return
        await asyncio.sleep(_PAUSE)
