"""One node has an image on a server; another takes over when it dies or sleeps, and the sleeper commits nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.image.open_image import brief, dump, heard, interpreter, open_image
from tests.image.servers import ask_postgres, postgres_server, zeo_server

from batos.errors import ImageBusy
from batos.image import roots

#: Seconds of a lease here.
LEASE = 1.0

pytestmark = pytest.mark.blocks_loop


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """An image and a journal on a ZEO server, or on PostgreSQL where a test says so."""
    if getattr(request, "param", "zeo") == "zeo":
        with zeo_server(tmp_path) as port:
            yield f"zeo://127.0.0.1:{port}", ""
        return
    with postgres_server() as server:
        ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
        yield f"{server}image", f"{server}journal"


def node(places: tuple[str, str], **also: Any) -> Any:
    """A node that waits for its turn."""
    image, journal = places
    return open_image(None, **{"image": image, "journal": journal, "lease": LEASE, "standby": True, **also})


async def told(sleeper: subprocess.Popen[str]) -> str:
    """What came of the next try; what is logged between is left out."""
    while True:
        line = await heard(sleeper)
        if not line or line.startswith(("refused", "written")):
            return line


@pytest.mark.parametrize("places", ["zeo", "postgres"], indirect=True)
async def test_a_sleeper_commits_nothing(places: tuple[str, str]) -> None:
    """It is stopped for two leases, and another takes over; awake, each of its writers is refused."""
    with interpreter("script_node.py", LEASE, *places) as sleeper:
        mission = await heard(sleeper)
        os.kill(sleeper.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        async with node(places) as image:
            taken = time.monotonic() - stopped
            assert LEASE * 0.5 < taken < LEASE + 1
            theirs = await image.accept(brief())
            await asyncio.sleep(2 * LEASE - taken)
            before = dump(image)
            os.kill(sleeper.pid, signal.SIGCONT)
            assert sleeper.stdin is not None
            sleeper.stdin.write("\n")
            sleeper.stdin.flush()
            said = [await told(sleeper) for _ in range(3)]
            # Its snapshot is of before: the claim is what has changed. A later one sees whose the image is.
            assert said[0] in ("refused ReadConflictError", "refused VoteReadConflictError")
            assert said[1:] == ["refused ImageError"] * 2
            # The beats of the new node go on; nothing else has changed.
            with image.snapshot() as root:
                beat = root["lease"]["beat"]._p_oid
                assert set(root[roots.MISSIONS]) == {mission, theirs}
                assert roots.mission_record(root, mission).status.word == "running"
            now = dump(image)
            assert {oid for oid in now if now[oid] != before.get(oid)} <= {beat}


async def test_a_node_that_lives_keeps_the_image(places: tuple[str, str]) -> None:
    """Another that does not wait is told who has it; when it leaves, the next has it at once."""
    async with node(places, node="first") as image:
        began = time.monotonic()
        with pytest.raises(ImageBusy, match="first") as busy:
            async with node(places, standby=False):
                pass
        assert LEASE < time.monotonic() - began < 2 * LEASE + 1
        assert "standby" in busy.value.remedy
        await image.accept(brief())
    began = time.monotonic()
    async with node(places) as image:
        assert time.monotonic() - began < LEASE / 2
        await image.accept(brief())


async def test_a_dead_nodes_image_is_taken_over(places: tuple[str, str]) -> None:
    """Within the lease and a second, what it had accepted is there."""
    with interpreter("script_node.py", LEASE, *places) as process:
        mission = await heard(process)
        process.kill()
        killed = time.monotonic()
        async with node(places) as image:
            assert time.monotonic() - killed < LEASE + 1
            with image.snapshot() as root:
                assert mission in root[roots.MISSIONS]
