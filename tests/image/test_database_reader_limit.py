"""Readers of an image on PostgreSQL hold no more sessions than were counted: who comes last waits, or is told why."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import pytest
from tests.image.open_image import brief, open_image
from tests.image.servers import ask_postgres, postgres_server
from tests.waiting import HANG, MOMENT, a_moment

from batos.image import roots
from batos.image.database import ReaderLimit
from batos.image.image import LivingImage
from batos.protocol.errors import Busy


def test_who_comes_last_waits_for_one_that_ends() -> None:
    """And a thread that reads already begins another read at once."""
    limit, read = ReaderLimit(1, patience=HANG), threading.Event()

    def wait() -> None:
        with limit.reading():
            read.set()

    with ThreadPoolExecutor(1) as pool:
        with limit.reading(), limit.reading():
            waiting = pool.submit(wait)
            assert not read.wait(MOMENT)
        waiting.result()
        assert read.is_set()


def test_who_waits_too_long_is_told_what_to_do() -> None:
    """A later try is let through."""
    limit = ReaderLimit(1, patience=0.01)  # any pace: the other read ends after it alone

    def read() -> None:
        with limit.reading():
            pass

    with ThreadPoolExecutor(1) as pool:
        with limit.reading(), pytest.raises(Busy, match="1 others have read") as refused:
            pool.submit(read).result()
        assert "another node" in refused.value.remedy
        pool.submit(read).result()


async def test_the_event_loop_never_waits() -> None:
    """All else would wait with it."""
    limit = ReaderLimit(1, patience=0.01)  # any pace: one that waited would wait in vain
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(limit.reading())


async def test_an_image_is_closed_under_no_thread_that_reads() -> None:
    """A task that waits for a thread may be cancelled and be done long before the thread is."""
    reads, goes_on, read = threading.Event(), threading.Event(), list[int]()
    with ThreadPoolExecutor(2) as pool:
        async with open_image(None) as image:

            def look() -> None:
                with image.snapshot() as root:
                    reads.set()
                    goes_on.wait(HANG)
                    read.append(len(root[roots.MISSIONS]))

            looking = pool.submit(look)
            assert await asyncio.to_thread(reads.wait, HANG)
            closing = pool.submit(image.close)
            await a_moment()
            assert not closing.done()
            goes_on.set()
            await asyncio.wrap_future(closing)
        looking.result()
    assert read == [0]


def sessions(server: str) -> int:
    """The sessions that the server has of the image's database."""
    connection = import_module("psycopg2").connect(server.replace("postgres://", "postgresql://") + "postgres")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'image'")
            return int(cursor.fetchone()[0])
    finally:
        connection.close()


@pytest.mark.blocks_loop  # opening is a burst of CPU
async def test_many_readers_of_postgresql_hold_few_sessions() -> None:
    """Forty at once all read, on no more sessions than a node of this image may need."""
    with postgres_server(sessions=30) as server:
        ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
        async with open_image(None, image=f"{server}image", journal=f"{server}journal", missions=1) as image:
            mission = await image.accept(brief())
            database: Any = image.db
            database.readers._patience = HANG
            most, together = [0], threading.Barrier(3, timeout=HANG)

            def read(image: LivingImage, number: int) -> str:
                with image.snapshot() as root:
                    if number < 3:  # so many are let in
                        together.wait()
                        most.append(sessions(server))
                    return str(image.find(root, mission)[1].word)

            with ThreadPoolExecutor(40) as pool:
                loop = asyncio.get_running_loop()
                reading = [loop.run_in_executor(pool, read, image, number) for number in range(40)]
                assert set(await asyncio.gather(*reading)) == {"queued"}
            needed = 1 + 8 + 4  # missions, beside them, those of commits
            assert 3 <= max(most) <= needed
