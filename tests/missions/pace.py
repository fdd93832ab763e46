"""What makes a test of missions hold at any pace: a clock that is moved, a lease's time that is let pass, patience."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from tests.waiting import HANG, until

from batos.image import roots
from batos.image.ids import iso, utc_now
from batos.image.image import LivingImage
from batos.image.lease import read_clock
from batos.uvm import UVM

#: Seconds of a lease that no node loses because its process waits for the machine: the most that may be set.
LEASE: Final = 600.0
#: Settings of a mind whose daemon may take as long as it likes.
PATIENT: Final[dict[str, Any]] = {
    "connect_seconds": HANG, "first_token_seconds": HANG, "between_tokens_seconds": HANG,
}  # fmt: skip


class MovedClock:
    """The clock of a mind, which a test sets forward; none of its `deadline`s has passed before."""

    def __init__(self) -> None:
        self.deadline = iso(utc_now() + timedelta(hours=1))
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        """The time."""
        return utc_now() + self._ahead

    def pass_deadline(self) -> None:
        """Let the deadline pass."""
        self._ahead = timedelta(hours=2)

    def ring(self, uvm: UVM, *missions: str) -> None:
        """Let it pass for missions of a mind, whose timers would look at the clock again after a minute."""
        self.pass_deadline()
        for mission in missions:
            uvm.workers.alarms.set(mission, self.deadline)


class RacingClock:
    """The clock of a node's lease: as any, until it races. Then each reading is a thirtieth of the lease later."""

    def __init__(self) -> None:
        self._races, self._ahead = False, 0.0

    def __call__(self) -> float:
        """The seconds."""
        self._ahead += LEASE / 30 if self._races else 0.0
        return read_clock() + self._ahead

    async def outlive_others(self, image: LivingImage) -> None:
        """Let the time of the lease pass for a node, until no other node has one. The others are dead."""
        self._races = True
        await until(lambda: _is_alone(image), "the end of the others' leases")
        self._races = False


def _is_alone(image: LivingImage) -> bool:
    with image.snapshot() as root:
        return all(node["ended"] for fence, node in root[roots.NODES].items() if fence != image.fence)
