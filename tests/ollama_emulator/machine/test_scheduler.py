"""Runners: who shares one, what reloads it, how long it stays, and what fits on the card."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start, pass_time
from tests.waiting import a_moment, until

from ollama_emulator.clocks import ManualClock

GIB = 1 << 30
MESSAGES = [{"role": "user", "content": "What is water?"}]


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
        ({"num_batch": 512}, 1),
        ({"num_thread": 1}, 2),
        ({"num_thread": 0}, 1),
        ({"num_ctx": 4096}, 1),
        ({"use_mmap": False}, 2),
        ({"main_gpu": 0}, 2),
        ({"draft_num_predict": 4}, 1),
        ({"draft_num_predict": 2}, 2),
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
    text = "water " * (window + 200)
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


async def test_an_unload_during_an_answer_waits_for_its_end(start: Start) -> None:
    """It says `unload` at once; ps goes on listing the runner, with an expiry in the past, until the answer ends."""
    clock = ManualClock()
    async with start(clock, tok_s=10) as client:
        answering = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        assert (await _unload(client))["done_reason"] == "unload"
        clock.advance(0.001)
        assert await _expiry(client) < client.emulator.daemon.wire_time().rstrip("Z")
        await pass_time(clock, answering)
        assert await client.ps() == []


async def test_an_unload_during_a_load_is_lost(start: Start) -> None:
    """The daemon knows no runner yet: it says `unload`, ps lists nothing, and then the runner stays its full time."""
    clock = ManualClock()
    async with start(clock, load_s=5) as client:
        answering = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loading)
        assert (await _unload(client))["done_reason"] == "unload"
        assert await client.ps() == []
        await pass_time(clock, answering)
        assert len(await client.ps()) == 1
        (runner,) = client.emulator.scheduler.runners.values()
        assert runner.keep_alive_ns == 300 * 10**9
        assert runner.expires_ns is not None
        clock.advance((runner.expires_ns - clock.now_ns()) / 10**9 - 1)
        assert len(await client.ps()) == 1


async def test_a_keep_alive_of_its_own_takes_an_unload_back(start: Start) -> None:
    """keep_alive belongs to the runner: who joins one that is to go, and names its own, makes it stay."""
    clock = ManualClock()
    async with start(clock, tok_s=10) as client:
        answering = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        await _unload(client)
        joined = asyncio.create_task(client.chat(keep_alive=60))
        await until(lambda: next(iter(client.emulator.scheduler.runners.values())).refs == 2)
        await pass_time(clock, answering, joined)
        assert len(await client.ps()) == 1


async def test_ps_shows_a_stale_expiry_while_a_runner_answers(start: Start) -> None:
    """The date is that of the last time it was idle; until it was idle once, it moves with the clock."""
    clock = ManualClock()
    async with start(clock, tok_s=10) as client:
        first = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        moving = await _expiry(client)
        clock.advance(0.01)
        assert await _expiry(client) > moving
        await pass_time(clock, first)
        idle = await _expiry(client)
        second = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        clock.advance(0.01)
        assert await _expiry(client) == idle
        await pass_time(clock, second)
        assert await _expiry(client) > idle


async def _expiry(client: Client) -> str:
    """When the one runner goes, in a form that sorts."""
    return str((await client.ps())[0]["expires_at"]).rstrip("Z")


async def _unload(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = (await client.post("/api/chat", model=CHAT_MODEL, messages=[], keep_alive=0)).json()
    return found


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


async def test_four_of_six_cold_requests_are_refused(start: Start) -> None:
    """limits.jsonl 8 to 17: one is loading, one waits, the others get 503 with the daemon's words."""
    clock = ManualClock()
    models = (CHAT_MODEL, "llama3.2:1b")
    async with start(clock, load_s=5, environ={"OLLAMA_MAX_QUEUE": "1"}, models=models) as client:
        asked = [
            asyncio.create_task(client.post("/api/chat", model=models[at % 2], stream=False, messages=MESSAGES))
            for at in range(6)
        ]
        await until(lambda: sum(task.done() for task in asked) == 4)
        await pass_time(clock, *asked)
        replies = [task.result() for task in asked]
        assert sorted(reply.status_code for reply in replies) == [200, 200, 503, 503, 503, 503]
        words = {"error": "server busy, please try again.  maximum pending requests exceeded"}
        assert all(reply.json() == words for reply in replies if reply.status_code == 503)


async def test_a_warm_runner_serves_while_another_loads(start: Start) -> None:
    """What needs no scheduler does not wait for it; what needs a reload does, and counts for the queue."""
    clock = ManualClock()
    models = (CHAT_MODEL, "llama3.2:1b")
    async with start(clock, environ={"OLLAMA_MAX_QUEUE": "0"}, models=models) as client:
        await client.chat()
        client.emulator.scheduler.load_s = 5
        loading = asyncio.create_task(client.chat(model="llama3.2:1b"))
        await until(lambda: client.emulator.scheduler.loads == 2)
        assert (await client.chat())["done"]
        reload = await client.post(
            "/api/chat", model=CHAT_MODEL, messages=MESSAGES, options={"num_ctx": 512}, stream=False
        )
        assert reply_of(reload) == (503, True)
        await pass_time(clock, loading)


def reply_of(reply: httpx.Response) -> tuple[int, bool]:
    """The status, and whether there is an error."""
    return reply.status_code, "error" in reply.json()


async def test_a_reload_waits_for_the_answers_that_run(start: Start) -> None:
    """Requests that suit the resident runner go on joining it; the one that does not is served when it is idle."""
    clock = ManualClock()
    async with start(clock, tok_s=10) as client:
        first = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()))
        other = asyncio.create_task(client.chat(options={"num_ctx": 512}))
        await until(lambda: len(client.emulator.requests) == 2)
        joined = asyncio.create_task(client.chat())
        await until(lambda: next(iter(client.emulator.scheduler.runners.values())).refs == 2)
        assert client.emulator.scheduler.loads == 1
        await pass_time(clock, first, joined, other)
        assert client.emulator.scheduler.loads == 2
        assert (await client.ps())[0]["context_length"] == 512


async def test_a_victim_that_is_kept_alive_blocks_the_scheduler(start: Start) -> None:
    """Who joins a victim with a keep-alive of its own starts its timer: the pending load waits until that is over."""
    clock = ManualClock()
    async with start(clock, parallel=2) as client:
        scheduler = client.emulator.scheduler
        await client.chat()
        runner = next(iter(scheduler.runners.values()))
        held = await scheduler.acquire(runner.ask, None)
        other = asyncio.create_task(client.chat(options={"num_ctx": 512}))
        await until(lambda: runner.keep_alive_ns == 0)
        await client.chat(keep_alive=60)
        scheduler.release(held)
        await a_moment()
        assert (scheduler.loads, other.done()) == (1, False)
        await pass_time(clock, other)
        assert other.result()["done"]
        assert scheduler.loads == 2


async def test_who_leaves_the_queue_is_skipped(start: Start) -> None:
    """A cancelled request costs no load when its turn comes."""
    clock = ManualClock()
    async with start(clock, load_s=5, models=(CHAT_MODEL, "llama3.2:1b")) as client:
        first = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads)
        leaving = asyncio.create_task(client.chat(model="llama3.2:1b"))
        await until(lambda: client.emulator.scheduler.state()["queued"])
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await until(lambda: client.emulator.connections == 1)
        await pass_time(clock, first)
        assert client.emulator.scheduler.loads == 1


async def test_the_victim_is_the_idle_one_that_stays_shortest(start: Start) -> None:
    """Not the oldest and not the largest: a longer keep_alive protects."""
    models = (CHAT_MODEL, "llama3.2:1b", EMBEDDER, "qwen3:4b")
    async with start(vram=0, models=models) as client:
        await client.chat(keep_alive=600)
        await client.chat(model="llama3.2:1b", keep_alive=60)
        await client.post("/api/embed", model=EMBEDDER, input="x", keep_alive=-1)
        await client.chat(model="qwen3:4b", think=False)
        names = [row["name"] for row in await client.ps()]
        assert names == [EMBEDDER, CHAT_MODEL, "qwen3:4b"]


async def test_an_exact_number_of_layers_may_not_fit(start: Start) -> None:
    """num_gpu takes as many as it says, or the load runs out of memory; 0 keeps all of it on the CPU."""
    async with start(vram=2.5) as client:
        reply = await client.post("/api/chat", model=CHAT_MODEL, messages=MESSAGES, options={"num_gpu": 99})
        assert reply.status_code == 500
        assert reply.json()["error"].startswith("llama-server reported out-of-memory during startup: ")
        await client.chat(options={"num_gpu": 10})
        row = (await client.ps())[0]
        assert 0 < row["size_vram"] < row["size"]
        await client.chat(options={"num_gpu": 0})
        assert (await client.ps())[0]["size_vram"] == 0


async def test_a_load_out_of_memory_is_tried_again_once(start: Start) -> None:
    """All others go first; the second failure is the client's, and a large automatic window is lowered instead."""
    async with start(vram=24, models=(CHAT_MODEL, "llama3.2:1b")) as client:
        await client.chat(model="llama3.2:1b")
        client.emulator.faults.add({"do": "oom", "attempts": 1})
        assert (await client.chat())["done"]
        assert [row["context_length"] for row in await client.ps()] == [4096]
        client.emulator.faults.add({"do": "oom"})
        reply = await client.post("/api/chat", model=CHAT_MODEL, messages=MESSAGES)
        assert reply_of(reply) == (500, True)
        assert client.emulator.scheduler.loads == 5
        assert await client.ps() == []


async def test_a_load_that_says_nothing_is_given_up(start: Start) -> None:
    """OLLAMA_LOAD_TIMEOUT is how long a runner may be silent."""
    clock = ManualClock()
    async with start(clock, environ={"OLLAMA_LOAD_TIMEOUT": "30s"}) as client:
        client.emulator.faults.add({"do": "slow_load", "seconds": 100})
        asked = asyncio.create_task(client.post("/api/chat", model=CHAT_MODEL, messages=MESSAGES))
        await until(lambda: client.emulator.scheduler.loading)
        await pass_time(clock, asked)
        reply = asked.result()
        assert (reply.status_code, reply.json()["error"]) == (500, "timed out waiting for llama-server to start - ")


async def test_an_unknown_type_of_cache_fails_every_load(start: Start) -> None:
    """The daemon passes it on unread; a known one changes what the cache takes."""
    sizes = []
    for kind in ("", "q8_0"):
        async with start(environ={"OLLAMA_KV_CACHE_TYPE": kind}) as client:
            await client.chat()
            sizes.append((await client.ps())[0]["size"])
    assert sizes[1] < sizes[0]
    async with start(environ={"OLLAMA_KV_CACHE_TYPE": "q9"}) as client:
        reply = await client.post("/api/chat", model=CHAT_MODEL, messages=MESSAGES)
        assert reply.json() == {"error": "llama-server process has terminated: exit status 1"}


async def test_slots_are_served_in_turn(start: Start) -> None:
    """One runner with two slots answers two at a time; the others wait without limit."""
    clock = ManualClock()
    async with start(clock, parallel=2, tok_s=1000) as client:
        await client.post("/api/chat", model=CHAT_MODEL, messages=[])
        asked = [asyncio.create_task(client.chat()) for _ in range(5)]
        runner = next(iter(client.emulator.scheduler.runners.values()))
        await until(lambda: runner.refs == 5)
        assert runner.slots.is_full()
        await pass_time(clock, *asked)
        assert client.emulator.scheduler.loads == 1


async def test_a_client_that_leaves_during_a_load_aborts_it(start: Start) -> None:
    """Nothing is listed afterwards, and the next request loads anew."""
    clock = ManualClock()
    async with start(clock, load_s=5) as client:
        leaving = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await until(lambda: client.emulator.requests[0].get("status") == 499)
        clock.advance(10)
        assert await client.ps() == []
        again = asyncio.create_task(client.chat())
        await until(lambda: client.emulator.scheduler.loads == 2)
        await pass_time(clock, again)
        assert again.result()["done"]


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
