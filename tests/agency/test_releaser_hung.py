"""A program that takes what is posted and never answers holds up neither the end of a process nor other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting, acting
from tests.agency.http_target import Target, listening
from tests.image.servers import zeo_server

from batos.agency.http_sink import HttpSink
from batos.agency.sinks import Sink
from batos.objects.prototype import UvmObject, own_slots
from batos.uvm import EffectSeams, Seams

#: Posts that wait, the seconds that each takes, and those in which an ending process begins more.
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


async def stage(mind: Acting, target: Target) -> None:
    """Stage all posts, and wait until the first was begun."""
    async with mind.uvm.releaser._releasing:
        for number in range(POSTS):
            await mind.send("inbox", {"n": number})
    assert await asyncio.to_thread(target.heard.wait, 20)


async def test_the_end_of_a_process_waits_for_no_program_for_long(tmp_path: Path, hung: Target) -> None:
    """Posts that it has not begun are staged still, and happen after the next start."""
    async with acting(tmp_path, url=hung.url, memory=False, seams=SEAMS) as mind:
        await stage(mind, hung)
    assert len(hung.asked) <= POSTS // 2
    hung.answering.set()
    async with acting(tmp_path, memory=False, seams=SEAMS) as mind:
        assert await mind.states() == ["released"] * POSTS
        assert len(hung.done) == POSTS


async def test_between_two_effects_another_node_may_publish(tmp_path: Path, hung: Target) -> None:
    """Its own change waits for one post, not for all that wait."""
    with zeo_server(tmp_path) as port:
        shared: dict[str, Any] = {"image": f"zeo://127.0.0.1:{port}", "journal": "", "lease": 2.0, "memory": False}
        first = acting(tmp_path / "first", url=hung.url, seams=SEAMS, **shared)
        async with first as mind, acting(tmp_path / "second", **shared) as other:
            await stage(mind, hung)
            await other.ask("grants_add", kind="http", target=hung.url, name="another", user="tester")
            assert len(hung.asked) <= POSTS // 2
