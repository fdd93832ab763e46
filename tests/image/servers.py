"""Real database servers for tests: a ZEO server in a process of its own, and PostgreSQL in a folder of its own."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.waiting import HANG

#: Settings of a server whose data nobody needs after the test; commits wait for no disk.
_POSTGRES = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
full_page_writes = off
max_connections = {sessions}
shared_buffers = 16MB
"""


def without(what: str) -> None:
    """Skip for want of a server; where CI is set that fails the run."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def free_port() -> int:
    """A port of this machine that nothing uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_server(is_there: Callable[[], bool], what: str) -> None:
    """Look whether a server is there, less and less often: tests do so on their loop, of whose CPU it takes little."""
    began = time.monotonic()
    while not is_there():
        waited = time.monotonic() - began
        assert waited < HANG, f"{what} did not come within {HANG:.0f} s"
        time.sleep(max(0.01, waited / 10))


def await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server answers."""

    def has_answered() -> bool:
        if process.poll() is not None:
            said = log.read_text(errors="replace")
            pytest.fail(f"the server did not start (exit code {process.returncode}):\n{said}", pytrace=False)
        try:
            socket.create_connection(("127.0.0.1", port), timeout=HANG).close()
        except OSError:
            return False
        return True

    await_server(has_answered, f"an answer of the server of {log}")


def zeo_uri(port: int, query: str = "") -> str:
    """An image on a ZEO server of this machine, which may take as long as it likes to answer."""
    return f"zeo://127.0.0.1:{port}?wait_timeout={HANG:.0f}{query and '&'}{query}"


@contextmanager
def zeo_server(folder: Path, *, msgpack: bool = True, port: int | None = None) -> Iterator[int]:
    """A ZEO server of an image ("1") and a journal, on a port of loopback."""
    if find_spec("ZEO") is None or find_spec("msgpack") is None:
        without("no ZEO here: pip install 'batos[zeo]'")
    port = port or free_port()
    configuration, log = folder / "zeo.conf", folder / "zeo.log"
    stores = "".join(
        f"<filestorage {name}>\n  path {folder}/{file}\n  blob-dir {folder}/{file}.blobs\n</filestorage>\n"
        for name, file in (("1", "live_image.fs"), ("journal", "journal.fs"))
    )
    # As docs/operating.md has it, so that a process which a test stops in the middle of a commit holds nobody up.
    limits = f"msgpack {str(msgpack).lower()}\n  transaction-timeout 60"
    configuration.write_text(f"<zeo>\n  address 127.0.0.1:{port}\n  {limits}\n</zeo>\n{stores}", encoding="utf-8")
    command = [sys.executable, "-m", "ZEO.runzeo", "-C", str(configuration)]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file, cwd=folder) as process:
        try:
            await_port(process, port, log)
            yield port
        finally:
            process.kill()


def _programs() -> Path | None:
    """The folder of PostgreSQL's programs: Debian keeps them out of the way."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    named = shutil.which("initdb")
    if found:
        return max(found, key=lambda path: int(path.parent.name.partition(".")[0]))
    return Path(named).resolve().parent if named else None


def _account() -> int | None:
    """The account that runs the server, None for ours: PostgreSQL refuses root."""
    return pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else None


def _memory() -> Path | None:
    """A folder in memory with room for databases, in which their thousands of files are made and removed at once."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > 4 * 2**30 else None


@cache
def _empty_cluster(programs: Path, account: int | None) -> Path:
    """The files of a server without databases, made once: to copy them takes a fifteenth of the time."""
    folder = Path(tempfile.mkdtemp(prefix="batos-postgres-", dir=_memory()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if account is not None:
        os.chown(folder, account, -1)
    made = subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-U", "batos", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"],
        capture_output=True, text=True, check=False, cwd="/", user=account,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return folder / "data"


@contextmanager
def postgres_server(sessions: int = 100) -> Iterator[str]:
    """A PostgreSQL server on loopback; what every address of its databases begins with."""
    programs = _programs()
    if programs is None or find_spec("relstorage") is None or find_spec("psycopg2") is None:
        without("no PostgreSQL here: apt-get install postgresql, and pip install 'batos[postgres]'")
    assert programs is not None
    # Not in pytest's folder: that is closed to the account.
    with tempfile.TemporaryDirectory(prefix="batos-postgres-", dir=_memory(), ignore_cleanup_errors=True) as name:
        folder, account, port = Path(name), _account(), free_port()
        data, log = folder / "data", folder / "log"
        if account is not None:
            os.chown(folder, account, -1)
        subprocess.run(["cp", "-R", _empty_cluster(programs, account), data], check=True, cwd="/", user=account)
        with (data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(_POSTGRES.format(sessions=sessions))
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port)]
        with (
            log.open("wb") as file,
            subprocess.Popen(command, stdout=file, stderr=file, cwd="/", user=account) as process,
        ):
            try:
                await_port(process, port, log)
                address = f"postgres://batos@127.0.0.1:{port}/"
                await_start(address)
                yield address
            finally:
                process.send_signal(
                    signal.SIGQUIT
                )  # its immediate shutdown: it waits for no session, and writes nothing


def await_start(address: str) -> None:
    """Wait until a server that listens takes sessions: a loaded machine may be between the two for a while."""
    error = import_module("psycopg2").OperationalError

    def has_started() -> bool:
        try:
            ask_postgres(address, "SELECT 1")
        except error as refused:
            if "starting up" not in str(refused):
                raise
            return False
        return True

    await_server(has_started, f"the start of {address}")


def ask_postgres(address: str, *statements: str) -> None:
    """Run statements as the owner, each in a transaction of its own."""
    # Only where there is a server: it is an extra.
    connection = import_module("psycopg2").connect(address.replace("postgres://", "postgresql://", 1) + "postgres")
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()
