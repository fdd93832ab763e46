"""The end of a server that a verb started: what keeps it alive, and when it ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.waiting import a_moment

from batos.image import roots
from batos.server.idle_end import IdleEnd, has_work
from batos.server.zmq.server import Server
from batos.testing import ScriptedBridge, scripted_uvm


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
