"""Leases that no node loses by being slow, and a clock that ends them."""

from __future__ import annotations

from collections.abc import Callable

from tests.waiting import until

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.nodes.lease import read_clock

#: Seconds of a lease, the most that there are: no node loses it by being slow, and none renews it while a test runs.
LEASE = 600.0


class Clock:
    """The clock of a node's lease, which may run ahead at each look."""

    def __init__(self) -> None:
        self.ahead, self.step = 0.0, 0.0
        #: Called at each look.
        self.looked: Callable[[], object] = int

    def __call__(self) -> float:
        self.looked()
        self.ahead += self.step
        return read_clock() + self.ahead


async def end_of(fence: int, image: LivingImage, clock: Clock) -> None:
    """Let a node find that another has been silent for a lease: its clock runs ahead."""

    def has_ended() -> bool:
        with image.snapshot() as root:
            return bool(root[roots.NODES][fence]["ended"])

    clock.step = LEASE / 8
    await until(has_ended, "the end of the lease")
    clock.step = 0.0
