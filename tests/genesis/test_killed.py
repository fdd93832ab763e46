"""Genesis killed at every request and at every commit of the image converges to what an undisturbed one makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.killing import World, forking, world
from tests.genesis.loras import gguf_adapter

#: Each request takes this long, so that whoever reads the log can kill in its midst.
LATENCY = ("--latency-ms", "25")


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Where processes come from."""
    return forking()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, context: ForkServerContext) -> dict[str, Any]:
    """What a genesis makes that nobody disturbs: its requests, the daemon's store, the image's records."""
    with world(tmp_path_factory.mktemp("undisturbed") / "world", context, *LATENCY) as alone:
        warm(alone)
        report = alone.converged()
        paths = [request["path"] for request in alone.requests()]
        return {
            "plan": report["plan"],
            "paths": paths,
            "store": alone.store(),
            "image": asyncio.run(alone.image()),
        }


def warm(where: World) -> None:
    """Put an adapter for ROBIN there."""
    gguf_adapter(where.home / "adapters" / "robin" / "warm")


def at_once(work: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Two at a time: each waits for its processes most of the time."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, numbers))


def assert_converges(where: World, undisturbed: dict[str, Any]) -> None:
    """Once more, and there is what an undisturbed genesis makes; a third one changes nothing."""
    where.converged()
    assert where.store() == undisturbed["store"]
    assert asyncio.run(where.image()) == undisturbed["image"]
    before = len(where.requests())
    image = (where.home / "live_image.fs").read_bytes()
    third = where.converged()
    assert (third["plan"]["steps"], third["changes"]) == ([], [])
    first, second, *looks = where.requests()[before:]
    assert [each["path"] for each in (first, second)] == ["/api/version", "/api/tags"]
    assert {request["path"] for request in looks} <= {"/api/show"}
    assert len(looks) == len({request["model"] for request in looks}) <= len(undisturbed["store"]["tags"])
    assert (where.home / "live_image.fs").read_bytes() == image
    assert where.store() == undisturbed["store"]


def test_an_undisturbed_genesis(undisturbed: dict[str, Any]) -> None:
    """It pulls two models, sends an adapter, makes five models and writes the image."""
    kinds = [step["kind"] for step in undisturbed["plan"]["steps"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {"pull": 2, "upload": 1, "create": 5, "graph": 1}
    assert len(undisturbed["store"]["tags"]) == 7
    assert undisturbed["image"]["models"].keys() <= undisturbed["store"]["tags"].keys()
    assert all(finding["ok"] for finding in undisturbed["image"]["audit"])


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_after_every_request(tmp_path: Path, undisturbed: dict[str, Any], context: ForkServerContext) -> None:
    """Whichever request the daemon has just been sent, the next genesis ends where an undisturbed one does.

    Of the router's lesson, dozens of requests that are all alike, the first two and the last one.
    """

    def killed(nth: int) -> None:
        with world(tmp_path / str(nth), context, *LATENCY) as where:
            warm(where)
            where.killed_after(nth)
            assert_converges(where, undisturbed)

    paths = undisturbed["paths"]
    lesson = paths.index("/api/embed") + 1
    assert set(paths[lesson:]) == {"/api/embed"}
    at_once(killed, (*range(1, lesson + 2), len(paths)))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_commit(
    tmp_path: Path, undisturbed: dict[str, Any], context: ForkServerContext, after: bool
) -> None:
    """Killed before or after any commit of the image, the next genesis ends where an undisturbed one does."""
    ended: list[int] = []

    def killed(nth: int) -> None:
        with world(tmp_path / str(nth), context) as where:
            warm(where)
            process = where.dying(nth, after=after)
            process.join(30)
            if process.exitcode == 0:
                ended.append(nth)
            assert_converges(where, undisturbed)

    at_once(killed, range(1, 8))
    assert ended, "a genesis of seven commits: kill at more"
    assert min(ended) >= 6
