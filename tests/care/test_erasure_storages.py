"""Erasure on servers: no row, no large object, no file of a table and no file that a pack leaves has the secret."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.care.byte_scan import files_with, has
from tests.care.secret_mind import SECRET, ask, tell, told_mind
from tests.image.servers import ask_postgres, postgres_server, zeo_server, zeo_uri

from batos.image.transactions import snapshot

#: The tests start and remove servers on the loop, as no program does.

NEEDLE = SECRET.encode()


def asked(address: str, database: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a statement returns."""
    connection = import_module("psycopg2").connect(address.replace("postgres://", "postgresql://", 1) + database)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found
    finally:
        connection.close()


def rows(address: str, database: str) -> Iterator[tuple[str, bytes]]:
    """Every value of bytes or text in the tables of a database, and every large object, with where it stands."""
    columns = asked(
        address,
        database,
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = 'public' AND data_type IN ('bytea', 'text', 'character varying', 'character')",
    )
    for table, column in columns:
        for (value,) in asked(address, database, f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL'):
            yield f"{database} {table}", value.encode() if isinstance(value, str) else bytes(value)
    for (value,) in asked(address, database, "SELECT lo_get(oid) FROM pg_largeobject_metadata"):
        yield f"{database} large object", bytes(value)


def rows_with(address: str) -> set[str]:
    """Where rows of both databases have the secret."""
    return {
        place for database in ("image", "journal") for place, value in rows(address, database) if has(value, NEEDLE)
    }


def table_files_with(address: str) -> set[str]:
    """The files of both databases that have the secret; all that is in the server's memory is written first."""
    ask_postgres(address, "CHECKPOINT")
    ((top,),) = asked(address, "postgres", "SHOW data_directory")
    databases = asked(address, "postgres", "SELECT oid FROM pg_database WHERE datname IN ('image', 'journal')")
    return {each for (oid,) in databases for each in files_with(Path(top) / "base" / str(oid), NEEDLE)}


async def test_no_row_and_no_table_file_of_postgresql_has_it(tmp_path: Path) -> None:
    """Nor a large object, of both databases; other answers stay."""
    with postgres_server() as address:
        ask_postgres(address, "CREATE DATABASE image", "CREATE DATABASE journal")
        uris = {"image": f"{address}image?blob_dir={tmp_path / 'cache'}", "journal": f"{address}journal"}
        async with told_mind(tmp_path, **uris) as (mind, home):
            missions = await tell(mind, home)
            before = await asyncio.to_thread(rows_with, address)
            assert before >= {"image object_state", "journal object_state", "image large object"}
            assert await asyncio.to_thread(table_files_with, address)
            assert await asyncio.to_thread(files_with, tmp_path / "cache", NEEDLE)
            told = await mind.ask("erase", target=SECRET, user="tester")
            assert told["found"] == []
            assert await asyncio.to_thread(rows_with, address) == set()
            assert await asyncio.to_thread(table_files_with, address) == set()
            assert await asyncio.to_thread(files_with, tmp_path / "cache", NEEDLE) == set()
            assert await asyncio.to_thread(files_with, home, NEEDLE) == set()
            places = {each["place"] for each in told["left"]}
            assert {"PostgreSQL's log of writes", "replicas", "PostgreSQL's tables"} & places == {
                "PostgreSQL's log of writes",
                "replicas",
            }
            assert mind.uvm.readings.mission(missions["other"])["status"] == "done"
            await ask(mind, "Who winds the lamp?")


async def test_no_file_of_a_zeo_server_has_it(tmp_path: Path) -> None:
    """Nor one that its packs leave, nor the cache of this client."""
    served = tmp_path / "served"
    served.mkdir()
    with zeo_server(served) as port:
        uri = zeo_uri(port, f"blob_dir={tmp_path / 'cache'}&cache_size=20mb&client=node&var={tmp_path}")
        async with told_mind(tmp_path, image=uri, journal="") as (mind, home):
            await tell(mind, home)
            before = await asyncio.to_thread(files_with, tmp_path, NEEDLE)
            assert {"served/live_image.fs", "served/journal.fs"} <= before
            assert any(each.startswith("served/live_image.fs.blobs") for each in before)
            told = await mind.ask("erase", target=SECRET, user="tester")
            assert told["found"] == []
            left = await asyncio.to_thread(files_with, tmp_path, NEEDLE)
            assert {each for each in left if not each.startswith("folder/")} == set()
            assert "caches of other nodes" in {each["place"] for each in told["left"]}
            with snapshot(mind.uvm.image.journal_db) as root:
                assert root["missions"]
