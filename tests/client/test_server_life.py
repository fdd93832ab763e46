"""The life of a home's server, with real processes: one start for many, kills between start and answer, its own end."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import zmq
from tests.waiting import wait_until

from batos.client import addresses, server_life
from batos.client.addresses import ServerRecord
from batos.client.clients import AsyncClient, Client
from batos.client.server_connection import ServerConnection
from batos.config import Settings
from batos.protocol.errors import BatosError, NoServer, Refused


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose server may be started, and is stopped at the end."""
    own_home.mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("BATOS_SERVER", "auto")
    yield own_home
    if own_home.exists():
        server_life.stop(own_home)


def _removed(home: Path) -> bool:
    """Whether a folder is gone that a process may write to meanwhile, after another try to remove it."""
    shutil.rmtree(home, ignore_errors=True)
    return not home.exists()


def ended(running: ServerRecord) -> bool:
    """Whether the server's process is gone."""
    return addresses.birth_time(running.pid) != running.born


def test_many_start_one_server_whose_files_are_the_owners(home: Path) -> None:
    """All find the same process; it works in an empty folder, apart from its starter, and holds the lock no more."""
    with ThreadPoolExecutor() as pool:
        found = set(pool.map(lambda _: server_life.ensure(home), range(4)))
    (running,) = found
    assert running.by == "verb"
    for file in (home / server_life.LOCK, home / "logs" / server_life.LOG):
        assert file.stat().st_mode & 0o777 == 0o600
    assert Path(f"/proc/{running.pid}/cwd").resolve() == (home / server_life.FOLDER).resolve()
    assert list((home / server_life.FOLDER).iterdir()) == []
    assert os.getsid(running.pid) != os.getsid(0)
    environ = Path(f"/proc/{running.pid}/environ").read_bytes().split(b"\0")
    names = {each.partition(b"=")[0].decode() for each in environ if each}
    taken = {name for name in names if not name.startswith("BATOS_")}
    assert taken <= {
        "OLLAMA_HOST",
        "HOME",
        "LANG",
        "TZ",
        "PYTHONPATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    }  # the shell's too
    with server_life.HomeLock(home) as lock:
        assert lock.take()


def test_a_server_that_is_killed_before_it_answers_is_started_again(home: Path) -> None:
    """Its starter sees that the lock is free, and that nothing was said; the next process has it."""
    with ThreadPoolExecutor() as pool:
        begun = pool.submit(server_life.ensure, home)
        first = wait_until(lambda: _started(home), "a process")
        os.kill(first, signal.SIGKILL)
        assert begun.result().pid != first


def test_a_starter_that_is_gone_leaves_its_server(home: Path) -> None:
    """The lock went over to the server: whoever comes next waits for that one."""
    lock = server_life.HomeLock(home)
    assert lock.take()
    server_life._spawn(home, lock.descriptor)
    lock.close()
    with server_life.HomeLock(home) as other:
        assert not other.take()
    first = wait_until(lambda: _started(home), "a process")
    assert server_life.ensure(home).pid == first


def _started(home: Path) -> int:
    """The process that is being started for a home; 0 before there is one."""
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
                own = f"BATOS_HOME={home}".encode() in (each / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if own and b"--started" in words and words[0] != b"/bin/sh":
                return int(each.name)
    return 0


def test_what_keeps_it_from_starting_is_raised(home: Path) -> None:
    """As it was told by the process that could not, and once."""
    (home / "live_image.fs").write_bytes(b"no image")
    with pytest.raises(BatosError) as raised:
        server_life.ensure(home)
    assert raised.value.exit_code == 5
    assert addresses.running_server(home) is None


def test_it_ends_when_it_is_idle_and_with_its_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time that the setting names; a home that is deleted has no server either."""
    monkeypatch.setenv("BATOS_IDLE_SECONDS", "0.2")
    running = server_life.ensure(home)
    wait_until(lambda: ended(running), "its end")
    assert addresses.read_record(home) is None
    monkeypatch.setenv("BATOS_IDLE_SECONDS", "9")
    running = server_life.ensure(home)
    wait_until(lambda: _removed(home), "a home that is gone")
    wait_until(lambda: ended(running), "its end")
    assert not home.exists()


def test_a_client_starts_it_and_again_when_it_is_lost(home: Path) -> None:
    """Two homes have two servers side by side, each with ports that were free."""
    other = home.with_name("other")
    other.mkdir(mode=0o700)
    try:
        with Client() as client, Client(other) as second:
            first = client.hello()["pid"]
            assert second.hello()["pid"] != first
            os.kill(first, signal.SIGKILL)
            assert client.hello()["pid"] != first
    finally:
        server_life.stop(other)


def _takes_nothing(connection: ServerConnection) -> bool:
    """Whether a connection has no server any more; looked at without the loop, which hears of it later."""
    return not int(connection._socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT


async def test_a_request_at_the_moment_of_the_loss_is_sent_when_the_server_is_back(home: Path) -> None:
    """Nothing of it went out, so that a change is made too; nobody is told that the server is busy."""
    asked: dict[str, dict[str, str]] = {"hello": {}, "grants_add": {"kind": "http", "target": "http://127.0.0.1:19/"}}
    async with AsyncClient() as client:
        for verb, args in asked.items():
            pid = (await client.hello())["pid"]
            lost = client._line._connection
            assert lost is not None
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(_takes_nothing, lost), "the loss")
            assert await client.call(verb, args)  # before the loop has heard of the loss
            assert client._line._connection is not lost


def test_who_says_never_has_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for a verb nor for a program."""
    monkeypatch.setenv("BATOS_SERVER", "never")
    with pytest.raises(NoServer), Client():
        pass
    for server, image, environ, may in (
        ("auto", "", {"CI": "true"}, True),
        ("", "", {"CI": "true"}, False),
        ("never", "", {}, False),
        ("here", "", {}, False),
        ("tcp://127.0.0.1:1", "", {}, False),
        ("auto", "memory://", {}, False),
    ):
        assert server_life.may_start(Settings(home=home, server=server, image=image), environ) is may


def test_a_program_keeps_its_own_server(home: Path) -> None:
    """Whoever has a server in its own process ends it; a signal would end the program."""
    mine = ServerRecord(
        os.getpid(), addresses.birth_time(os.getpid()) or "", "", "tcp://127.0.0.1:1", "tcp://127.0.0.1:2", "plain",
        "plain", "0",
    )  # fmt: skip
    addresses.write_record(home, mine)
    with pytest.raises(Refused):
        server_life.stop(home)
    addresses.remove_record(home, mine)
