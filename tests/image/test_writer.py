"""The writer: many changes to a commit, in order, each alone in its failure, none lost by another's cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from persistent.list import PersistentList
from tests.waiting import HANG
from transaction import TransactionManager
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.concurrency.threads import CommitThread
from batos.image.filestorage import SoundFileStorage
from batos.image.transactions import snapshot
from batos.image.writer import Writer
from batos.protocol.errors import InternalError, Refused


class Desk:
    """A writer over a file, and what a reader of the file finds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = DB(SoundFileStorage(str(path)))
        self.thread = CommitThread()
        self.writer: Writer[Any] = Writer(self.db, self.thread, lambda error: error)

    def hold(self) -> Callable[[], None]:
        """Keep the commit thread busy until the function that this answers is called."""
        held = threading.Event()
        self.thread.submit(lambda: held.wait(HANG))
        return held.set

    def on_disk(self) -> dict[str, Any]:
        """What another process would read from the file as it is now."""
        db = DB(FileStorage(str(self.path), read_only=True))
        connection = db.open(TransactionManager())
        found = {name: list(value) for name, value in connection.root().items()}
        connection.close()
        db.close()
        return found

    def close(self) -> None:
        """Give everything back."""
        self.thread.close()
        self.writer.close()
        self.db.close()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A database with an empty list `log`."""
    made = Desk(tmp_path / "desk.fs")
    await made.writer.apply(lambda root: root.__setitem__("log", PersistentList()))
    made.writer.commits = 0
    yield made
    made.close()


def adding(number: int) -> Callable[[Any], int]:
    """A change that writes a number down and answers how many there are."""

    def change(root: Any) -> int:
        root["log"].append(number)
        return len(root["log"])

    return change


async def test_what_comes_while_other_commits_run_goes_with_the_next(desk: Desk) -> None:
    """A commit takes what waits when its turn comes, in order, and not only what waited when it was asked for."""
    release = desk.hold()
    made = []
    for number in range(5):
        made.append(asyncio.create_task(desk.writer.apply(adding(number))))
        for _ in range(3):
            await asyncio.sleep(0)
    release()
    assert await asyncio.gather(*made) == [1, 2, 3, 4, 5]
    assert desk.writer.commits == 1
    assert desk.on_disk() == {"log": [0, 1, 2, 3, 4]}


def failing(root: Any) -> None:
    """A change that begins and fails."""
    root["log"].append("half")
    raise ZeroDivisionError


async def test_changes_that_wait_share_one_commit(desk: Desk) -> None:
    """A hundred changes made at once take one or two commits, in the order they were made, and each has its result."""
    counts = await asyncio.gather(*(desk.writer.apply(adding(number)) for number in range(100)))
    assert counts == list(range(1, 101))
    assert desk.writer.commits <= 2
    assert desk.on_disk() == {"log": list(range(100))}


async def test_what_comes_during_a_commit_shares_the_next(desk: Desk) -> None:
    """While one commit is under way the others gather: fifty changes in two waves are two commits more."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(root: Any) -> int:
        begun.set()
        assert go_on.wait(HANG)
        return adding(0)(root)

    first = asyncio.create_task(desk.writer.apply(slow))
    assert await asyncio.to_thread(begun.wait, HANG)
    others = []
    for number in range(1, 51):
        others.append(asyncio.create_task(desk.writer.apply(adding(number))))
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, *others)
    assert desk.writer.commits == 2
    assert desk.on_disk() == {"log": list(range(51))}


async def test_a_change_is_on_disk_when_it_returns(desk: Desk) -> None:
    """Somebody who opens the file at that moment finds it."""
    for number in range(5):
        await desk.writer.apply(adding(number))
        assert desk.on_disk()["log"][-1] == number


async def test_one_that_fails_fails_alone(desk: Desk) -> None:
    """The others of its batch are committed without it, each once, in order; its half-made change is in none."""
    changes = [adding(0), adding(1), failing, adding(2), failing, adding(3)]
    results = await asyncio.gather(*(desk.writer.apply(change) for change in changes), return_exceptions=True)
    assert [isinstance(result, ZeroDivisionError) for result in results] == [False, False, True, False, True, False]
    assert [result for result in results if isinstance(result, int)] == [1, 2, 3, 4]
    assert desk.on_disk() == {"log": [0, 1, 2, 3]}


async def test_a_refusal_keeps_the_others_in_one_commit(desk: Desk) -> None:
    """Whoever refuses is told so, and nothing of his change is kept; the others are made once more without it."""

    def refusing(root: Any) -> None:
        root["log"].append("half")
        raise Refused("no")

    before = desk.writer.commits
    changes = [adding(0), refusing, adding(1), refusing, adding(2)]
    results = await asyncio.gather(*(desk.writer.apply(change) for change in changes), return_exceptions=True)
    assert [isinstance(result, Refused) for result in results] == [False, True, False, True, False]
    assert desk.writer.commits == before + 1
    assert desk.on_disk() == {"log": [0, 1, 2]}


async def test_a_change_may_run_twice_and_counts_once(desk: Desk) -> None:
    """In a batch that failed a change is made again from the state before: it ran twice, its effect is there once."""
    runs = 0

    def counting(root: Any) -> None:
        nonlocal runs
        runs += 1
        root["log"].append(runs)

    await asyncio.gather(desk.writer.apply(counting), desk.writer.apply(failing), return_exceptions=True)
    assert runs == 2
    assert desk.on_disk() == {"log": [2]}


async def test_a_cancelled_waiter_takes_nobody_with_it(desk: Desk) -> None:
    """Its change is made all the same, it learns of the cancellation after the commit, and the others get theirs."""
    release = desk.hold()
    tasks = [asyncio.create_task(desk.writer.apply(adding(number))) for number in range(3)]
    for _ in range(3):  # each waits by then
        await asyncio.sleep(0)
    for _ in range(3):
        tasks[1].cancel()
        await asyncio.sleep(0)
    assert not tasks[1].done()
    release()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[0] == 1
    assert isinstance(results[1], asyncio.CancelledError)
    assert results[2] == 3
    assert desk.on_disk() == {"log": [0, 1, 2]}


async def test_after_a_failure_the_writer_goes_on(desk: Desk) -> None:
    """A failed change leaves no open transaction behind."""
    for number in range(3):
        with pytest.raises(ZeroDivisionError):
            await desk.writer.apply(failing)
        await desk.writer.apply(adding(number))
    assert desk.on_disk() == {"log": [0, 1, 2]}


async def test_readers_see_a_batch_whole(desk: Desk) -> None:
    """A snapshot taken while the writer works shows whole changes only."""

    def twice(root: Any) -> None:
        root["log"].append("a")
        root["log"].append("b")

    async def read() -> None:
        for _ in range(50):
            with snapshot(desk.db) as root:
                assert len(root["log"]) % 2 == 0
            await asyncio.sleep(0)

    await asyncio.gather(read(), *(desk.writer.apply(twice) for _ in range(50)))


async def test_a_change_after_the_end_is_an_error(tmp_path: Path) -> None:
    """Nobody waits for ever on a commit thread that has ended."""
    desk = Desk(tmp_path / "desk.fs")
    desk.close()
    with pytest.raises(InternalError, match="closed"):
        await desk.writer.apply(adding(0))
