"""Several nodes have an image on a server; one that dies or sleeps loses its lease, and a sleeper commits nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from tests.image.lease_clock import LEASE, Clock, end_of
from tests.image.open_image import answer, brief, dump, heard, interpreter, open_image, thought_in
from tests.image.servers import zeo_server
from tests.waiting import a_moment

from batos.image import roots
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.nodes.lease import NodeLease
from batos.image.writer import Publisher
from batos.protocol.errors import ConfigError, ImageError, Refused


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """An image and a journal on a ZEO server, or on PostgreSQL where a test says so."""
    if getattr(request, "param", "zeo") == "zeo":
        with zeo_server(tmp_path) as port:
            yield f"zeo://127.0.0.1:{port}", ""
        return
    yield request.getfixturevalue("databases")


def node(places: tuple[str, str], **also: Any) -> Any:
    """A node of an image."""
    image, journal = places
    return open_image(None, **{"image": image, "journal": journal, "lease": LEASE, **also})


@pytest.fixture
async def two(places: tuple[str, str]) -> AsyncIterator[tuple[LivingImage, LivingImage]]:
    """Two nodes in this process; the first publishes."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(node(places, node="first"))
        yield first, await stack.enter_async_context(node(places, node="second"))


async def think(image: LivingImage, mission: str) -> None:
    """Commit an answer of a mission that runs."""
    with image.transaction(mission) as thinking:
        await thinking.commit(answer(thought_in(image, thinking, mission)))


async def told(sleeper: subprocess.Popen[str]) -> str:
    """What came of the next try; what is logged between is left out."""
    while True:
        line = await heard(sleeper)
        if line.startswith(("refused", "written")):
            return line


@pytest.mark.parametrize("places", ["zeo", "postgres"], indirect=True)
async def test_a_sleeper_commits_nothing(places: tuple[str, str]) -> None:
    """It is stopped, and loses its lease; awake, each of its writers is refused."""
    clock = Clock()
    async with node(places, lease_clock=clock) as image:
        with interpreter("script_node.py", LEASE, *places) as sleeper:
            mission = await heard(sleeper)
            with image.snapshot() as root:
                fence = roots.mission_record(root, mission).status.claim
            os.kill(sleeper.pid, signal.SIGSTOP)
            await end_of(fence, image, clock)
            theirs = await image.accept(brief())
            before = dump(image)
            os.kill(sleeper.pid, signal.SIGCONT)
            assert sleeper.stdin is not None
            sleeper.stdin.write("\n")
            sleeper.stdin.flush()
            said = [await told(sleeper) for _ in range(3)]
            # Its snapshot is of before: its record is what has changed. A later one sees that the lease has ended.
            # PostgreSQL's client says it in three ways, by how much of the other node's commits it has seen by then.
            conflicts = ("ReadConflictError", "VoteReadConflictError", "CacheHasNewerTidError")
            assert said[0] in [f"refused {each}" for each in conflicts]
            assert said[1:] == ["refused ImageError"] * 2
            # The beats of the other node go on; nothing else has changed.
            with image.snapshot() as root:
                beat = root[roots.NODES][image.fence]["beat"]._p_oid
                assert set(root[roots.MISSIONS]) == {mission, theirs}
                assert roots.mission_record(root, mission).status.word == "running"
                assert claims.left_by_the_dead(root) == {fence: [mission]}
            now = dump(image)
            assert {oid for oid in now if now[oid] != before.get(oid)} <= {beat}


async def test_nodes_work_at_once(two: tuple[LivingImage, LivingImage]) -> None:
    """Each accepts, and of several claims of one mission one holds; no other node can end it or begin it."""
    missions = [await image.accept(brief()) for image in two]
    taken = await asyncio.gather(*(image.claim(missions) for image in two))
    assert sorted(taken[0] + taken[1]) == sorted(missions)
    for mission in missions:
        other = two[mission in taken[0]]
        with pytest.raises(Refused, match="runs at another node"):
            await other.move(mission, "failed")
        with pytest.raises(Refused, match="runs at another node"):
            await other.move(mission, "running")
    with two[0].snapshot() as root:
        assert list(root[roots.QUEUED]) == []
        assert roots.count_by_status(root) == {"running": 2}
        assert root[roots.TALLY]["running"] == 2


async def test_commits_that_meet_are_made_again(two: tuple[LivingImage, LivingImage]) -> None:
    """Forty acceptances at two nodes at once are all there, and counted."""
    missions = await asyncio.gather(*(image.accept(brief()) for _ in range(20) for image in two))
    with two[0].snapshot() as root:
        assert set(root[roots.MISSIONS]) == set(root[roots.QUEUED]) == set(missions)
        assert root[roots.TALLY]["queued"] == len(missions) == 40


async def test_one_node_publishes(two: tuple[LivingImage, LivingImage]) -> None:
    """The other waits for it, or asks for the part and gets it; a commit of one that gave it away is refused."""
    first, second = two
    assert (first.publishing.is_here, second.publishing.is_here) == (True, False)
    mission = await second.accept(brief())
    await second.move(mission, "running")
    await think(second, mission)
    waiting = asyncio.create_task(Publisher(second.shared, {}, utc_now).fold(mission))
    assert await Publisher(first.shared, {}, utc_now).fold(mission)
    assert not await waiting
    async with second.publishing.here():
        assert not first.publishing.is_here
        taking = asyncio.create_task(first.shared.apply(lambda root: root[roots.STATISTICS].update(told=1)))
        await a_moment()
        assert not taking.done()  # nobody takes it while it is held
    await taking
    assert (first.publishing.is_here, second.publishing.is_here) == (True, False)
    assert second.lease is not None
    second.lease.publishes = True  # what it believed before
    await second.shared.apply(lambda root: root[roots.STATISTICS].update(told=2))
    with first.snapshot() as root:
        assert root[roots.STATISTICS]["told"] == 2
        assert root[roots.PUBLISHER]["fence"] == second.fence


async def test_a_node_that_leaves_is_no_node_at_once(places: tuple[str, str]) -> None:
    """The next publishes without waiting for a lease."""
    async with node(places) as first:
        async with node(places) as second:
            await second.accept(brief())
            await second.shared.apply(lambda root: None)
            assert not first.publishing.is_here
        async with first.publishing.here():  # hangs where it waits for the lease
            assert first.publishing.is_here


async def test_what_nobody_renews_is_stale_by_the_own_clock(places: tuple[str, str]) -> None:
    """A node that has not renewed for a lease does no effect, before any other can have ended it."""
    clock = Clock()
    async with node(places, lease_clock=clock) as image:
        assert image.lease is not None
        image.lease.renew()
        image.publishing.check_fresh()
        image.lease.close()
        clock.ahead += LEASE
        with pytest.raises(ImageError, match="lease"):
            image.publishing.check_fresh()


@pytest.mark.parametrize(
    ("looks", "is_ended"),
    [
        (range(11), True),
        (range(10), False),
        ((0, 9, 10, 11), False),
        ((0, 9, 18, 27), False),
        ((0, 9, 18, 27, 36), True),
    ],
)
def test_a_node_that_was_held_up_takes_no_other_for_dead(looks: Iterable[int], is_ended: bool) -> None:
    """Silence counts while it is listened to: a stalled server, or a machine that slept, holds up everybody.

    One that is held up again and again finds the dead all the same, by its fifth look.
    """
    now = 0.0
    lease = NodeLease(cast("Any", None), 10, "watcher", clock=lambda: now)
    other: dict[str, Any] = {"ended": False, "beat": {"count": 1}, "name": "other", "claims": ()}
    for now in looks:  # noqa: B007  # the clock of the lease reads it
        lease._end_silent({1: other})
    assert other["ended"] is is_ended


@pytest.mark.parametrize("places", ["postgres"], indirect=True)
async def test_nodes_have_no_more_sessions_than_the_server(places: tuple[str, str]) -> None:
    """A node that would need more than the others leave is told so, though few are open yet, once a lease is over."""
    clock = Clock()
    async with node(places, missions=32) as first:
        assert first.lease is not None
        # The first one lives, whatever the clock of the second says.
        clock.looked, clock.step = first.lease.renew, LEASE / 8
        with pytest.raises(ConfigError, match="may be needed by other nodes") as refused:
            async with node(places, missions=32, lease_clock=clock):
                pass
        assert "max_connections" in refused.value.remedy
        async with node(places, missions=2):
            pass
