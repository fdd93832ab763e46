"""The end of a server that a verb started: when nothing is at work for a while, or when its home is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from batos.agency.records import staged_effects
from batos.image import roots
from batos.image.roots import Root
from batos.records import unfinished_erasure
from batos.server.zmq.server import Server
from batos.uvm import UVM

#: Seconds between two looks, at most.
_LOOK: Final = 5.0


@dataclass(frozen=True, slots=True)
class IdleEnd:
    """Waits for the end of a server's work. `is_home` tests if the home still has the server's own note."""

    uvm: UVM
    server: Server
    is_home: Callable[[], bool]
    seconds: float

    async def wait(self) -> None:
        """Return when the server has had nothing to do for so many seconds, or its home is gone."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while await asyncio.to_thread(self.is_home):
            if self.server.under_way or self.server.is_watched or not self.uvm.workers.is_idle():
                since = loop.time()
            since = max(since, self.server.heard)
            if loop.time() - since >= self.seconds:
                if not await asyncio.to_thread(self._has_work):
                    return
                since = loop.time()
            await asyncio.sleep(min(self.seconds / 10, _LOOK))

    def _has_work(self) -> bool:
        with self.uvm.image.snapshot() as root:
            return has_work(root)


def has_work(root: Root) -> bool:
    """Test if something waits in the image: a mission, a method that is to be made, an effect or an erasure."""
    return bool(
        roots.waiting_count(root)
        or root[roots.TALLY].get("running")
        or len(root[roots.WISHES])
        or staged_effects.list_waiting(root)
        or unfinished_erasure.describe(root)
    )
