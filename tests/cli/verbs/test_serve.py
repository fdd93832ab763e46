"""`batos serve` as people run it: what it prints, who finds it, how it stops, and what it leaves for the next one."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from tests.cli.doors.serving import PATIENT
from tests.cli.processes import WITH_MODELS, User, emulator, status_with_daemon
from tests.cli.wire_server import ANY, eventually
from tests.fork_server import ForkedCommand
from tests.waiting import HANG, a_moment, wait_until

from batos.cli.verbs.serve import IdleEnd, go_on, has_work, open_server
from batos.client import addresses
from batos.client.clients import AsyncClient
from batos.client.keys import Keyring
from batos.config import Settings
from batos.image import roots
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import ConfigError, ImageBusy
from batos.server.zmq.server import Server
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams


@contextmanager
def server(user: User, *arguments: str) -> Iterator[ForkedCommand]:
    """`batos serve` as a process that really listens."""
    process = user.start("serve", "--bind", ANY, "--events", ANY, *arguments)
    try:
        wait_until(
            lambda: addresses.running_server(user.home) is not None or process.poll() is not None, "a server's note"
        )
        assert process.poll() is None, (process.poll(), process.communicate())
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


def test_status_asks_the_daemon_each_time(user: User) -> None:
    """Ready while it answers; once it is gone that is said, nothing lies in memory, and --ready exits with 3."""
    assert user.run("status", "--ready").code == 6
    with ExitStack() as stack:
        daemon = stack.enter_context(ExitStack())
        there = User(user.home, daemon.enter_context(emulator(*WITH_MODELS)))
        stack.enter_context(server(there))
        assert there.run("ask", "-q", "--effort", "reflex", "What is water?").code == 0
        # A daemon that has not answered within 1.5 s is told not to: each look is waited for.
        wait_until(lambda: there.run("status", "--ready").code == 0, "a daemon that answers")
        found = status_with_daemon(there)
        assert (found["ready"], found["ollama"]["missing"]) == (True, [])
        wait_until(lambda: "memory   batos-" in there.run("status").out, "its memory in the status")
        daemon.close()
        told = there.run("status").out
        assert "which does not answer" in told
        assert "memory   " not in told
        unreachable = (3, "ollama_unreachable")
        wait_until(lambda: readiness(there) == unreachable, "the error of a daemon that is gone")


def readiness(user: User) -> tuple[int, str]:
    """How `status --ready` fails."""
    ran = user.run("status", "--ready", "--json")
    return ran.code, ran.document["error"]["code"]


def test_a_server_is_found_by_its_home_and_stops_in_order(user: User) -> None:
    """It says where it listens; a question goes through it; a second server is refused; Ctrl-C leaves no note."""
    with server(user, "--json") as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())["data"]
        assert (told["pid"], told["bind_by"]) == (process.pid, "plain")
        assert (user.home / "server.json").stat().st_mode & 0o777 == 0o600
        asked = user.run("ask", "What is water?", "--json", "-q")
        assert asked.document["data"]["status"] == "done"
        second = user.run("serve", "--json", environ={"BATOS_BUSY_SECONDS": "0"})
        assert (second.code, second.document["error"]["code"]) == (5, "image_busy")
        assert str(process.pid) in second.document["error"]["message"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert (process.returncode, out) == (0, ""), err
    assert not (user.home / "server.json").exists()
    assert not (user.home / "uploads").exists()


def test_what_runs_goes_back_to_the_queue_and_on_with_the_next_start(user: User) -> None:
    """A server that is killed loses no mission: the next one begins what it finds."""
    with server(user) as process:
        told = user.run("submit", "What is water?", "--json")
        mission = told.document["data"]["id"]
        process.kill()
        process.wait()
        assert (user.home / "server.json").exists()
    with server(user):

        async def ended() -> str:
            async with AsyncClient(user.home, patience=PATIENT) as client:
                return str((await client.wait(mission, seconds=HANG))["status"])

        assert asyncio.run(ended()) == "done"


def test_a_second_signal_stops_at_once(user: User) -> None:
    """As a power cut would: with the code of a signal, and what was accepted is done by the next start."""
    with server(user) as process:
        mission = user.run("submit", "What is water?", "--json").document["data"]["id"]
        process.send_signal(signal.SIGSTOP)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            process.send_signal(number)
        assert process.wait() in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert (user.home / "server.json").exists()
    with server(user):
        assert user.run("wait", mission, "--json", "-q").document["data"]["status"] == "done"


def test_token_and_keys_are_shown_and_made(user: User) -> None:
    """The token on stdout; a key in a file for its owner alone; a key for nobody is refused."""
    shown = user.run("token", "--json").document["data"]
    assert shown["token"] == (user.home / "token").read_text("utf-8").strip()
    assert user.run("token", "-q", "--new").out.strip() != shown["token"]
    of_http = user.run("keys", "new", "webui", "--json").document["data"]
    ring = Keyring(user.home)
    assert ring.owner(ring.public_of_http_key(of_http["key"]) or b"") == "webui"
    assert user.run("keys", "new", "webui2", "--http", "-q").out.strip() != of_http["key"]
    assert user.run("keys", "new", "x", "--http", "--out", "-").code == 2
    assert all(user.run("keys", "revoke", name).code == 0 for name in ("webui", "webui2"))
    useless = user.run("keys", "new", "laptop", "--address", "box.local", "--json")
    assert (useless.code, useless.document["error"]["field"]) == (2, "bind")
    file = user.home / "laptop.json"
    beyond = {"BATOS_BIND": "tcp://0.0.0.0:7717"}
    made = user.run("keys", "new", "laptop", "--address", "box.local", "--out", str(file), "--json", environ=beyond)
    assert made.document["data"] == {"name": "laptop", "file": str(file), "bind": "tcp://box.local:7717"}
    assert file.stat().st_mode & 0o777 == 0o600
    again = user.run("keys", "new", "laptop", "--out", str(file), "--json", environ=beyond)
    assert again.document["error"]["field"] == "out"
    piped = user.run("keys", "new", "pipe", "--out", "-", environ=beyond)
    assert json.loads(piped.out)["endpoint"] == "tcp://127.0.0.1:7717"
    told = user.run("keys", "new", "here", "--out", str(user.home / "here.json"), environ=beyond).err
    assert "--address HOST" in told
    assert user.run("keys", "revoke", "here").code == 0
    assert "which is beyond loopback: a key is needed there" in user.run("token", environ=beyond).err
    assert "by PLAIN to tcp://127.0.0.1" in user.run("token").err
    misplaced = user.run("keys", "--json", "new", "other", environ=beyond)
    assert (misplaced.code, "unexpected extra" in misplaced.out) == (2, True), "its options would be lost"
    assert [key["name"] for key in user.run("keys", "--json").document["data"]["keys"]] == ["laptop", "pipe"]
    assert user.run("keys", "revoke", "pipe").code == 0
    assert "laptop" in user.run("keys").out
    assert user.run("keys", "revoke", "pipe", "--json").document["error"]["code"] == "not_found"


def test_a_key_is_for_the_server_that_runs_and_no_other(user: User) -> None:
    """It may listen elsewhere than the settings say. Another image beside it is no sign that it has ended."""
    with server(user, "--bind", "tcp://0.0.0.0:*"):
        port = json.loads((user.home / "server.json").read_text("utf-8"))["bind"].rpartition(":")[2]
        file = user.home / "tab.json"
        made = user.run("keys", "new", "tab", "--address", "box.local", "--out", str(file), "--json")
        assert made.document["data"]["bind"] == f"tcp://box.local:{port}"
        looked = user.run("status", "--image", f"file://{user.home}/live_image.fs?blobstorage_dir={user.home}/blobs")
    assert "has ended" not in looked.err


# -- in this process


@pytest.mark.parametrize(("setting", "text"), [("bind", "ipc:///tmp/x"), ("events", "tcp://eth0:1")])
async def test_a_wrong_place_is_refused_before_the_image_is_opened(tmp_path: Path, setting: str, text: str) -> None:
    """The setting is named, and nothing is made."""
    settings = Settings(home=tmp_path, image="memory://image", bind=ANY, events=ANY).model_copy(update={setting: text})
    with pytest.raises(ConfigError) as refused:
        async with open_server(settings, Seams(bridge=ScriptedBridge())):
            pass
    assert refused.value.field == setting
    assert not (tmp_path / "token").exists()


async def test_the_start_of_a_server_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """A piece of a file that was on its way is nobody's any more."""
    left = tmp_path / "uploads" / "piece"
    left.parent.mkdir()
    left.write_bytes(b"x")
    settings = Settings(home=tmp_path, user="tester", image="memory://image", bind=ANY, events=ANY)
    async with open_server(settings, Seams(bridge=ScriptedBridge())):
        assert not left.exists()


async def test_a_home_has_one_server(tmp_path: Path) -> None:
    """A second one is told which process the first one is, even where each would have an image of its own."""
    settings = Settings(home=tmp_path, user="tester", image="memory://image", bind=ANY, events=ANY)
    async with open_server(settings, Seams(bridge=ScriptedBridge())) as (uvm, places):
        with pytest.raises(ImageBusy, match="the server of process"):
            async with open_server(settings, Seams(bridge=ScriptedBridge())):
                pass
        async with AsyncClient(tmp_path, patience=PATIENT) as client:
            told = (await client.status())["server"]
            assert (told["bind"], told["user"]) == (str(places.bind), "tester")
        assert uvm.settings is settings
    assert addresses.read_record(tmp_path) is None


async def test_a_server_that_stops_leaves_a_mission_to_the_next_one(tmp_path: Path) -> None:
    """Stopped in the middle of an answer: the mission is queued, and its asker has it from the next server."""
    held, told = asyncio.Event(), list[str]()

    class HeldBridge(ScriptedBridge):
        async def think(
            self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
        ) -> Answer:
            await held.wait()
            return await super().think(request, on_token, stream=stream)

    settings = Settings(home=tmp_path, user="tester", bind=ANY, events=ANY)
    bridge = HeldBridge()
    async with open_server(settings, Seams(bridge=bridge)) as (uvm, _):
        await uvm.readiness.genesis()
        client = AsyncClient(tmp_path, patience=PATIENT)
        await client.__aenter__()
        asked = asyncio.create_task(client.ask("why?", lambda event, keys: told.append(event), effort="reflex"))
        await eventually(lambda: "inference.start" in told)
        await uvm.workers.stop()
        assert [each["status"] for each in uvm.readings.newest()] == ["queued"]
    held.set()
    async with open_server(settings, Seams(bridge=bridge)) as (uvm, _):
        assert (await asked)["status"] == "done"
        assert len(uvm.readings.newest()) == 1
    assert "connection.restored" in told
    await client.close()


async def test_what_a_client_ends_before_it_is_begun_again_ends_no_server(tmp_path: Path) -> None:
    """The server listens before all that was left is begun; one cancelled or paused by then stays so."""
    async with scripted_uvm(tmp_path) as uvm:
        for number in range(4):
            await uvm.missions.submit({"text": f"Why {number}?", "effort": "reflex"})
        left = await uvm.missions.recover()
        await uvm.missions.cancel(left[1])
        await uvm.missions.pause(left[2])
        await go_on(uvm, left)
        assert [(await uvm.missions.wait_for_end(each))["status"] for each in left] == [
            "done",
            "cancelled",
            "paused",
            "done",
        ]


@dataclass
class PlayedServer:
    """What the end looks at of a server."""

    under_way: int = 0
    is_watched: bool = False
    heard: float = field(default=0.0)


async def test_an_idle_server_ends_and_a_busy_one_does_not(tmp_path: Path) -> None:
    """A request, a watcher and a mission that waits keep it; a home that is gone ends it nevertheless."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        server, there = PlayedServer(), [True]
        end = IdleEnd(uvm, cast("Server", server), lambda: there[0], 0.02)
        await end.wait()
        for busy in (PlayedServer(under_way=1), PlayedServer(is_watched=True)):
            waiting = asyncio.ensure_future(IdleEnd(uvm, cast("Server", busy), lambda: there[0], 0.02).wait())
            await a_moment()
            assert not waiting.done()
            busy.under_way, busy.is_watched = 0, False
            await waiting
        await uvm.missions.submit({"text": "What is water?", "user": "ada"}, begin=False)
        with uvm.image.snapshot() as root:
            assert has_work(root)
        waiting = asyncio.ensure_future(end.wait())
        await a_moment()
        assert not waiting.done()
        there[0] = False
        await waiting


async def test_a_method_that_is_to_be_made_is_work(tmp_path: Path) -> None:
    """So is an effect that waits, or an erasure; a fresh mind has none."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        with uvm.image.snapshot() as root:
            assert not has_work(root)

        def wish(root: roots.Root) -> None:
            root[roots.WISHES]["a method"] = {"holder": "", "selector": "guess_", "intent": "", "arguments": []}

        await uvm.image.writer.apply(wish)
        with uvm.image.snapshot() as root:
            assert has_work(root)
