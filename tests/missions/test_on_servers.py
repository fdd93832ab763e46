"""A mind on a real database server: genesis, questions side by side, and the answers after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.image.servers import ask_postgres, postgres_server, zeo_server

from batos.objects.prototype import own_slots
from batos.testing import scripted_uvm


async def _live_there(home: Path, image: str, journal: str) -> None:
    """Ask four questions at a time, and open the mind again."""
    async with scripted_uvm(home, memory=False, image=image, journal=journal, missions=4) as uvm:
        asked = [uvm.missions.ask({"text": f"Question {number}?", "effort": "reflex"}) for number in range(4)]
        answers = {one["id"]: one["answer"] for one in await asyncio.gather(*asked)}
        assert all(answers.values())
    async with scripted_uvm(home, memory=False, image=image, journal=journal, missions=4) as uvm:
        with uvm.image.snapshot() as root:
            kept = {mission: own_slots(uvm.image.find(root, mission)[2])["answer"] for mission in answers}
        assert kept == answers


@pytest.mark.blocks_loop  # opening is a burst of CPU
async def test_a_mind_lives_on_zeo(tmp_path: Path) -> None:
    """Image and journal are two storages of one server."""
    with zeo_server(tmp_path) as port:
        await _live_there(tmp_path / "home", f"zeo://127.0.0.1:{port}?blob_dir={tmp_path / 'cache'}", "")


@pytest.mark.blocks_loop
async def test_a_mind_lives_in_postgres(tmp_path: Path) -> None:
    """Image and journal are two databases."""
    with postgres_server() as server:
        ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
        await _live_there(tmp_path / "home", f"{server}image?blob_dir={tmp_path / 'cache'}", f"{server}journal")
