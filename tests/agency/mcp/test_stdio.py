"""Servers as processes: what a hostile one does is bounded, and nothing of it is left, also after a kill of ours."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.agency.mcp.connection_laws import ask

from batos.agency.mcp.connection import McpTimes
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import ServerOpener
from batos.protocol.errors import LookUpFailed
from leftovers_side import list_left, none_left

HERE = Path(__file__).parent
HOSTILE = str(HERE.parents[2] / "bench" / "hostile_server_side.py")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")


def hostile(way: str, *more: object, env: tuple[str, ...] = ()) -> McpServer:
    """A server that behaves so."""
    return McpServer("tides", "tester", command=(sys.executable, HOSTILE, way, *map(str, more)), env=env)


def opener(**times: float) -> ServerOpener:
    """What opens it, with deadlines that a test can wait for."""
    return ServerOpener(Path("/nonexistent"), McpTimes(**{"opening": 20.0, "probe": 10.0, "call": 20.0, **times}))


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("large", "a line of more than 4,194,304 bytes"),
        ("endless", "more than 8,388,608 bytes before an answer"),
        ("input", "asks for more input in the middle of the call"),
        ("dies", "ended without an answer: the boiler burst"),
    ],
)
async def test_what_has_no_end_or_asks_for_more_ends_the_call(way: str, why: str) -> None:
    """With a line that says so."""
    async with opener().open(hostile(way)) as found:
        with pytest.raises(LookUpFailed, match=why):
            await ask(found, "tide", {"harbour": "Maro"})


@pytest.mark.parametrize("way", ["silent", "drip"])
async def test_what_never_answers_ends_at_the_deadline(way: str) -> None:
    """Although it may say something all the time."""
    async with opener(call=0.3).open(hostile(way)) as found:
        with pytest.raises(LookUpFailed, match=r"did not answer within 0.3 s"):
            await ask(found, "tide", {"harbour": "Maro"})


async def test_what_it_prints_besides_is_no_answer() -> None:
    """Bytes that are no text, no JSON, or no message."""
    async with opener().open(hostile("garbage")) as found:
        assert (await ask(found, "tide", {"harbour": "Maro"})).text == "High tide at Maro: 14:32."


async def test_requests_of_a_server_are_refused(tmp_path: Path) -> None:
    """It gets an error for each, and goes on."""
    async with opener().open(hostile("asks", tmp_path / "told")) as found:
        assert (await ask(found, "tide", {"harbour": "Maro"})).text == "High tide at Maro: 14:32."
    told = json.loads((tmp_path / "told").read_text())
    assert [(each["id"], each["error"]["code"], "result" in each) for each in told] == [
        (99, -32601, False), ("r", -32601, False),
    ]  # fmt: skip


async def test_a_server_that_does_not_know_the_newer_era_may_say_nothing_of_it() -> None:
    """It is greeted as before after a while."""
    async with opener(probe=0.2).open(hostile("mute")) as found:
        assert found.version == "2025-06-18"


async def test_a_program_that_cannot_be_started_says_why() -> None:
    """In the words of the system."""
    with pytest.raises(LookUpFailed, match="nothing/here: No such file"):
        async with opener().open(McpServer("tides", "tester", command=("/nothing/here",))):
            pass


async def test_a_program_has_the_named_variables_alone_and_an_empty_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other of ours."""
    monkeypatch.setenv("HARBOUR", "Maro")
    monkeypatch.setenv("SECRET", "marmalade")
    show = "import os, sys; sys.stderr.write(f'{sorted(os.environ)} {os.listdir()}')"
    server = McpServer("tides", "tester", command=(sys.executable, "-c", show), env=("HARBOUR",))
    with pytest.raises(LookUpFailed, match=r"\['HARBOUR'(, 'LC_CTYPE')?\] \[\]"):
        async with opener().open(server):
            pass


@LINUX
@pytest.mark.parametrize("way", ["outlives", "deaf"])
async def test_nothing_of_a_server_outlives_a_call(tmp_path: Path, way: str) -> None:
    """Neither its children, nor those that left its group or were orphaned, nor itself if it hears nothing."""
    word = f"left-{tmp_path.name}-{os.getpid()}"
    async with opener().open(hostile(way, word)) as found:
        await found.list_tools()
        assert list_left(word)
    assert list_left(word) == []


@LINUX
async def test_nothing_of_a_server_outlives_a_call_that_is_given_up(tmp_path: Path) -> None:
    """By whoever waits for it, in the middle."""
    word, began = f"cut-{os.getpid()}", asyncio.Event()

    async def call() -> None:
        async with opener().open(hostile("deaf", word)) as found:
            await found.list_tools()
            began.set()
            await asyncio.Event().wait()

    calling = asyncio.ensure_future(call())
    await began.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert list_left(word) == []


@LINUX
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_of_a_server_outlives_a_kill_of_ours(tmp_path: Path, signal_number: int) -> None:
    """Whoever ends this process, the keeper clears up."""
    word = f"killed-{signal_number}-{os.getpid()}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "script_open.py"), HOSTILE, "deaf", word, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == b"open"
    assert len(list_left(word)) >= 4
    process.send_signal(signal_number)
    await process.wait()
    assert await none_left(word)
