"""Storages behind a server, ZEO and PostgreSQL: each server is asked what it is before an image is opened on it."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import zodburi

from batos.image.writer import back_off
from batos.notation import mask_passwords
from batos.protocol.errors import ConfigError, ImageError

#: A function that opens the storage, and the keyword arguments of its database.
Resolved: TypeAlias = tuple[Callable[[], Any], dict[str, object]]

#: Seconds that a database server may take to answer, a whole number.
_SERVER_SECONDS: Final = 5
#: Version of ZEO's protocol that has everything asked here, and of PostgreSQL as its server counts (13.0).
_OLDEST_ZEO: Final = 5
_OLDEST_POSTGRES: Final = 130_000

#: Sessions of one database beside those of its connections: those of commits, and of a pack.
_SESSIONS_BESIDE: Final = 4
#: Tries to lock a table that is not free, and the seconds between two of them.
_TRIES: Final = 30
_PAUSE: Final = 0.2
#: Times that an opening is tried while other nodes make the tables.
_OPENINGS: Final = 10

#: Port of a zeo:// URI that names none.
_ZEO_PORT: Final = 9991


def resolve_zeo(uri: str, installed: Callable[[str], object] = find_spec) -> Resolved:
    """Return what opens the storage of a zeo:// URI; it asks the server before.

    Each transaction begins with a round trip to the server (`server_sync`): without it a process that was just told of
    another's commit may still begin before that. Raises: ConfigError: msgpack is not installed, or the URI is wrong.
    """
    if installed("msgpack") is None:
        raise _without_extra("zeo")
    parts = urlsplit(uri)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "server_sync" in given:
        raise ValueError("unknown keyword 'server_sync'; it is always set")
    wait = int(given.setdefault("wait_timeout", str(_SERVER_SECONDS)))
    opened, keywords = zodburi.resolve_uri(parts._replace(query=urlencode(given)).geturl())
    address = (parts.hostname or "", parts.port or _ZEO_PORT) if parts.netloc else unquote(parts.path)

    def opening() -> Any:
        _check_zeo(uri, address, wait)
        storage = opened()
        # The URI has no word for it, and the storage reads it anew at each transaction.
        storage.server_sync = True
        storage.sync = storage.ping
        return storage

    return opening, keywords


def _check_zeo(uri: str, address: tuple[str, int] | str, seconds: float) -> None:
    """Read the first words of a ZEO server, which name its protocol; nothing that it sends is unpickled.

    Raises: ImageError: nothing answers, it is no ZEO server, it is too old, or it speaks pickle.
    """
    try:
        greeting = _greeting(address, seconds)
    except OSError as error:
        raise not_there(uri, error) from error
    found = re.fullmatch(rb"\0\0\0.([MZ])(\d+)", greeting, re.DOTALL)
    if found is None:
        raise ImageError(
            f"what answers at {mask_passwords(uri)} is no ZEO server",
            remedy="Correct the address: it is the one that `runzeo -a` was given.",
        )
    if int(found[2]) < _OLDEST_ZEO:
        raise ImageError(
            f"the ZEO server at {mask_passwords(uri)} is too old (protocol {int(found[2])}, needed {_OLDEST_ZEO})",
            remedy="Install ZEO 6 where it runs.",
        )
    if found[1] == b"Z":
        raise ImageError(
            f"the ZEO server at {mask_passwords(uri)} speaks pickle, which is not read from others",
            remedy="Put `msgpack true` into the <zeo> section of its configuration, or start it with ZEO_MSGPACK=1.",
        )


def _greeting(address: tuple[str, int] | str, seconds: float) -> bytes:
    """Return the first message of a server with its length before it, or what came of it."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    if isinstance(address, str):
        connection = socket.socket(family)
        connection.settimeout(seconds)
        connection.connect(address)
    else:
        connection = socket.create_connection(address, timeout=seconds)
    with connection:
        read = b""
        while len(read) < 4 or len(read) < 4 + int.from_bytes(read[:4], "big") < 64:
            more = connection.recv(64)
            if not more:
                break
            read += more
        return read


def resolve_postgres(uri: str, connections: int, installed: Callable[[str], object] = find_spec) -> Resolved:
    """Return what opens the storage of a postgres:// URI for a number of connections; it asks the server before.

    Blobs are kept in the database: a folder that is shared by all would be one more thing to back up.
    Raises: ConfigError: the packages are not installed, or the URI asks for what an image cannot live in.
    """
    if installed("relstorage") is None or installed("psycopg2") is None:
        raise _without_extra("postgres")
    parts = urlsplit(uri)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if given.setdefault("keep_history", "true") not in ("true", "1"):
        raise ConfigError(
            "an image keeps its history: undo, as-of and audit read it", field="image", remedy="Drop keep_history."
        )
    given.setdefault("shared_blob_dir", "false")
    given.setdefault("connect_timeout", str(_SERVER_SECONDS))
    given.setdefault("driver", "psycopg2")
    opened, keywords = zodburi.resolve_uri(parts._replace(query=urlencode(given)).geturl())

    def opening() -> Any:
        check_postgres(uri, connections + _SESSIONS_BESIDE)
        errors = import_module("psycopg2")
        for attempt in range(1, _OPENINGS):
            try:
                return opened()
            except errors.OperationalError:
                raise
            except errors.Error:  # another node makes the tables of a new database just now
                back_off(attempt)
        return opened()

    return opening, keywords


def count_sessions(image: str, journal: str, connections: tuple[int, int]) -> tuple[int, int]:
    """Return the sessions that a node may need on the PostgreSQL server of its image, and those that this has for all.

    `connections` are those to the image, and to the journal. Both are 0 where the image is on no such server.
    """
    if not image.startswith("postgres://"):
        return 0, 0
    parts = urlsplit(image)
    is_same = urlsplit(journal).netloc.rpartition("@")[2] == parts.netloc.rpartition("@")[2]
    _, limit, reserved, _, _ = _ask(parts)
    return sum(each + _SESSIONS_BESIDE for each in connections[: 1 + is_same]), limit - reserved


def check_postgres(uri: str, sessions: int, oldest: int = _OLDEST_POSTGRES) -> None:
    """Ask a PostgreSQL server if an image can live there and `sessions` of it are free.

    Raises: ImageError: it does not answer, refuses the account or is too old. ConfigError: it ends long transactions,
    or has too few sessions.
    """
    try:
        version, limit, reserved, used, ends = _ask(urlsplit(uri))
    except import_module("psycopg2").Error as error:
        raise not_there(uri, error) from error
    shown = mask_passwords(uri)
    if version < oldest:
        raise ImageError(
            f"the PostgreSQL server at {shown} is too old ({version // 10_000}, needed {oldest // 10_000})",
            remedy=f"Use PostgreSQL {oldest // 10_000} or newer.",
        )
    if ends:
        raise ConfigError(
            f"the server at {shown} ends a session that is idle in a transaction, as each mission's is while it thinks",
            field="image",
            remedy="Set idle_in_transaction_session_timeout = 0 for this database (ALTER DATABASE ... SET ...).",
        )
    free = limit - reserved - used
    if sessions > free:
        raise ConfigError(
            f"the server at {shown} has {max(free, 0)} sessions left of {limit}, and {sessions} may be needed here",
            field="missions",
            remedy="Lower --missions (one session of each database for each), or raise the server's max_connections.",
        )


def _connect(parts: SplitResult) -> Any:
    """Open a session of a PostgreSQL server."""
    given = {
        "host": parts.hostname,
        "port": parts.port,
        "user": parts.username and unquote(parts.username),
        "password": parts.password and unquote(parts.password),
        "dbname": parts.path[1:],
        "connect_timeout": int(dict(parse_qsl(parts.query)).get("connect_timeout", _SERVER_SECONDS)),
    }
    return import_module("psycopg2").connect(**{name: value for name, value in given.items() if value})


def _ask(parts: SplitResult) -> tuple[int, int, int, int, bool]:
    """Return a server's version, its limit of sessions, the reserved and used ones, and if it ends idle ones."""
    connection = _connect(parts)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('max_connections')::int, "
                "current_setting('superuser_reserved_connections')::int, "
                "(SELECT count(*) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()), "
                "current_setting('idle_in_transaction_session_timeout') <> '0'"
            )
            limit, reserved, used, ends = cursor.fetchone()
            return connection.server_version, limit, reserved, used, ends
    finally:
        connection.close()


def vacuum_postgres(uri: str, tries: int = _TRIES) -> None:
    """Let PostgreSQL write the files of all tables anew, so that none has what was deleted; also of large objects.

    Each table is locked meanwhile. A table that is not free within a second is tried again: nobody waits longer.
    Raises: ImageError: the server does not answer, a table was never free, or the account may not do it.
    """
    errors = import_module("psycopg2").Error
    shown = mask_passwords(uri)
    try:
        connection = _connect(urlsplit(uri))
    except errors as error:
        raise not_there(uri, error) from error
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
            cursor.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
                "WHERE schemaname = ANY (current_schemas(false)) ORDER BY 1"
            )
            for table in (*(row[0] for row in cursor.fetchall()), "pg_catalog.pg_largeobject"):
                _vacuum(cursor, table, tries)
    except errors as error:
        what = f"the tables at {shown} were not written anew: {str(error).strip()}"
        raise ImageError(what, remedy="Run VACUUM FULL there.") from error
    finally:
        connection.close()
    if any("skipping" in each for each in connection.notices):
        what = f"the account at {shown} may not write all tables anew"
        raise ImageError(what, remedy="Run VACUUM FULL there as the owner of the database.")


def _vacuum(cursor: Any, table: str, tries: int) -> None:
    not_free = import_module("psycopg2.errors").LockNotAvailable
    for left in reversed(range(tries)):
        try:
            cursor.execute(f"VACUUM FULL {table}")
        except not_free:
            if not left:
                raise
            time.sleep(_PAUSE)
        else:
            return


def not_there(uri: str, error: Exception) -> ImageError:
    """Make the error for a server that does not answer, or that refuses."""
    return ImageError(
        f"no database server answers at {mask_passwords(uri)}: {mask_passwords(str(error).strip())}",
        remedy="Start it, or correct the address; wait_timeout in the URI says how many seconds it may take.",
    )


def _without_extra(extra: str) -> ConfigError:
    return ConfigError(
        f"{extra}:// needs a package that is not installed",
        field="image",
        remedy=f"Install the extra: pip install 'batos[{extra}]'.",
    )
