"""An erasure that is asked for at one node reaches what another node wrote, and what that one has yet to write."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.agency.acting import LASTING
from tests.care.byte_scan import files_with
from tests.care.secret_mind import OTHER, SECRET, ask, bridge, tell, told_mind
from tests.care.test_erasure_copies import begin, held
from tests.care.test_erasure_storages import rows_with, table_files_with
from tests.history.test_as_of_past_questions import Door
from tests.image.open_image import child
from tests.image.servers import ask_postgres, postgres_server, zeo_server, zeo_uri
from tests.waiting import HANG

from batos.care import verification
from batos.image import roots
from batos.image.readable import open_read_only
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, OllamaError, WordsErased
from batos.records import redaction
from batos.server.dispatch import erasing
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

#: The tests start servers and open minds on the loop, as no program does.
pytestmark = pytest.mark.blocks_loop

NEEDLE = SECRET.encode()
#: Seconds of a lease after which what a killed node had is taken over.
SHORT = 2.0


@contextmanager
def served(kind: str, folder: Path) -> Iterator[tuple[dict[str, Any], Callable[[], set[str]]]]:
    """A server: where image and journal are, and what tells where the secret is."""
    if kind == "zeo":
        folder.mkdir()
        with zeo_server(folder) as port:
            yield {"image": zeo_uri(port), "journal": "", "lease": LASTING}, lambda: files_with(folder, NEEDLE)
        return
    with postgres_server() as address:
        ask_postgres(address, "CREATE DATABASE image", "CREATE DATABASE journal")
        places = {"image": f"{address}image", "journal": f"{address}journal", "lease": LASTING}
        yield places, lambda: rows_with(address) | table_files_with(address)


async def fail(uvm: UVM) -> str:
    """A mission that fails with a reason that quotes it."""
    failing = cast("ScriptedBridge", uvm.bridge)
    former = failing.respond

    def respond(request: ChatRequest) -> str | BatosError:
        said = " ".join(each["content"] for each in request.messages)
        return OllamaError(f"no end of {SECRET}") if "fails" in said and not request.schema else former(request)

    failing.respond = respond
    mission = await uvm.missions.submit({"text": f"It fails: {SECRET}.", "user": "tester", "effort": "reflex"})
    with pytest.raises(OllamaError, match="no end"):
        await uvm.missions.run(mission)
    failing.respond = former
    return mission


@pytest.mark.parametrize("kind", ["zeo", "postgres"])
async def test_an_erasure_at_a_second_node_reaches_what_the_publisher_wrote(tmp_path: Path, kind: str) -> None:
    """Also what it has in hand just then: an answer to be remembered, a failure to be counted, other commits."""
    with served(kind, tmp_path / "served") as (places, find):
        async with told_mind(tmp_path / "first", **places) as (first, home):
            await tell(first, home)
            failed = await fail(first.uvm)
            told = await first.uvm.missions.ask({"text": f"Keep {SECRET}.", "user": "tester", "effort": "reflex"})
            assert await asyncio.to_thread(find)
            async with scripted_uvm(tmp_path / "second", bridge(), memory=False, method_control=0, **places) as second:
                async with first.uvm.image.publishing.here():
                    assert not second.image.publishing.is_here
                publishing = asyncio.create_task(publish(first.uvm))
                erased = await Door(second)("erase", target=SECRET, user="tester")
                publishing.cancel()
                await asyncio.wait([publishing])
                assert erased["found"] == []
                assert {failed, told["id"]} <= set(erased["missions"])
                assert "other nodes" in {each["place"] for each in erased["left"]}
                assert await asyncio.to_thread(find) == set()
                await ask(first, OTHER)
                await first.uvm.mission_memory.write()
                await first.uvm.counters.flush()
                reasons = {each["mission"]: each["reason"] for each in first.uvm.status()["failures"]}
                assert reasons[failed]["message"] == "erased by tester"
                assert second.readings.mission(told["id"])["status"] == "undone"
        assert await asyncio.to_thread(find) == set()


@pytest.mark.parametrize("kind", ["zeo", "postgres"])
async def test_a_dream_at_another_node_keeps_no_words_of_what_is_erased(tmp_path: Path, kind: str) -> None:
    """Its call is under way while another node erases what it was shown: it is ended there, and digests are kept."""
    with served(kind, tmp_path / "served") as (places, find):
        daemon = held()
        async with told_mind(tmp_path / "first", bridge=daemon, **places) as (first, _):
            dreaming = await begin(first, "dream_new")
            async with scripted_uvm(tmp_path / "second", bridge(), memory=False, method_control=0, **places) as second:
                erased = await Door(second)("erase", target=SECRET, words=True, user="tester")
                assert erased["found"] == []
                assert "PostgreSQL's tables" not in {each["place"] for each in erased["left"]}
                with pytest.raises(WordsErased):
                    await asyncio.wait_for(dreaming, HANG)  # its call is never answered
                assert (await Door(second)("dream_list", user="tester"))["dreams"] == []
        left = await asyncio.to_thread(find)
        assert {each for each in left if not each.endswith(".fs.tmp")} == set()  # the buffers of a ZEO server


@pytest.mark.parametrize(("kind", "stage"), [("zeo", "lines"), ("postgres", "begun"), ("postgres", "history")])
async def test_an_erasure_of_a_killed_node_is_finished_by_the_next(tmp_path: Path, kind: str, stage: str) -> None:
    """Once the killed node's lease has ended: the words are nowhere, and the mind is whole."""
    with served(kind, tmp_path / "served") as (places, find):
        script = Path(__file__).with_name("script_erase.py")
        with child(script, tmp_path / "first", places["image"], places["journal"], stage) as process:
            await asyncio.to_thread(process.communicate)
        assert process.returncode == -signal.SIGKILL
        assert await asyncio.to_thread(find)
        with open_read_only(places["image"], places["journal"]) as pair, pair.root() as root:
            left = redaction.describe_erasure(root)
        assert left is not None
        assert left["stage"] == stage
        home = tmp_path / "first" / "home"
        async with scripted_uvm(home, bridge(), memory=False, **{**places, "lease": SHORT}) as uvm:
            await erasing.keep_finishing(uvm)  # as a server does
            with uvm.image.snapshot() as root:
                assert redaction.describe_erasure(root) is None
            assert await asyncio.to_thread(find) == set()
            assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
        assert await asyncio.to_thread(files_with, home, NEEDLE) == set()


async def publish(uvm: UVM) -> None:
    """Publish small changes, one after the other."""
    while True:
        await uvm.image.shared.apply(lambda root: root[roots.STATISTICS].update(told=1))
        await asyncio.sleep(0.01)  # any pace: it goes on until it is cancelled
