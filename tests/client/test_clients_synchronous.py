"""The client for synchronous programs: the same calls, generated, over a thread of its own."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cli.wire_server import HASTY, ScriptedUvm, WireServer, eventually, note_of, wire_server
from tests.waiting import HANG

from batos.client import addresses
from batos.client.clients import AsyncClient, Client
from batos.config import Settings
from batos.protocol.errors import NoServer, NotFound, UsageError
from batos.protocol.event_payloads import MISSION_RETRACTED, MISSION_TOKEN, MissionRetracted, MissionToken

ROOT = Path(__file__).resolve().parents[2]


def client_of(wire: WireServer) -> Client:
    return Client.by(str(wire.places.bind), wire.credentials, HASTY)


def test_it_has_every_call_of_the_other() -> None:
    """Under the same name, with the same words about it; the way in and out of a block is its own."""
    public = {name for name in vars(AsyncClient) if not name.startswith("_")}
    assert public <= vars(Client).keys()
    taken = {name for name in public if getattr(Client, name).__doc__ == getattr(AsyncClient, name).__doc__}
    assert public - taken == {"watch"}


async def test_every_call_is_there(tmp_path: Path) -> None:
    """Asking, waiting, looking, steering, without an event loop in sight; errors are what they are."""
    (tmp_path / "lamp.txt").write_text("The keeper winds the clockwork.", encoding="utf-8")

    def use(wire: WireServer) -> None:
        told: list[str] = []
        with client_of(wire) as client:
            mission = client.ask("why?", lambda event, keys: told.append(event), files=[tmp_path / "lamp.txt"])
            assert (mission.status, mission.done, mission.text) == ("done", True, "why?")
            assert told == ["mission.accepted", "mission.status", "mission.status"]
            assert client.wait(client.submit("and then?")).text == "and then?"
            assert [each.status for each in client.missions(status="done")] == ["done", "done"]
            assert client.show(mission.id) == mission
            assert client.inspect() == {"objects": ["traits_obj"]}
            assert client.status()["queue"]["waiting"] == 0
            assert client.cancel(mission.id).status == "cancelled"
            with pytest.raises(NotFound):
                client.show("m-none")

    async with wire_server(tmp_path) as wire:
        await asyncio.to_thread(use, wire)


async def test_tokens_come_as_they_are_written(tmp_path: Path) -> None:
    """`for token in stream`, then the mission; what was retracted is told and no longer in `text`."""
    mind = ScriptedUvm(Settings(home=tmp_path, user="tester"), prompt=False)
    seen: list[tuple[str, bool]] = []

    def use(wire: WireServer) -> str:
        with client_of(wire) as client, client.stream("why?") as stream:
            seen.extend((str(token), token.retracted) for token in stream)
            assert stream.text == "right"
            assert stream.id == stream.mission().id
            return stream.mission().status

    async with wire_server(tmp_path, mind) as wire:
        used = asyncio.create_task(asyncio.to_thread(use, wire))
        await eventually(lambda: mind.found and mind.found[next(iter(mind.found))]["status"] == "running")
        mission = next(iter(mind.found))
        for text in ("wrong", None, "ri", "ght"):
            if text is None:
                mind.events.emit(MISSION_RETRACTED, MissionRetracted(mission=mission))
            else:
                mind.events.emit(MISSION_TOKEN, MissionToken(mission=mission, path="weave", text=text))
        mind.finish(mission)
        assert await used == "done"
    assert seen == [("wrong", False), ("", True), ("ri", False), ("ght", False)]


async def test_watching_is_an_iterator(tmp_path: Path) -> None:
    """Notices come one by one; leaving the loop ends the watching, and the client closes."""

    def use() -> str:
        with Client(tmp_path, patience=HASTY) as client, ThreadPoolExecutor(1) as pool:
            pool.submit(_submits, client, seen := threading.Event())
            try:
                notice = next(notices := client.watch())
            finally:
                seen.set()
            notices.close()
            return str(notice["event"])

    async with wire_server(tmp_path) as wire:
        addresses.write_record(tmp_path, note_of(wire))
        assert (await asyncio.to_thread(use)).startswith("mission.")


def _submits(client: Client, seen: threading.Event) -> None:
    while not seen.is_set():
        client.submit("why?")


async def test_a_listener_cannot_wait_for_its_own_client(tmp_path: Path) -> None:
    """It would wait for ever, since it runs where the client reads: that is an error instead."""

    def use(wire: WireServer) -> None:
        with client_of(wire) as client:

            def on_event(event: str, keys: Mapping[str, Any]) -> None:
                client.hello()

            with pytest.raises(RuntimeError, match="own thread"):
                client.ask("why?", on_event)
            assert client.hello()["pid"]

    async with wire_server(tmp_path) as wire:
        await asyncio.to_thread(use, wire)


async def test_a_client_that_nobody_closed_ends_with_its_last_user(tmp_path: Path) -> None:
    """No thread is left behind; a closed one says so, and may be closed twice."""

    def use(wire: WireServer) -> None:
        others = set(threading.enumerate())  # which tests of this process may have left behind
        client = client_of(wire)
        client.hello()
        own = {thread for thread in threading.enumerate() if thread.name == "batos-client"} - others
        assert own
        del client
        gc.collect()
        assert not any(thread.is_alive() for thread in own)
        closed = client_of(wire)
        closed.close()
        closed.close()
        with pytest.raises(NoServer, match="was closed"):
            closed.hello()

    async with wire_server(tmp_path) as wire:
        await asyncio.to_thread(use, wire)


def _say_in_child(work: Callable[[], object], told: int) -> None:
    """Do something in a child of this process, and write what came of it."""
    try:
        work()
        said = "answered"
    except UsageError as error:
        said = f"{error.message}: {error.remedy}"
    os.write(told, said.encode())


async def test_a_client_in_a_child_is_told_so_at_once(tmp_path: Path) -> None:
    """A fork has no thread and no connection of its client: it is no silence, and closing it there ends nothing."""

    def use(wire: WireServer) -> None:
        with client_of(wire) as client:
            client.status()
            reads, writes = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # some versions warn of a fork beside threads
                child = os.fork()
            if not child:
                _say_in_child(client.status, writes)
                _say_in_child(client.close, writes)
                os._exit(0)
            os.close(writes)
            with open(reads, "rb") as pipe:  # noqa: PTH123 - a pipe has no path
                said = pipe.read().decode()
            assert os.waitpid(child, 0)[1] == 0
            assert said == (
                "this client was made in another process: Make a client in each process, after the fork.answered"
            )
            assert client.status()["queue"]["waiting"] == 0

    async with wire_server(tmp_path) as wire:
        await asyncio.to_thread(use, wire)


async def test_a_client_in_another_loop_is_told_so_at_once(tmp_path: Path) -> None:
    """A connection belongs to the loop that it was opened in."""
    async with wire_server(tmp_path) as wire, AsyncClient.by(str(wire.places.bind), wire.credentials, HASTY) as client:
        await client.status()

        async def ask_there() -> None:
            await client.status()

        with pytest.raises(UsageError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(ask_there()))
        await client.status()


def test_a_traceback_ends_with_the_remedy() -> None:
    """An error is shown with it by Python itself, the last one that it was given."""
    error = NoServer("no server runs", remedy="Start one.")
    assert "".join(traceback.format_exception(error)).endswith("NoServer: no server runs\nStart one.\n")
    assert "".join(traceback.format_exception(error.advise("Wait."))).endswith("no server runs\nWait.\n")


def test_a_program_that_forgets_to_close_ends_all_the_same(tmp_path: Path) -> None:
    """A script whose client found no server ends with the error, at once and with its remedy."""
    script = "from batos import Client\nclient = Client()\nclient.ask('why?')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 1, done.stderr
    assert "NoServer: no server runs for the home" in done.stderr
