"""What makes a test of missions hold at any pace: a clock that is moved, a lease's time that is let pass, patience."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from tests.image.lease_clock import LEASE, Clock
from tests.waiting import HANG, until

from batos.image import roots
from batos.image.ids import iso, utc_now
from batos.image.image import LivingImage
from batos.uvm import UVM

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


class RacingClock(Clock):
    """The clock of a node's lease: as any, until it races. Then each reading is a thirtieth of the lease later."""

    async def outlive_others(self, image: LivingImage) -> None:
        """Let the time of the lease pass for a node, until no other node has one. The others are dead."""
        self.step = LEASE / 30
        await until(lambda: _is_alone(image), "the end of the others' leases")
        self.step = 0.0


def _is_alone(image: LivingImage) -> bool:
    with image.snapshot() as root:
        return all(node["ended"] for fence, node in root[roots.NODES].items() if fence != image.fence)
