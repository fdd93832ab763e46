"""The loop watch accuses what used the CPU in the loop, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from batos.loopwatch import EXIT_BLOCKED, LIMIT, BlockingCallback, WatchedLoop, run

_INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
markers = blocks_loop(reason): excused
"""


def burn(seconds: float) -> None:
    """Use that much CPU of this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def watched(main: object) -> list[BlockingCallback]:
    """Run a coroutine on a watched loop of its own; what blocked it."""
    assert asyncio.iscoroutine(main)
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        loop = runner.get_loop()
        runner.run(main)
    assert isinstance(loop, WatchedLoop)
    return loop.blocked


def test_a_task_that_burns_is_named_with_its_place() -> None:
    """A task's step over the limit is reported with the coroutine and the lines between which it ran."""

    async def greedy() -> None:
        await asyncio.sleep(0)
        burn(LIMIT + 0.03)

    (blocked,) = watched(greedy())
    assert blocked.seconds > LIMIT
    assert "greedy" in blocked.what
    assert "test_loopwatch.py" in blocked.what


@pytest.mark.parametrize("way", ["call_soon", "call_later", "call_soon_threadsafe", "add_signal_handler"])
def test_every_way_into_the_loop_is_timed(way: str) -> None:
    """A plain callback is reported by name, whichever way it was scheduled."""

    async def main() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def burning() -> None:
            burn(LIMIT + 0.03)
            ended.set()

        if way == "call_later":
            loop.call_later(0.001, burning)
        elif way == "call_soon_threadsafe":
            threading.Thread(target=loop.call_soon_threadsafe, args=(burning,)).start()
        elif way == "add_signal_handler":
            loop.add_signal_handler(signal.SIGUSR1, burning)
            os.kill(os.getpid(), signal.SIGUSR1)
        else:
            loop.call_soon(burning)
        await ended.wait()

    (blocked,) = watched(main())
    assert "burning" in blocked.what


def test_readers_and_transports_are_timed() -> None:
    """A protocol that burns when data arrives is reported, though asyncio's transport called it."""

    class Greedy(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            burn(LIMIT + 0.03)

    async def main() -> None:
        ours, theirs = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().create_connection(Greedy, sock=ours)
        theirs.send(b"x")
        theirs.close()
        await asyncio.sleep(0.05)
        transport.close()

    assert len(watched(main())) == 1


def test_waiting_and_other_threads_are_not_accused() -> None:
    """Sleeping in a callback, however wrong, uses no CPU; another thread's CPU is its own."""

    async def main() -> None:
        other = threading.Thread(target=burn, args=(0.2,))
        other.start()
        time.sleep(0.12)  # noqa: ASYNC251 (a wait of the wall clock inside the loop is what is shown here)
        await asyncio.to_thread(burn, 0.1)
        other.join()

    assert watched(main()) == []


def test_garbage_collection_is_forgiven() -> None:
    """A collection that falls into a callback is not that callback's doing."""
    ballast = [[number] for number in range(1_000_000)]

    async def main() -> None:
        for _ in range(4):
            gc.collect()

    began = time.thread_time()
    assert watched(main()) == []
    assert time.thread_time() - began > LIMIT
    assert len(ballast) == 1_000_000


def test_cancelled_handles_do_not_run() -> None:
    """A timed handle cancels like any other."""
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(ran.append, "soon").cancel()
        loop.call_later(0, ran.append, "later").cancel()
        loop.call_soon(ran.append, "kept")
        await asyncio.sleep(0.01)

    assert watched(main()) == []
    assert ran == ["kept"]


def test_run_answers_70_and_tells_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """`run(debug=True)` ends in SystemExit 70 when something blocked, even when the program failed anyway."""

    async def greedy() -> None:
        burn(LIMIT + 0.03)
        raise ValueError("its own trouble")

    with pytest.raises(SystemExit) as ended:
        run(greedy(), debug=True)
    assert ended.value.code == EXIT_BLOCKED
    assert "greedy" in capsys.readouterr().err


def test_run_gives_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    """`run` returns what the coroutine returned, watched or not; unwatched it accuses nobody."""

    async def answer(burning: float) -> int:
        burn(burning)
        return 42

    assert run(answer(0), debug=True) == 42
    assert run(answer(LIMIT + 0.03), debug=False) == 42
    assert capsys.readouterr().err == ""


def test_the_watch_fails_a_test_that_blocks(pytester: pytest.Pytester) -> None:
    """An async test that burns is an error by the fixture of conftest.py, and a marked one is excused."""
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makeini(_INI)
    pytester.makepyfile(
        """
        import pytest, time
        def burn():
            until = time.thread_time() + 0.15
            while time.thread_time() < until: pass
        async def test_blocks(): burn()
        @pytest.mark.blocks_loop(reason="shown to be excused")
        async def test_excused(): burn()
        async def test_waits(): time.sleep(0.15)
        """
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*the event loop was blocked:*", "*test_blocks*"])
