"""Genesis by the server itself: an empty image is founded, what may pass is waited for, questions are told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG, until

from batos.cli.verbs.serve import open_server
from batos.cli.verbs.status import status_text
from batos.client.clients import AsyncClient
from batos.config import Settings
from batos.events import Events
from batos.image.ids import utc_now
from batos.inference.ollama.bridge import PullProgress
from batos.inference.ollama.catalogue import ModelRow
from batos.protocol.errors import Busy, CodexError, OllamaUnreachable
from batos.protocol.image_documents import genesis_text
from batos.server.dispatch.background_genesis import BackgroundGenesis
from batos.testing import ScriptedBridge
from batos.uvm import UVM, Seams, open_uvm

ANYWHERE = "tcp://127.0.0.1:*"


class Late(ScriptedBridge):
    """A daemon that has no models, answers when it is no longer away, and pulls when it may."""

    def __init__(self, *, away: bool = False) -> None:
        super().__init__()
        self.rows.clear()
        self.away = away
        self.may = asyncio.Event()

    async def version(self) -> str:
        if self.away:
            raise OllamaUnreachable("nothing listens")
        return await super().version()

    async def list(self) -> Sequence[ModelRow]:
        return tuple(self.rows.values())

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        yield PullProgress("pulling", "sha256:1", 100, 34)
        await self.may.wait()
        async for each in super().pull(model):
            yield each


@asynccontextmanager
async def empty(home: Path, bridge: ScriptedBridge) -> AsyncGenerator[UVM, None]:
    async with open_uvm(Settings(home=home, user="tester"), Events(log=False), Seams(bridge=bridge)) as uvm:
        yield uvm


async def statuses(client: AsyncClient) -> AsyncGenerator[dict[str, Any], None]:
    async with asyncio.timeout(HANG):
        while True:
            yield await client.status()


async def test_a_server_of_an_empty_home_ends_by_answering(tmp_path: Path) -> None:
    """While models are pulled a question is told how far that is, and `status` too; then it is answered."""
    bridge = Late()
    settings = Settings(home=tmp_path, user="tester", genesis="auto", bind=ANYWHERE, events=ANYWHERE)
    async with open_server(settings, Seams(bridge=bridge), Events(log=False)), AsyncClient(tmp_path) as client:
        async for told in statuses(client):
            if told["genesis"].get("completed"):
                break
        assert told["genesis"]["state"] == "running"
        assert "34 %" in status_text(told, utc_now())
        assert (told["ready"], told["reasons"][0]["code"]) == (False, "busy")
        with pytest.raises(Busy, match=r"still being made: .*34 %") as refused:
            await client.ask("why?")
        assert refused.value.retry
        bridge.may.set()
        async for told in statuses(client):
            if told["genesis"] is None:
                break
        assert (await client.ask("why?", effort="reflex")).done


async def test_a_daemon_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    """What may pass is tried again; meanwhile it is told why nothing happens."""
    bridge = Late(away=True)
    bridge.may.set()
    async with empty(tmp_path, bridge) as uvm:
        genesis = BackgroundGenesis(uvm, pauses=(0.01,))
        task = asyncio.create_task(genesis.run())
        await until(lambda: genesis.state == "waiting")
        told = genesis.progress()
        assert told is not None
        assert genesis_text(told) == "waits and tries again: nothing listens"
        bridge.away = False
        await task
        assert (genesis.state, genesis.progress()) == ("done", None)
        genesis.refuse()
        assert (await uvm.missions.ask({"text": "why?", "effort": "reflex"}))["status"] == "done"


async def test_what_cannot_be_mended_by_waiting_ends_it(tmp_path: Path) -> None:
    """A codex that cannot be read is told once; a question then says what is wrong by itself."""
    async with empty(tmp_path, Late()) as uvm:
        await uvm.reconciler.plan()  # copies the codex
        await asyncio.to_thread((tmp_path / "codex" / "brick.toml").write_text, "this is not TOML", "utf-8")
        genesis = BackgroundGenesis(uvm, pauses=(0.01,))
        await genesis.run()
        told = genesis.progress()
        assert told is not None
        assert (told["state"], told["reason"]["code"]) == ("failed", CodexError.code)
        genesis.refuse()


async def test_an_image_that_had_its_genesis_is_left_alone(tmp_path: Path) -> None:
    """A later start pulls and makes nothing by itself."""
    bridge = ScriptedBridge()
    async with empty(tmp_path, bridge) as uvm:
        await uvm.readiness.genesis()
        made = dict(bridge.rows)
        bridge.rows.clear()
        genesis = BackgroundGenesis(uvm)
        await genesis.run()
        assert genesis.state == "done"
        assert (bool(made), bridge.rows) == (True, {})
