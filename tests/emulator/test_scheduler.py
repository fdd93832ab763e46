"""Runners: who shares one, what reloads it, how long it stays, and what fits on the card."""

from __future__ import annotations

import asyncio

import pytest
from tests.emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start, until

from batos.emulator.clocks import ManualClock

GIB = 1 << 30


async def _make(client: Client, name: str, **fields: object) -> None:
    reply = await client.post("/api/create", model=name, **{"from": CHAT_MODEL, "stream": False, **fields})
    assert reply.status_code == 200, reply.text


async def test_models_of_one_base_share_a_runner(client: Client) -> None:
    """Another system prompt is no reload, and ps shows the name of the model that was loaded first."""
    await _make(client, "robin", system="You are ROBIN.")
    await _make(client, "brick", system="You are BRICK.")
    await client.chat(model="robin")
    await client.chat(model="brick")
    assert client.emulator.scheduler.loads == 1
    assert [row["name"] for row in await client.ps()] == ["robin:latest"]


@pytest.mark.parametrize(
    ("options", "loads"),
    [
        ({"num_ctx": 1024}, 2),
        ({"num_batch": 64}, 2),
        ({"num_thread": 1}, 2),
        ({"num_gpu": 0}, 2),
        ({"num_gpu": -1}, 1),
        ({"temperature": 1.5, "seed": 3, "num_predict": 9}, 1),
    ],
)
async def test_runner_options_reload_and_sampling_does_not(
    client: Client, options: dict[str, float], loads: int
) -> None:
    """Only what the runner is started with makes it start again."""
    await client.chat()
    await client.chat(options=options)
    assert client.emulator.scheduler.loads == loads


@pytest.mark.parametrize(
    ("asked", "shown", "window"),
    [(1, 4, 256), (64, 64, 256), (257, 257, 512), (300, 300, 512), (10**7, 131072, 131072)],
)
async def test_the_window_is_rounded_up_and_capped(client: Client, asked: int, shown: int, window: int) -> None:
    """ps shows what was asked for, capped; the window in force is the next multiple of 256."""
    text = "water " * (window * 2)
    options = {"num_ctx": asked}
    messages = [{"role": "user", "content": text}]
    reply = await client.post(
        "/api/chat", model=CHAT_MODEL, messages=messages, options=options, truncate=False, stream=False
    )
    assert reply.status_code == 400
    assert f'"n_ctx":{window}}}' in reply.json()["error"]
    assert (await client.ps())[0]["context_length"] == shown


async def test_a_runner_goes_when_its_keep_alive_is_over(start: Start) -> None:
    """Five minutes after the last request, by the emulator's own clock."""
    clock = ManualClock()
    async with start(clock) as client:
        await client.chat()
        clock.advance(299)
        assert len(await client.ps()) == 1
        clock.advance(2)
        assert await client.ps() == []


async def test_keep_alive_of_the_environment(start: Start) -> None:
    """OLLAMA_KEEP_ALIVE is a duration or seconds, and a request's own goes before it."""
    clock = ManualClock()
    async with start(clock, environ={"OLLAMA_KEEP_ALIVE": "2s"}) as client:
        await client.chat()
        await client.chat(keep_alive=60)
        clock.advance(3)
        assert len(await client.ps()) == 1
        clock.advance(60)
        assert await client.ps() == []


async def test_keep_alive_zero_unloads_after_the_answer(client: Client) -> None:
    """The answer is given, then the runner is gone."""
    await client.chat(keep_alive=0)
    assert await client.ps() == []


async def test_an_unload_during_an_answer_is_lost(start: Start) -> None:
    """It says `unload`, ps drops the runner, and when the answer ends it is listed again."""
    clock = ManualClock()
    async with start(clock, tok_s=10) as client:
        answering = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        unload = await client.post("/api/chat", model=CHAT_MODEL, messages=[], keep_alive=0)
        assert unload.json()["done_reason"] == "unload"
        assert await client.ps() == []
        while not answering.done():
            clock.advance(1)
            await asyncio.sleep(0.01)
        assert len(await client.ps()) == 1


async def test_size_vram_is_what_lies_on_the_card(start: Start) -> None:
    """A model that fits lies there whole; one that does not spills in silence; without a GPU nothing does."""
    async with start(vram=8) as client:
        await client.chat()
        row = (await client.ps())[0]
        assert row["size_vram"] == row["size"] > 2 * GIB
    async with start(vram=2.5) as client:
        await client.chat()
        row = (await client.ps())[0]
        assert 0 < row["size_vram"] < row["size"]
    async with start(vram=0) as client:
        await client.chat()
        assert (await client.ps())[0]["size_vram"] == 0


async def test_what_does_not_fit_beside_another_evicts_it(start: Start) -> None:
    """Two models whose sum is more than the card are never resident together; an embedder on the CPU never evicts."""
    async with start(vram=8, models=(CHAT_MODEL, "llama3.1:8b", EMBEDDER)) as client:
        await client.chat()
        await client.post("/api/embed", model=EMBEDDER, input="x", options={"num_gpu": 0})
        assert len(await client.ps()) == 2
        await client.chat(model="llama3.1:8b")
        assert "llama3.1:8b" in [row["name"] for row in await client.ps()]
        assert CHAT_MODEL not in [row["name"] for row in await client.ps()]


async def test_no_more_runners_than_allowed(start: Start) -> None:
    """OLLAMA_MAX_LOADED_MODELS holds without a GPU too."""
    async with start(vram=0, environ={"OLLAMA_MAX_LOADED_MODELS": "1"}) as client:
        await client.chat()
        await client.post("/api/embed", model=EMBEDDER, input="x")
        assert [row["name"] for row in await client.ps()] == [EMBEDDER]


async def test_a_full_queue_is_refused_at_once(start: Start) -> None:
    """With a queue of one, one request loads, one waits, and the third is told to come again."""
    clock = ManualClock()
    async with start(clock, load_s=5, environ={"OLLAMA_MAX_QUEUE": "1"}) as client:
        first = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads)
        second = asyncio.create_task(client.chat())
        await until(lambda: len(client.emulator.requests) == 2)
        refused = await client.post("/api/chat", model=CHAT_MODEL, messages=[{"role": "user", "content": "x"}])
        assert refused.status_code == 503
        assert refused.json() == {"error": "server busy, please try again.  maximum pending requests exceeded"}
        clock.advance(10)
        await asyncio.gather(first, second)


async def test_slots_are_served_in_turn(start: Start) -> None:
    """One runner with two slots answers two at a time; the others wait without limit."""
    clock = ManualClock()
    async with start(clock, parallel=2, tok_s=1000) as client:
        await client.post("/api/chat", model=CHAT_MODEL, messages=[])
        asked = [asyncio.create_task(client.chat()) for _ in range(5)]
        runner = next(iter(client.emulator.scheduler.runners.values()))
        await until(lambda: runner.refs == 5)
        assert runner.slots.locked()
        while not all(task.done() for task in asked):
            clock.advance(1)
            await asyncio.sleep(0)
        assert client.emulator.scheduler.loads == 1


async def test_a_client_that_leaves_during_a_load_aborts_it(start: Start) -> None:
    """Nothing is listed afterwards, and the next request loads anew."""
    clock = ManualClock()
    async with start(clock, load_s=5) as client:
        leaving = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await asyncio.sleep(0.05)
        clock.advance(10)
        assert await client.ps() == []
        again = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads == 2)
        clock.advance(5)
        assert (await again)["done"]


async def test_an_answer_without_end_stops_when_its_client_leaves(start: Start) -> None:
    """num_predict 0 is not zero tokens; the slot is free again for the next request."""
    async with start(tok_s=2000) as client:
        body = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "x"}], "options": {"num_predict": 0}}
        async with client.http.stream("POST", "/api/chat", json=body) as reply:
            seen = 0
            async for _ in reply.aiter_lines():
                seen += 1
                if seen == 200:
                    break
        assert (await client.chat())["done_reason"] == "stop"


async def test_a_deleted_model_stays_loaded(client: Client) -> None:
    """Its runner is listed under its name and cannot be unloaded by it."""
    await _make(client, "robin")
    await client.chat(model="robin")
    assert (await client.http.request("DELETE", "/api/delete", json={"model": "robin"})).status_code == 200
    assert [row["name"] for row in await client.ps()] == ["robin:latest"]
    unload = await client.post("/api/chat", model="robin", messages=[], keep_alive=0)
    assert unload.status_code == 404
