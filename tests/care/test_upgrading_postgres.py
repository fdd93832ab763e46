"""An older image on PostgreSQL is upgraded there, and the mission that its version left behind is finished."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from tests.care.kept_homes import OLDEST, unpack
from tests.care.test_upgrading import calls_paid, finish_what_was_in_flight, upgrade
from tests.image.servers import ask_postgres, postgres_server
from ZODB.FileStorage import FileStorage

from batos.care.upgrading import home_upgrading, plan_upgrade
from batos.config import Settings
from batos.image import roots
from batos.image.evolving import Upgrading
from batos.image.nodes.storage_servers import resolve_postgres
from batos.protocol.errors import OldFormat
from batos.testing import emulated_uvm

#: Opening and comparing whole minds is a burst of CPU.
pytestmark = pytest.mark.blocks_loop


def copy(file: Path, blobs: Path | None, uri: str) -> None:
    """Copy every commit of a file into a database, as the tools of RelStorage do."""
    opened, _ = resolve_postgres(uri, 1)
    blob_dir = None if blobs is None else str(blobs)
    with closing(FileStorage(str(file), read_only=True, blob_dir=blob_dir)) as source, closing(opened()) as target:
        target.copyTransactionsFrom(source)


async def test_a_kept_image_is_upgraded_on_postgresql(tmp_path: Path) -> None:
    """Only when a person says so; nothing is lost, no fault is found, and no call of its mission is paid for again."""
    told = await asyncio.to_thread(unpack, OLDEST, home := tmp_path / "home")
    paid = await asyncio.to_thread(calls_paid, home, told["killed"])
    assert paid
    with postgres_server() as server:
        ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
        image, journal = f"{server}image?blob_dir={tmp_path / 'cache'}", f"{server}journal"
        await asyncio.to_thread(copy, home / "live_image.fs", home / "blobs", image)
        await asyncio.to_thread(copy, home / "journal.fs", None, journal)
        for file in home.glob("*.fs*"):
            file.unlink()
        settings = Settings(home=home, image=image, journal=journal)
        planned = await asyncio.to_thread(plan_upgrade, settings, None)
        assert (planned["format"], [each["format"] for each in planned["steps"]]) == (1, [2, 3, 4])
        with pytest.raises(OldFormat) as refused:
            await upgrade(settings, home_upgrading(settings))
        assert "batos upgrade --no-backup" in refused.value.remedy
        await upgrade(settings, Upgrading(tell=lambda what: None))
        assert (await asyncio.to_thread(plan_upgrade, settings, None))["format"] == roots.FORMAT
        async with emulated_uvm(home, memory=False, user="keeper", image=image, journal=journal) as (uvm, emulator):
            await uvm.readiness.genesis()
            await finish_what_was_in_flight(uvm, emulator, told, paid)
