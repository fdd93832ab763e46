"""A node that is stopped in the middle of an effect, and wakes after its lease: PLACE IMAGE URL GRANT WHERE.

WHERE is `begun` (between the commit that begins the attempt and its checks) or `sink` (within the sink, which has found
its target and checks for the last time).
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.agency.acting import acting, patient
from tests.image.lease_clock import LEASE, Clock
from tests.image.open_image import say
from tests.waiting import a_moment

from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.releaser import Point
from batos.agency.sinks import Check, Outcome, Sink, check_nothing
from batos.objects.prototype import UvmObject
from batos.uvm import EffectSeams, Seams

#: The clock of this node's lease.
CLOCK = Clock()


def stop() -> None:
    """Stop this process until somebody wakes it, when its lease is over.

    The signal is for this thread: after one for the process, it may run for some instructions more.
    """
    say("stopping")
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    CLOCK.ahead = 2 * LEASE


@dataclass
class StoppingSink:
    """A sink that stops the process right before its last check."""

    inner: Sink
    sink: SinkClass

    def prepare(self, effect: EffectData) -> dict[str, Any]:
        """As the inner one."""
        return self.inner.prepare(effect)

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """As the inner one, with a stop."""

        def stop_and_check() -> None:
            stop()
            check()

        return self.inner.release(effect, stop_and_check)

    def find(self, effect: EffectData) -> Outcome | None:
        """As the inner one."""
        return self.inner.find(effect)


async def main(place: Path, image: str, url: str, grant: str, where: str) -> None:
    """Send one message to a capability; say when this is awake again and has tried."""

    async def hold(at: Point, effect: str) -> None:
        if at == "begun" and where == "begun":
            stop()

    def sinks(capability: UvmObject) -> Sink:
        made = patient()(capability)
        return StoppingSink(made, made.sink) if where == "sink" else made

    try:
        async with acting(
            place,
            url=url,
            hold=hold,
            seams=Seams(opening=lambda given: replace(given, lease_clock=CLOCK), effects=EffectSeams(sinks=sinks)),
            memory=False,
            image=image,
            journal="",
            lease=LEASE,
        ) as mind:
            given = ("log.txt", "A line.") if grant == "notes" else ({"text": "A line."},)
            await mind.send(grant, *given)
            while await mind.uvm.releaser.release_all():  # its background task may have it in its hands
                await a_moment()
            say("tried")
    except BaseException as error:  # told to the parent: others have its lease
        say("ended by", type(error).__name__, error)


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(Path(given[0]), *given[1:]))
