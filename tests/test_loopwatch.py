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

from batos.loopwatch import EXIT_BLOCKED, MOST_TURNS, SLOW, BlockingCallback, WatchedLoop, run, turn_seconds

_INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
markers = blocks_loop(reason): excused
"""


#: The limits of the loops here; more than a callback may use there at any pace, and what is slow but allowed.
LIMITS = (0.0005, 1_000_000)
TOO_MUCH, MUCH = 4_000_000, 100_000
#: More than any loop allows.
FAR_TOO_MUCH = 2 * MOST_TURNS


def burn(turns: int) -> None:
    """Use as much CPU of this thread as so many turns of an empty loop."""
    for _ in range(turns):
        pass


def watched(main: object) -> list[BlockingCallback]:
    """Run a coroutine on a watched loop of its own; what blocked it."""
    assert asyncio.iscoroutine(main)
    with asyncio.Runner(loop_factory=lambda: WatchedLoop(*LIMITS)) as runner:
        loop = runner.get_loop()
        runner.run(main)
    assert isinstance(loop, WatchedLoop)
    return loop.blocked


def test_a_task_that_burns_is_named_with_its_place() -> None:
    """A task's step over the limit is reported with the coroutine and the lines between which it ran."""

    async def greedy() -> None:
        await asyncio.sleep(0)
        burn(TOO_MUCH)

    (blocked,) = watched(greedy())
    assert blocked.turns > 1_000_000
    assert "greedy" in blocked.what
    assert "test_loopwatch.py" in blocked.what


def test_what_is_only_slow_blocks_nothing() -> None:
    """The limit is in work, not in seconds: what a slow machine takes long for is noted apart."""

    async def busy() -> None:
        burn(MUCH)

    loop = WatchedLoop(0.0, 1_000_000)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(busy())
    assert loop.blocked == []
    assert any("busy" in each.what for each in loop.slow)
    # The same callback on a machine that is a hundred times slower.
    loop.note(BlockingCallback("a crawl", 100 * SLOW, 300_000))
    assert (loop.blocked, loop.slow[-1].what) == ([], "a crawl")


@pytest.mark.parametrize("way", ["call_soon", "call_later", "call_soon_threadsafe", "add_signal_handler"])
def test_every_way_into_the_loop_is_timed(way: str) -> None:
    """A plain callback is reported by name, whichever way it was scheduled."""

    async def main() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def burning() -> None:
            burn(TOO_MUCH)
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
        def __init__(self) -> None:
            self.received = asyncio.Event()

        def data_received(self, data: bytes) -> None:
            burn(TOO_MUCH)
            self.received.set()

    async def main() -> None:
        ours, theirs = socket.socketpair()
        transport, protocol = await asyncio.get_running_loop().create_connection(Greedy, sock=ours)
        theirs.send(b"x")
        theirs.close()
        await protocol.received.wait()
        transport.close()

    assert len(watched(main())) == 1


def test_waiting_and_other_threads_are_not_accused() -> None:
    """Sleeping in a callback, however wrong, uses no CPU; another thread's CPU is its own."""

    async def main() -> None:
        other = threading.Thread(target=burn, args=(TOO_MUCH,))
        other.start()
        # any pace: to sleep longer uses no CPU either
        time.sleep(0.12)  # noqa: ASYNC251 (a wait of the wall clock inside the loop is what is shown here)
        await asyncio.to_thread(burn, TOO_MUCH)
        other.join()

    assert watched(main()) == []


def test_garbage_collection_is_forgiven() -> None:
    """A collection that falls into a callback is not that callback's doing."""
    ballast = [[number] for number in range(1_000_000)]
    loop, much = WatchedLoop(*LIMITS), TOO_MUCH * turn_seconds()

    async def main() -> None:
        while loop.collecting < much:
            gc.collect()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    assert loop.blocked == []
    assert len(ballast) == 1_000_000


def test_cancelled_handles_do_not_run() -> None:
    """A timed handle cancels like any other."""
    ran: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(ran.append, "soon").cancel()
        loop.call_later(0, ran.append, "later").cancel()
        ended = asyncio.Event()
        loop.call_soon(ran.append, "kept")
        loop.call_later(0, ended.set)  # behind the other of its kind
        await ended.wait()

    assert watched(main()) == []
    assert ran == ["kept"]


def test_run_answers_70_and_tells_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """`run(debug=True)` ends in SystemExit 70 when something blocked, even when the program failed anyway."""

    async def greedy() -> None:
        burn(FAR_TOO_MUCH)
        raise ValueError("its own trouble")

    with pytest.raises(SystemExit) as ended:
        run(greedy(), debug=True)
    assert ended.value.code == EXIT_BLOCKED
    assert "greedy" in capsys.readouterr().err


def test_run_gives_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    """`run` returns what the coroutine returned, watched or not; unwatched it accuses nobody."""

    async def answer(burning: int) -> int:
        burn(burning)
        return 42

    assert run(answer(0), debug=True) == 42
    assert run(answer(TOO_MUCH), debug=False) == 42
    assert capsys.readouterr().err == ""


def test_the_watch_fails_a_test_that_blocks(pytester: pytest.Pytester) -> None:
    """An async test that burns is an error by the fixture of conftest.py, and a marked one is excused."""
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makeini(_INI)
    pytester.makepyfile(
        """
        import pytest, time
        def burn():
            for _ in range(FAR_TOO_MUCH): pass
        async def test_blocks(): burn()
        @pytest.mark.blocks_loop(reason="shown to be excused")
        async def test_excused(): burn()
        async def test_waits(): time.sleep(0.15)
        """.replace("FAR_TOO_MUCH", str(FAR_TOO_MUCH))
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*the event loop was blocked:*", "*test_blocks*"])
