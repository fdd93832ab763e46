"""An erasure that is told to stop ends at its next step, also within hostile bytes; the next process finishes it."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.care.byte_scan import files_with
from tests.care.secret_mind import SECRET, ask, memory, told_mind
from tests.care.test_erasure_killed import finished, settings
from tests.fork_server import ForkedCommand
from tests.waiting import HANG, until

from batos import AsyncClient
from batos.care.erasure import Erasure, ErasureRequest
from batos.concurrency.threads import LongWork
from batos.protocol.errors import BatosError, NoServer
from batos.server.dispatch.erasing import erasure_parts
from batos.server.dispatch.looking import read_status

#: The tests open whole minds, and wait for processes, on the loop.
pytestmark = pytest.mark.blocks_loop

NEEDLE = SECRET.encode()
SCRIPT = Path(__file__).with_name("script_stop_erasing.py")
ANYWHERE = ("--bind", "tcp://127.0.0.1:*", "--events", "tcp://127.0.0.1:*")


async def hostile_home(place: Path) -> Path:
    """A home whose image has the secret, and bytes each pair of which looks like the beginning of a stream."""
    async with told_mind(place) as (mind, home):
        await ask(mind, f"My key is {SECRET}. Keep it.")
        await mind.uvm.document_store.remember([memory("hostile.md", f"The safe opens with {SECRET}. " + "x^" * 2**17)])
    return home


def started(home: Path, number: int, stage: str, *arguments: str) -> ForkedCommand:
    """A command that gets a signal at a stage of an erasure."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    own = {"BATOS_HOME": str(home), "OLLAMA_HOST": "http://127.0.0.1:9", "BATOS_USER": "tester", "BATOS_HTTP": "off"}
    with Path(os.devnull).open("rb") as nothing:
        return ForkedCommand(
            [str(number), stage, *arguments], {**kept, **own}, nothing.fileno(), None, None, script=SCRIPT
        )


@pytest.mark.parametrize("stage", ["begun", "lines", "history"])
async def test_a_server_ends_in_the_midst_of_an_erasure_and_the_next_start_finishes_it(
    tmp_path: Path, stage: str
) -> None:
    """Told by SIGTERM behind each of its commits: the process ends by itself, and nothing more of it is erased."""
    home = await hostile_home(tmp_path)
    process = started(home, signal.SIGTERM, stage, "serve", *ANYWHERE)
    await until(lambda: (home / "server.json").exists() or process.poll() is not None, "the server's note")
    assert process.poll() is None, process.communicate()
    async with AsyncClient(home) as client:
        asking = asyncio.ensure_future(client.call("erase", {"target": SECRET, "user": "tester"}))
        assert await asyncio.to_thread(process.wait, HANG) == 0, process.communicate()
        asking.cancel()
        with suppress(asyncio.CancelledError, BatosError):
            await asking
    assert "Traceback" not in process.communicate()[1]
    assert await finished(home) == stage
    assert await asyncio.to_thread(files_with, home, NEEDLE) == set()


async def test_ctrl_c_ends_an_erasure_in_its_own_process(tmp_path: Path) -> None:
    """With the exit code of an interrupt, and a word on what goes on; the next command finishes it."""
    home = await hostile_home(tmp_path)
    process = started(home, signal.SIGINT, "begun", "forget", "--erase", SECRET, "--yes", "--here")
    code = await asyncio.to_thread(process.wait, HANG)
    _, err = process.communicate()
    assert code == 130, err
    assert "`batos status` says whether any was" in err
    assert await finished(home) == "begun"
    assert await asyncio.to_thread(files_with, home, NEEDLE) == set()


async def test_whoever_leaves_while_it_looks_has_erased_nothing(tmp_path: Path) -> None:
    """Nothing was begun by then; what was begun goes on without him."""
    home = await hostile_home(tmp_path)
    async with told_mind(tmp_path) as (mind, _):
        erasure, request = Erasure(erasure_parts(mind.uvm)), ErasureRequest(SECRET, "tester", "tester")
        heard: list[str] = []

        def leave(phase: str, *_: int) -> None:
            heard.append(phase)
            work.leave()

        work = LongWork(leave, least=0)
        with pytest.raises(NoServer, match="stops"):
            await erasure.erase(request, work)
        assert mind.uvm.status()["erasure"] is None
        assert set(heard) <= {"plan", "search"}
        work = LongWork(lambda phase, *_: work.leave() if phase == "journal" else None, least=0)
        assert (await erasure.erase(request, work))["found"] == []
    assert (await read_status(settings(home)))["erasure"] is None
    assert await asyncio.to_thread(files_with, home, NEEDLE) == set()
