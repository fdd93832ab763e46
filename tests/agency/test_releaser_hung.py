"""A program that takes what is posted and never answers holds up neither the end of a process nor other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import LASTING, Acting, acting, by_hand
from tests.agency.http_target import Target, listening
from tests.image.servers import zeo_server, zeo_uri
from tests.waiting import HANG, until

from batos.agency.http_sink import HttpSink
from batos.agency.releaser import Point
from batos.agency.sinks import Sink
from batos.image.nodes.lease import NodeLease
from batos.objects.prototype import UvmObject, own_slots
from batos.uvm import EffectSeams, Seams

#: Posts that wait, the seconds after which each is cut, and those in which an ending process begins more.
POSTS, TIMEOUT, LAST = 12, 0.3, 0.5

#: Opening is a burst of CPU.
pytestmark = pytest.mark.blocks_loop


def impatient(capability: UvmObject) -> Sink:
    """A sink that waits for a short while."""
    return HttpSink(own_slots(capability)["target"], "keyed", TIMEOUT)


SEAMS = Seams(effects=EffectSeams(sinks=impatient, last=LAST))


@pytest.fixture
def hung() -> Iterator[Target]:
    """A program that never answers, until it is told to."""
    with listening() as found:
        found.answering.clear()
        yield found


def lease_of(mind: Acting) -> NodeLease:
    """The lease of a node."""
    lease = mind.uvm.image.lease
    assert lease is not None
    return lease


async def stage(mind: Acting, target: Target) -> None:
    """Stage all posts at a node that publishes, and wait until the first was begun."""
    async with mind.uvm.releaser._releasing:
        for number in range(POSTS):
            await mind.send("inbox", {"n": number})
        async with mind.uvm.image.publishing.here():
            pass
    assert await asyncio.to_thread(target.heard.wait, HANG)


async def test_the_end_of_a_process_waits_for_no_program_for_long(tmp_path: Path, hung: Target) -> None:
    """Posts that it has not begun are staged still, and happen after the next start."""
    looked_at: set[str] = set()

    async def hold(point: Point, effect: str) -> None:
        looked_at.add(effect)
        if point == "staged" and len(looked_at) == 2:
            await until(mind.uvm.releaser._is_over, "the end of the time in which it begins more")

    async with acting(tmp_path, url=hung.url, hold=hold, memory=False, seams=SEAMS) as mind:
        await stage(mind, hung)
    assert len(hung.asked) == 2
    hung.answering.set()
    async with acting(tmp_path, memory=False) as mind:
        assert await mind.states() == ["released"] * POSTS
        assert len(hung.done) == POSTS


async def test_between_two_effects_another_node_may_publish(tmp_path: Path, hung: Target) -> None:
    """Its own change waits for the post that is being done when it asks, not for all that wait."""
    looked_at: set[str] = set()
    has_published = asyncio.Event()

    async def hold(point: Point, effect: str) -> None:
        looked_at.add(effect)
        if point == "staged" and len(looked_at) == 2:
            await until(lambda: lease_of(mind).is_wanted or has_published.is_set(), "the other node that asks")
        elif point == "staged" and len(looked_at) > 2:
            await has_published.wait()

    with zeo_server(tmp_path) as port:
        shared: dict[str, Any] = {"image": zeo_uri(port), "journal": "", "lease": LASTING, "memory": False}
        first = acting(tmp_path / "first", url=hung.url, hold=hold, seams=SEAMS, **shared)
        second = acting(tmp_path / "second", hold=by_hand(), seams=SEAMS, **shared)
        async with first as mind, second as other:
            await stage(mind, hung)
            try:
                async with asyncio.timeout(HANG):
                    await other.ask("grants_add", kind="http", target=hung.url, name="another", user="tester")
                assert len(hung.asked) <= 2
            finally:
                has_published.set()
