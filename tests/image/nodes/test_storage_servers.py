"""What is told when a database server is not there, not what it should be, or has no room; real servers are asked."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from tests.image.open_image import brief, open_image
from tests.image.servers import ask_postgres, free_port, postgres_server, zeo_server, zeo_uri

from batos.image.nodes.storage_servers import check_postgres, resolve_postgres, resolve_zeo, vacuum_postgres
from batos.image.storage import open_database
from batos.protocol.errors import ConfigError, ImageDamaged, ImageError


@contextmanager
def saying(words: bytes) -> Iterator[int]:
    """A server that says one thing and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(words)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("missing", "extra", "resolve"),
    [
        ("msgpack", "zeo", lambda installed: resolve_zeo("zeo://127.0.0.1:1", installed)),
        ("relstorage", "postgres", lambda installed: resolve_postgres("postgres://ada@box/image", 8, installed)),
        ("psycopg2", "postgres", lambda installed: resolve_postgres("postgres://ada@box/image", 8, installed)),
    ],
)
def test_a_storage_without_its_packages_says_which_extra(
    missing: str, extra: str, resolve: Callable[[Callable[[str], object]], object]
) -> None:
    """The error is about the setting, and the remedy is a command."""
    with pytest.raises(ConfigError, match="not installed") as refused:
        resolve(lambda name: None if name == missing else name)
    assert refused.value.exit_code == 2
    assert f"batos[{extra}]" in refused.value.remedy


@pytest.mark.parametrize("address", ["zeo://127.0.0.1:{}", "postgres://ada:secret@127.0.0.1:{}/image"])
def test_no_server_is_there(address: str) -> None:
    """That is told at once, without the password."""
    with pytest.raises(ImageError, match="no database server answers") as refused:
        open_database(address.format(free_port()), connections=1)
    assert "Start it" in refused.value.remedy
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (b"", "no ZEO server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no ZEO server"),
        (b"\0\0\0\x02Z4", "too old"),
        (b"\0\0\0\x04Z310", "pickle"),
        (b"\0\0\0\x02Z5", "pickle"),
    ],
)
def test_what_answers_is_no_server_for_an_image(words: bytes, says: str) -> None:
    """It is known by its first words."""
    with saying(words) as port, pytest.raises(ImageError, match=says):
        open_database(zeo_uri(port), connections=1)


def test_a_zeo_server_that_speaks_pickle_is_refused(tmp_path: Path) -> None:
    """Nothing of it is read; the remedy is the line that its configuration lacks."""
    with zeo_server(tmp_path, msgpack=False) as port, pytest.raises(ImageError, match="speaks pickle") as refused:
        open_database(zeo_uri(port), connections=1)
    assert "msgpack true" in refused.value.remedy


def test_an_image_keeps_its_history() -> None:
    """A database without is refused before the server is asked."""
    with pytest.raises(ConfigError, match="keeps its history"):
        open_database("postgres://ada@127.0.0.1:1/image?keep_history=false", connections=1)


def vacuum_tells_what_it_could_not(server: str) -> None:
    """A table that is never free, and what belongs to another account, are named with the remedy."""
    ask_postgres(server, "CREATE TABLE kept (x text)", "CREATE ROLE guest LOGIN")
    vacuum_postgres(f"{server}postgres")
    guest = server.replace("batos@", "guest@")
    with pytest.raises(ImageError, match="may not write all tables anew"):
        vacuum_postgres(f"{guest}postgres")
    with pytest.raises(ImageError, match="no database server answers"):
        vacuum_postgres(f"{server}nowhere")
    holder = import_module("psycopg2").connect(server.replace("postgres://", "postgresql://") + "postgres")
    with holder.cursor() as cursor:
        cursor.execute("SELECT * FROM kept")
        with pytest.raises(ImageError, match="not written anew") as refused:
            vacuum_postgres(f"{server}postgres", tries=2)
    assert "VACUUM FULL" in str(refused.value.remedy)
    holder.close()


def test_a_postgres_server_is_asked_if_an_image_can_live_there() -> None:
    """Its version, its sessions, what it does to long transactions, and if the database is there."""
    with postgres_server(sessions=20) as server:
        address = server + "postgres"
        check_postgres(address, 12)
        with pytest.raises(ImageError, match=r"too old \(\d+, needed 99\)"):
            check_postgres(address, 12, oldest=990_000)
        with pytest.raises(ConfigError, match="sessions left of 20") as few:
            open_database(address, connections=30)
        assert few.value.field == "missions"
        with pytest.raises(ImageError, match="does not exist"):
            open_database(server + "nowhere", connections=1)
        vacuum_tells_what_it_could_not(server)
        ask_postgres(server, "ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1min'")
        with pytest.raises(ConfigError, match="idle in a transaction"):
            open_database(address, connections=1)


async def test_no_password_is_told(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither by the error for a journal that is another image's nor by any line of a log, though it has blanks."""
    caplog.set_level(logging.DEBUG)
    with postgres_server() as server:
        ask_postgres(server, *(f"CREATE DATABASE {name}" for name in ("image", "journal", "other", "others")))
        near = server.replace("batos@", "batos:the%20lamp%20secret@")
        async with open_image(None, image=f"{near}image", journal=f"{near}journal") as image:
            await image.accept(brief())
        async with open_image(None, image=f"{near}other", journal=f"{near}others") as image:
            await image.accept(brief())
        with pytest.raises(ImageDamaged, match="not of one home") as damaged:
            async with open_image(None, image=f"{near}image", journal=f"{near}others"):
                pass
    told = [str(damaged.value), damaged.value.remedy, caplog.text, *capfd.readouterr()]
    assert not [each for each in told if "secret" in each or "lamp" in each]
